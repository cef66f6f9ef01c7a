"""`harness keep [EXP]`: a person keeps an experiment. Held-out, its gate and the decision in one
call; where a step does not PASS, nothing is kept."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from harness.cli.answer import Answer
from harness.cli.changing import changing
from harness.cli.chosen import EXPERIMENT, chosen
from harness.cli.evaluate import evaluate_answer
from harness.cli.gate import check_answer, decisions_answer
from harness.cli.output import emit, environment, json_option, project_option, sandbox_for, tell
from harness.cli.person import require_person, stdin_is_terminal, typed
from harness.decisions.person import approve, require_undecided
from harness.domain.statuses import GateName, Split, Verdict
from harness.errors import RefusedError, UsageError
from harness.evaluation.experiment import awaiting
from harness.evaluation.outcome import explain, worth
from harness.gates.check import standing
from harness.ledger.facts import RecordedVerdict
from harness.ledger.project import Project
from harness.plans.approved import require_unchanged
from harness.rendering.standing import next_step
from harness.views.snapshot import split_score
from harness.views.tables import pairs_table, score_text, tier_text


@click.command("keep")
@EXPERIMENT
@click.option("--reason", default="", help="Why; default: what was measured.")
@project_option
@json_option
def command(experiment: str | None, reason: str, project: Path, as_json: bool) -> None:
    """Keep EXPERIMENT (default: the open one): look at held-out where that was not done, ask its
    gate, approve.

    Exit 1, and nothing is kept, where a gate does not say PASS. One that is not better than what
    it is compared with is kept for a --reason only, which is asked for on a terminal. Must be run
    by a person.
    """
    by = require_person("keep", environment())
    with changing(project) as opened:
        experiment = chosen(opened, experiment, "harness keep")
        require_undecided(opened, experiment)
        _require_plan(opened, experiment)
        answers = _validated(opened, experiment, quiet=as_json)
        if all(answer.ok for answer in answers.values()):
            reason = reason.strip() or _why(opened, experiment, quiet=as_json)
            answers |= _held_out(opened, experiment, quiet=as_json)
        kept = all(answer.ok for answer in answers.values())
        if kept:
            why = reason or measured(opened, experiment)
            answers["decide"] = decisions_answer(
                opened, approve(opened, experiment, by=by, reason=why)
            )
        document = {
            "experiment": experiment,
            "kept": kept,
            "reason": why if kept else None,
            "steps": {name: answer.document for name, answer in answers.items()},
        }
        lines = _lines(opened, experiment, answers, kept=kept)
    emit(document, *lines, as_json=as_json)
    sys.exit(0 if kept else 1)


def _require_plan(project: Project, experiment: str) -> None:
    """Of a plan that nobody approved the gate would only record a FAIL."""
    approved = project.plan()
    try:
        require_unchanged(project, approved)
    except RefusedError as error:
        error.hint += (
            f" Nothing was recorded. `harness plan approve {approved.path}` shows what changed and"
            f" what becomes of the scores; then `harness keep {experiment}`."
        )
        raise


def _why(project: Project, experiment: str, *, quiet: bool) -> str:
    """Why an experiment is kept that is not better: a person says it; "" for one that is better,
    or of which nobody can say it. Raises UsageError (no_reason)."""
    comparison = _comparison(project, experiment)
    if comparison is None or comparison["better"] is not False:
        return ""
    against = comparison["against"]
    said = f"{experiment} is not shown to be better than {against}: {explain(comparison)}"
    refused = UsageError(
        f"{said} It was not kept.",
        hint=f'Keep it all the same: `harness keep {experiment} --reason "as good, and simpler"`;'
        f" or discard it: `harness gate reject {experiment} --reason TEXT`.",
        code="no_reason",
    )
    if quiet or not stdin_is_terminal() or not sys.stderr.isatty():
        raise refused
    tell(said)
    reason = typed("Why do you keep it all the same? One line; Enter alone keeps nothing.")
    if not reason:
        raise refused
    return reason


def _validated(project: Project, experiment: str, *, quiet: bool) -> dict[str, Answer]:
    """The validation gate's answer, where no PASS of it stands already."""
    newest = project.ledger.latest_verdict(experiment, GateName.VALIDATION)
    if newest is not None and standing(project, newest) is Verdict.PASS:
        return {}
    _say(f"{experiment}  asking the validation gate", quiet=quiet)
    return {"validation": check_answer(project, experiment, GateName.VALIDATION)}


