"""`harness priors list | add | check | activate | refused | retire | export | import`."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harness.artifacts.content import read_text
from harness.cli.changing import changing
from harness.cli.output import (
    CommandGroup,
    NewFile,
    emit,
    environment,
    json_option,
    project_option,
    write_new,
)
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.decisions.lessons import activate, candidate_line, history, refused, retire
from harness.decisions.priors import CHECK_SECONDS, CheckedPrior, check_priors
from harness.decisions.shared_priors import PRIVATE_WORDS, export_priors, import_priors
from harness.domain.rules import FORMS, read_rule
from harness.errors import UsageError
from harness.ledger.facts import Prior, PriorStatus


@click.group("priors", cls=CommandGroup)
def command() -> None:
    """Lessons of the project, each with evidence, a rule and, where possible, a check to run."""


@command.command("list")
@project_option
@json_option
def list_command(project: Path, as_json: bool) -> None:
    """List all priors, oldest first; superseded ones too."""
    with reading(project) as opened:
        priors = opened.ledger.priors()
        since = {one["id"]: one for one in history(opened, priors)}
    lines = [
        f"{prior.id}  {prior.lesson}{_standing(prior, since[prior.id])}\n        {prior.rule}"
        for prior in priors
    ]
    emit(
        {"priors": [{**_plain(prior), **since[prior.id]} for prior in priors]},
        *(lines or ["no priors yet"]),
        as_json=as_json,
    )


@command.command("add")
@click.option("--lesson", required=True, help="One line: what was learned.")
@click.option("--evidence", required=True, help="What shows it: experiments, runs, sources.")
@click.option("--rule", required=True, help="The rule that follows.")
@click.option("--check", default=None, help="A command that exits 0 while the rule holds.")
@click.option("--supersedes", default=None, help="The prior that this one replaces, e.g. p-0001.")
@click.option(
    "--enforce",
    default=None,
    metavar="RULE",
    help=f"A rule as data, a candidate until it is activated: {'; '.join(FORMS)}.",
)
@project_option
@json_option
def add(
    lesson: str,
    evidence: str,
    rule: str,
    check: str | None,
    supersedes: str | None,
    enforce: str | None,
    project: Path,
    as_json: bool,
) -> None:
    """Record a prior. Must be run by a person: others will run its check."""
    by = require_person("priors add", environment())
    words = None if check is None else _words(check)
    enforced = None if enforce is None else read_rule(enforce).words
    with changing(project) as opened:
        prior = opened.ledger.record_prior(
            lesson=lesson,
            evidence=evidence,
            rule=rule,
            check=words,
            by=by,
            supersedes=supersedes,
            enforces=enforced,
        )
    emit(_plain(prior), *_recorded(prior), as_json=as_json)


def _recorded(prior: Prior) -> list[str]:
    lines = [f"recorded {prior.id}: {prior.lesson}"]
    return [*lines, candidate_line(prior)] if prior.enforces else lines


_REASON = click.option("--reason", required=True, help="Why; it is recorded.")
_PRIOR = click.argument("prior")


@command.command("activate")
@_PRIOR
@_REASON
@project_option
@json_option
def activate_command(prior: str, reason: str, project: Path, as_json: bool) -> None:
    """Let hooks and gates hold the rule of PRIOR. Must be run by a person."""
    by = require_person("priors activate", environment())
    with changing(project) as opened:
        moved = activate(opened, prior, by=by, reason=reason)
    emit(_plain(moved), f"{moved.id} is active: {moved.enforces}", as_json=as_json)


@command.command("refused")
@_PRIOR
@_REASON
@project_option
@json_option
def refused_command(prior: str, reason: str, project: Path, as_json: bool) -> None:
    """Note that PRIOR refused what was right; the second time retires it. Must be run by a
    person."""
    by = require_person("priors refused", environment())
    with changing(project) as opened:
        told = refused(opened, prior, by=by, reason=reason)
    emit(_plain(told), f"{told.id}: noted; it is {told.status}", as_json=as_json)


@command.command("retire")
@_PRIOR
@_REASON
@project_option
@json_option
def retire_command(prior: str, reason: str, project: Path, as_json: bool) -> None:
    """Take PRIOR out of force; what happened since it was active is recorded. Must be run by a
    person."""
    by = require_person("priors retire", environment())
    with changing(project) as opened:
        moved = retire(opened, prior, by=by, reason=reason)
    emit(_plain(moved), f"{moved.id} is retired: {reason}", as_json=as_json)


@command.command("check")
@click.argument("prior", nargs=-1)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=CHECK_SECONDS,
    show_default=True,
    help="Time limit of one check.",
)
@project_option
@json_option
def check_command(prior: Sequence[str], seconds: float, project: Path, as_json: bool) -> None:
    """Run the checks of PRIOR (default: of all that are in force); exit 1 when one fails."""
    with reading(project) as opened:
        results = check_priors(opened, prior, environment(), seconds=seconds)
    ok = not any(result.holds.broken for result in results)
    lines = [_result_text(result) for result in results]
    emit(
        {"ok": ok, "checks": [_result(result) for result in results]},
        *(lines or ["no priors yet"]),
        as_json=as_json,
    )
    sys.exit(0 if ok else 1)


@command.command("export")
@click.option(
    "--out",
    type=NewFile(),
    required=True,
    metavar="FILE",
    help="The file to write.",
)
@project_option
@json_option
def export_command(out: Path, project: Path, as_json: bool) -> None:
    """Write the priors in force to FILE, with where they are from. Must be run by a person.

    One with a word of .harness/private-words.txt (one a line) is left out.
    """
    require_person("priors export", environment())
    with reading(project) as opened:
        listed = opened.layout.root / PRIVATE_WORDS
        words = read_text(listed).splitlines() if listed.exists() else []
        made = export_priors(opened, words)
    write_new(out, made.text)
    document = {"written": str(out), "priors": made.taken, "left_out": made.left_out}
    several = "" if len(made.taken) == 1 else "s"
    lines = [f"wrote {len(made.taken)} prior{several} to {out}"]
    if made.left_out:
        lines.append(f"left out, for a private word: {', '.join(made.left_out)}")
    emit(document, *lines, as_json=as_json)


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--checks", is_flag=True, help="With their checks, which are commands to be run.")
@project_option
@json_option
def import_command(file: Path, checks: bool, project: Path, as_json: bool) -> None:
    """Record the priors of FILE that do not stand here yet. Must be run by a person."""
    by = require_person("priors import", environment())
    text = read_text(file)
    with changing(project) as opened:
        made = import_priors(opened, text, by=by, checks=checks)
    document = {
        "recorded": [_plain(prior) for prior in made.recorded],
        "known": list(made.known),
    }
    lines = [line for prior in made.recorded for line in _recorded(prior)]
    lines += [f"stands here already: {lesson}" for lesson in made.known]
    emit(document, *(lines or ["the file has no prior"]), as_json=as_json)


def _words(check: str) -> list[str]:
    try:
        return shlex.split(check)
    except ValueError as error:
        raise UsageError(
            f"--check is not a valid command line: {error}.", hint="Quote it as for a shell."
        ) from error


def _standing(prior: Prior, since: Mapping[str, Any]) -> str:
    if prior.superseded_by is not None:
        return f"  (superseded by {prior.superseded_by})"
    if prior.enforces is None and prior.status is PriorStatus.ACTIVE:
        return ""
    told = [str(prior.status), *([prior.enforces] if prior.enforces else [])]
    told += [f"came again: {since['recurrences']}"] if since["recurrences"] else []
    told += [f"refused what was right: {since['refusals']}"] if since["refusals"] else []
    told += [f"{prior.moves[-1]['reason']}"] if prior.status is PriorStatus.RETIRED else []
    return f"  ({'; '.join(told)})"


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
        "status": prior.status,
        "enforces": prior.enforces,
        "answers": prior.answers,
        "moves": list(prior.moves),
        "refused": list(prior.refusals),
        "at": prior.at,
    }


def _result(result: CheckedPrior) -> dict[str, Any]:
    return {
        "id": result.prior.id,
        "lesson": result.prior.lesson,
        "check": None if result.prior.check is None else list(result.prior.check),
        "result": result.holds,
        "exit_code": result.exit_code,
        "seconds": round(result.seconds, 1),
        "output": result.output,
    }


def _result_text(result: CheckedPrior) -> str:
    """One line for a check that holds; below a failed one the end of its output."""
    head = f"{result.holds:<8}  {result.prior.id}  {result.prior.lesson}"
    if not result.holds.broken:
        return head
    command = shlex.join(result.prior.check or ())
    return "\n".join(
        [
            head,
            f"          {command}",
            *(f"          {line}" for line in result.output.splitlines()),
        ]
    )
