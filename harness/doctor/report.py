"""The doctor's answers: a DoctorCheck for each way to break a guard, and the Report of all."""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.domain.plain_text import plain

Subject = TypeVar("Subject")
INSTALL = "`harness init` installs the hooks; run it in your own terminal."
"""The hint for everything that `harness init` writes."""
NO_GUARD = {"sandbox", "agent_files", "mcp_server", "entries_once", "others_answer", "other_hooks"}
"""Checks of other things than guards."""


@dataclass(frozen=True, kw_only=True)
class DoctorCheck:
    name: str = ""
    """Stable, in snake case."""
    ok: bool | None
    """None: information, or unknown; the message says which."""
    guard: bool = True
    """Whether `ok` False means, or would mean, that a guard does not work."""
    message: str
    hint: str = ""

    @property
    def broken(self) -> bool:
        return self.guard and self.ok is False


@dataclass(frozen=True, kw_only=True)
class Report:
    project: Path | None
    """The project's root; None when there is none at or above the folder that was asked about."""
    checks: tuple[DoctorCheck, ...]

    @property
    def broken(self) -> bool:
        """Whether any guard is broken."""
        return any(check.broken for check in self.checks)

    def lines(self, *, verbose: bool = False) -> list[str]:
        """The report for people: broken guards, other problems, information, each with its hint.

        Passed checks are counted by group; with `verbose` each one is listed.
        """
        lines = []
        for check in sorted(self.checks, key=_weight):
            if check.ok is True and not verbose:
                continue
            lines.append(f"{_MARKS[_weight(check)]:5} {check.name:20} {check.message}")
            if check.hint and check.ok is not True:
                lines.append(f"{'':27}{check.hint}")
        if not verbose:
            groups = Counter(_group(check.name) for check in self.checks if check.ok is True)
            lines += [f"{'ok':5} {group:20} {_checks(number)}" for group, number in groups.items()]
        broken = sum(check.broken for check in self.checks)
        lines.append(
            f"{broken} problem{'s' if broken > 1 else ''} found" if broken else "all guards work"
        )
        return [plain(line) for line in lines]

    def document(self) -> dict[str, Any]:
        """The report as `harness doctor --json` prints it."""
        return {
            "project": None if self.project is None else str(self.project),
            "broken": self.broken,
            "checks": [
                {
                    "name": check.name,
                    "ok": check.ok,
                    "guard": check.guard,
                    "message": plain(check.message),
                    "hint": plain(check.hint),
                }
                for check in self.checks
            ],
        }


def good(message: str) -> DoctorCheck:
    return DoctorCheck(ok=True, message=message)


def broken(message: str, hint: str) -> DoctorCheck:
    return DoctorCheck(ok=False, message=message, hint=hint)


def amiss(message: str, hint: str) -> DoctorCheck:
    """Something is wrong, but every guard still works."""
    return DoctorCheck(ok=False, guard=False, message=message, hint=hint)


def note(message: str, hint: str = "") -> DoctorCheck:
    """Information, or something that cannot be known here."""
    return DoctorCheck(ok=None, message=message, hint=hint)


def doctor_check(function: Callable[[Subject], DoctorCheck]) -> Callable[[Subject], DoctorCheck]:
    """A check is named like its function."""
    name = function.__name__

    @functools.wraps(function)
    def named(subject: Subject) -> DoctorCheck:
        check = function(subject)
        return replace(
            check, name=name, guard=check.guard and (check.broken or name not in NO_GUARD)
        )

    return named


def _checks(number: int) -> str:
    return "1 check" if number == 1 else f"{number} checks"


_GROUPS = {
    "entries": "hook entries",
    "hook": "hook files",
    "hooks": "hooks",
    "guards": "hooks",
    "others": "hooks",
    "interpreter": "hooks",
    "settings": "settings",
    "start": "settings",
    "other": "settings",
    "snapshot": "policy snapshot",
    "cli": "Claude Code CLI",
    "agent": "agents and tools",
    "mcp": "agents and tools",
    "sandbox": "sandbox",
}
"""First word of a check's name -> what it is about."""


def _group(name: str) -> str:
    return _GROUPS.get(name.partition("_")[0], name)


_MARKS = ("FAIL", "warn", "note", "ok")


def _weight(check: DoctorCheck) -> int:
    if check.ok is False:
        return 0 if check.guard else 1
    return 2 if check.ok is None else 3
