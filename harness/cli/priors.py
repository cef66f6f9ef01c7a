"""`harness priors list | add | check`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.changing import changing
from harness.cli.output import VerbGroup, emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.decisions.priors import CHECK_SECONDS, CheckedPrior, check_priors
from harness.domain.records import Prior
from harness.errors import UsageError
from harness.ledger.project import open_project


@click.group("priors", cls=VerbGroup)
def command() -> None:
    """Lessons with their evidence, their rule and, where it can be one, their executable check."""


@command.command("list")
@project_option
@json_option
def list_command(project: Path, as_json: bool) -> None:
    """List all priors, oldest first, also those that a later one supersedes."""
    with open_project(project, environment(), read_only=True) as opened:
        priors = opened.ledger.priors()
    lines = [f"{item.id}  {item.lesson}{_standing(item)}\n        {item.rule}" for item in priors]
    emit(
        {"priors": [_plain(item) for item in priors]},
        as_json=as_json,
        text=lambda: "\n".join(lines) or "no prior yet",
    )


@command.command("add")
@click.option("--lesson", required=True, help="One line: what was learned.")
@click.option("--evidence", required=True, help="What showed it: experiments, runs, sources.")
@click.option("--rule", required=True, help="What follows from it.")
@click.option("--check", default=None, help="A command that ends with 0 as long as the rule holds.")
@click.option("--supersedes", default=None, help="The prior that this one replaces, e.g. p-0001.")
@project_option
@json_option
def add(
    lesson: str,
    evidence: str,
    rule: str,
    check: str | None,
    supersedes: str | None,
    project: Path,
    as_json: bool,
) -> None:
    """Record a prior. A person's verb: its check is a command that others will run."""
    by = require_person("priors add", environment())
    words = None if check is None else _words(check)
    with changing(project) as opened:
        prior = opened.ledger.record_prior(
            lesson=lesson, evidence=evidence, rule=rule, check=words, by=by, supersedes=supersedes
        )
    emit(_plain(prior), as_json=as_json, text=lambda: f"recorded {prior.id}: {prior.lesson}")


@command.command("check")
@click.argument("prior", nargs=-1)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=CHECK_SECONDS,
    show_default=True,
    help="A check.",
)
@project_option
@json_option
def check_command(prior: Sequence[str], seconds: float, project: Path, as_json: bool) -> None:
    """Run the checks of the named priors, by default of all that stand; exit 1 when one does not
    hold."""
    with open_project(project, environment(), read_only=True) as opened:
        checked = check_priors(opened, prior, environment(), seconds=seconds)
    ok = not any(item.holds.broken for item in checked)
    emit(
        {"ok": ok, "checks": [_answer(item) for item in checked]},
        as_json=as_json,
        text=lambda: "\n".join(_said(item) for item in checked) or "no prior yet",
    )
    sys.exit(0 if ok else 1)


def _words(check: str) -> list[str]:
    try:
        return shlex.split(check)
    except ValueError as error:
        raise UsageError(
            f"--check cannot be read as words: {error}.", hint="Quote it as for a shell."
        ) from error


def _standing(prior: Prior) -> str:
    return "" if prior.superseded_by is None else f"  (superseded by {prior.superseded_by})"


def _plain(prior: Prior) -> dict[str, Any]:
    return {
        "id": prior.id,
        "lesson": prior.lesson,
        "evidence": prior.evidence,
        "rule": prior.rule,
        "check": None if prior.check is None else list(prior.check),
        "by": prior.by,
        "supersedes": prior.supersedes,
        "superseded_by": prior.superseded_by,
        "at": prior.at,
    }


def _answer(item: CheckedPrior) -> dict[str, Any]:
    return {
        "id": item.prior.id,
        "lesson": item.prior.lesson,
        "check": None if item.prior.check is None else list(item.prior.check),
        "result": item.holds,
        "exit_code": item.exit_code,
        "seconds": round(item.seconds, 1),
        "output": item.output,
    }


def _said(item: CheckedPrior) -> str:
    """A check that holds is one line; of one that does not, the end of what it printed stands
    below."""
    head = f"{item.holds:<8}  {item.prior.id}  {item.prior.lesson}"
    if not item.holds.broken:
        return head
    command = shlex.join(item.prior.check or ())
    return "\n".join(
        [head, f"          {command}", *(f"          {line}" for line in item.output.splitlines())]
    )
