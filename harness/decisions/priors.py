"""Priors: lessons with a check that says whether their rule still holds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

from harness import process
from harness.domain.commands import for_helpers, with_interpreter
from harness.errors import NotFoundError
from harness.ledger.facts import Prior, PriorStatus
from harness.ledger.project import Project

CHECK_SECONDS = 120.0
COMMAND = "harness"
_SHOWN = 2000


class Holds(StrEnum):
    """What a check says of its prior's rule."""

    YES = "pass"
    NO = "fail"  # the command ended with another code than 0, or could not be started
    LATE = "timeout"
    UNCHECKED = "no check"

    @property
    def broken(self) -> bool:
        return self in (Holds.NO, Holds.LATE)


@dataclass(frozen=True, kw_only=True)
class CheckedPrior:
    prior: Prior
    holds: Holds
    exit_code: int | None = None
    """None when it did not start, or was ended."""
    seconds: float = 0.0
    output: str = ""
    """The end of what it printed."""


def check_priors(
    project: Project,
    identifiers: Iterable[str],
    environment: Mapping[str, str],
    *,
    seconds: float = CHECK_SECONDS,
) -> list[CheckedPrior]:
    """Run the checks of the named priors, by default of all that stand, in the project's root.

    After `seconds` a check is ended with its process group. Raises NotFoundError for an unknown id,
    before any is run.
    """
    named = list(identifiers)
    known = {prior.id: prior for prior in project.ledger.priors()}
    for name in named:
        if name not in known:
            raise NotFoundError(
                f"There is no prior {name!r}.",
                hint="`harness priors list` shows those that exist.",
            )
    chosen = [known[name] for name in named] or [
        prior
        for prior in known.values()
        if prior.superseded_by is None and prior.status is not PriorStatus.RETIRED
    ]
    return [_check(project, prior, environment, seconds) for prior in chosen]


def _check(
    project: Project, prior: Prior, environment: Mapping[str, str], seconds: float
) -> CheckedPrior:
    if prior.check is None:
        return CheckedPrior(prior=prior, holds=Holds.UNCHECKED)
    words, variables = _command(
        prior.check, project.settings.interpreter or sys.executable, environment
    )
    begun = time.monotonic()
    with tempfile.TemporaryFile() as printed:
        try:
            finished = process.run(
                words,
                cwd=project.layout.root,
                environment=variables,
                seconds=seconds,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            text = f"{words[0]} could not be started: {error.strerror}."
            return CheckedPrior(prior=prior, holds=Holds.NO, output=text)
        code = None if finished.timed_out else finished.code
        holds = Holds.LATE if code is None else Holds.YES if code == 0 else Holds.NO
        passed = time.monotonic() - begun
        return CheckedPrior(
            prior=prior, holds=holds, exit_code=code, seconds=passed, output=_end_of(printed)
        )


def _command(
    check: Iterable[str], interpreter: str, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """(argv, variables); `harness` is this harness, whatever the PATH has."""
    first, *rest = check
    if first == COMMAND:
        return process.harness_command(*rest), process.judge_environment(environment)
    return with_interpreter([first, *rest], interpreter), for_helpers(environment)


def _end_of(stream: BinaryIO) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _SHOWN))
    return stream.read().decode("utf-8", "replace").strip()