def _held_out(project: Project, experiment: str, *, quiet: bool) -> dict[str, Answer]:
    """A look, where it was not done, and the gate's answer."""
    answers = {}
    if awaiting(project, experiment, Split.HELD_OUT):
        _say(f"{experiment}  looking at held-out; looks are counted", quiet=quiet)
        sandbox = sandbox_for("auto")
        looked = evaluate_answer(project, experiment, Split.HELD_OUT, sandbox)
        answers["evaluate"] = looked
        if not looked.ok:
            return answers
    _say(f"{experiment}  asking the held-out gate", quiet=quiet)
    return answers | {"held_out": check_answer(project, experiment, GateName.HELD_OUT)}


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        tell(text)


def measured(project: Project, experiment: str) -> str:
    """The reason when nobody gives one: the numbers, as everybody may know them."""
    record = project.ledger.experiment(experiment)
    parts = []
    for split in (Split.VALIDATION, Split.HELD_OUT):
        total = split_score(project, record, split)
        parts.append(f"{total['metric']} {score_text(total)}")
    comparison = _comparison(project, experiment)
    if comparison is not None:
        parts.append(f"{worth(comparison)} against {comparison['against']}")
    return f"{'; '.join(parts)}."


def _comparison(project: Project, experiment: str) -> Any:
    verdict: RecordedVerdict | None
    verdict = project.ledger.latest_verdict(experiment, GateName.VALIDATION)
    return None if verdict is None else verdict.comparison


def _lines(
    project: Project, experiment: str, answers: dict[str, Answer], *, kept: bool
) -> Iterator[str]:
    record = project.ledger.experiment(experiment)
    rows = [("experiment", f"{record.id}  {record.hypothesis}")]
    for split in (Split.VALIDATION, Split.HELD_OUT):
        total = split_score(project, record, split)
        if total["metric"]:
            rows.append(("score", f"{total['metric']} {score_text(total)}"))
    comparison = _comparison(project, experiment)
    if comparison is not None:
        rows.append(("comparison", f"with {comparison['against']}: {explain(comparison)}"))
        if comparison["better"] is not True:
            rows.append(("note", "It is not shown to be better; KEEP is your decision."))
    for name, answer in answers.items():
        rows += _judged(name, answer)
    yield pairs_table(rows)
    if kept:
        yield next_step(project).line
        return
    last = next(reversed(answers))
    scored = "verdict" in answers[last].document
    why = f"{last.replace('_', '-')} did not PASS" if scored else "held-out could not be scored"
    yield f"{experiment} was not kept: {why}."
    yield f"next: mend it, or discard it: `harness gate reject {experiment} --reason TEXT`"


def _judged(name: str, answer: Answer) -> Iterator[tuple[str, str]]:
    document = answer.document
    if "verdict" in document:
        tier = tier_text(document["tier"], (document["score"] or {}).get("released"))
        said = f" ({tier})" if document["tier"] else ""
        yield "gate", f"{name.replace('_', '-')}: {document['verdict']}{said}"
    found = list(document.get("findings", ()))
    for evaluation in () if answer.ok else document.get("evaluations", ()):
        found += evaluation["findings"]
    for one in found:
        yield "finding", f"[{one['code']}] {one['message']} {one['hint']}"
    for one in document.get("decisions", ()):
        yield "decided", f"{one['id']}  {one['kind']} by {one['by']}"
