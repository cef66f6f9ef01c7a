"""`harness gate check | approve | reject`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from harness.audit.activity import transcript_home
from harness.cli.answer import Answer, give
from harness.cli.changing import changing
from harness.cli.chosen import EXPERIMENT, chosen, require_id
from harness.cli.output import CommandGroup, environment, json_option, project_option
from harness.cli.person import require_person
from harness.decisions.lessons import candidate_line, note_candidates
from harness.decisions.person import approve, reject
from harness.domain.findings import as_text
from harness.domain.grade import Grade
from harness.domain.launch_options import RAY, SLURM
from harness.domain.records import Run
from harness.domain.statuses import ExperimentStatus, GateName, Verdict, spoken
from harness.evaluation.outcome import explain
from harness.gates.check import check_gate
from harness.ledger.facts import Decision, RecordedVerdict
from harness.ledger.project import Project
from harness.process import boot_id
from harness.rendering.standing import NextStep, next_step
from harness.views.tables import tier_text

REASON = click.option("--reason", required=True, help="Why; recorded in the decision log.")


@click.group("gate", cls=CommandGroup)
def command() -> None:
    """Ask a gate for its verdict, or decide as a person."""


@command.command("check")
@EXPERIMENT
@click.option(
    "--gate",
    type=click.Choice(["validation", "held-out"]),
    default=None,
    help="Default: the gate that is due next.",
)
@project_option
@json_option
def check(experiment: str | None, gate: str | None, project: Path, as_json: bool) -> None:
    """Judge EXPERIMENT (default: the open one) on its evidence; exit 0 only for PASS.

    The same evidence gives the same verdict. For a kept or discarded experiment nothing is
    recorded: the verdict of its decision stands.
    """
    with changing(project) as opened:
        experiment = chosen(opened, experiment, "harness gate check")
        name = GateName(gate.replace("-", "_")) if gate else None
        answer = check_answer(opened, experiment, name)
    give(answer, as_json=as_json)


def check_answer(project: Project, experiment: str, gate: GateName | None = None) -> Answer:
    """The verdict of the gate, as `check_gate`."""
    verdict = check_gate(
        project,
        experiment,
        gate,
        transcripts=[transcript_home(environment())],
    )
    candidates = note_candidates(project, experiment) if verdict.id else []
    compared = _compared(verdict)
    document = {
        "experiment": experiment,
        "gate": verdict.gate,
        "verdict": verdict.verdict,
        "recorded": bool(verdict.id),
        "tier": verdict.tier,
        "score": _shown_score(verdict),
        "comparison": verdict.comparison,
        "compared": compared,
        "findings": [finding.plain() for finding in verdict.findings],
        "notes": list(verdict.notes),
        "evidence": [
            {"name": name, "sha256": digest} for name, digest in sorted(verdict.evidence.items())
        ],
    }
    asked, released = spoken(verdict.gate), (verdict.score or {}).get("released")
    head = f"{experiment}  {asked} gate: {verdict.verdict}" + (
        f" ({tier_text(verdict.tier, released)})" if verdict.tier else ""
    )
    notes = [f"  noticed: {note}" for note in verdict.notes]
    shown = (
        ""
        if verdict.id
        else f"  {experiment} is already decided: its verdict stands, nothing was recorded."
    )
    then = _next(verdict, next_step(project, experiment)) if verdict.id else ""
    found = map(candidate_line, candidates)
    lines = (head, as_text(verdict.findings), *compared, *notes, *found, shown, then)
    return Answer(
        document=document,
        lines=[line for line in lines if line],
        ok=verdict.verdict is Verdict.PASS,
    )


@command.command("approve")
@click.argument("experiment")
@REASON
@click.option(
    "--override",
    is_flag=True,
    help="Keep it although a gate did not pass; recorded as an OVERRIDE.",
)
@project_option
@json_option
def approve_command(
    experiment: str, reason: str, override: bool, project: Path, as_json: bool
) -> None:
    """Keep EXPERIMENT, which needs a PASS on validation and held-out, or --override.

    Must be run by a person.
    """
    by = require_person("gate approve", environment())
    require_id(experiment, "harness gate approve")
    with changing(project) as opened:
        decisions = approve(opened, experiment, by=by, reason=reason, override=override)
        answer = decisions_answer(opened, decisions)
    give(answer, as_json=as_json)


@command.command("reject")
@click.argument("experiment")
@REASON
@project_option
@json_option
def reject_command(experiment: str, reason: str, project: Path, as_json: bool) -> None:
    """Discard EXPERIMENT. Must be run by a person."""
    by = require_person("gate reject", environment())
    require_id(experiment, "harness gate reject")
    with changing(project) as opened:
        was_kept = opened.ledger.experiment(experiment).status is ExperimentStatus.KEPT
        decisions = reject(opened, experiment, by=by, reason=reason)
        answer = decisions_answer(opened, decisions)
        told = [f"{experiment} was kept: this replaces that decision."] if was_kept else []
        told += _still_trains(opened, experiment)
        answer = replace(answer, lines=[*told, *answer.lines])
    give(answer, as_json=as_json)


def _still_trains(project: Project, experiment: str) -> list[str]:
    return [
        f"{experiment}/{run.id} trains on to its end, and no further seed of it begins;"
        f" {_ended(run)}"
        for run in project.ledger.open_runs()
        if run.experiment == experiment and run.supervisor.get("boot") == boot_id()
    ]


def _ended(run: Run) -> str:
    if run.job is not None and run.job["launcher"] in (RAY, SLURM):
        return "end the `harness train` that placed it, which takes it back."
    return f"`kill {run.supervisor['pid']}` ends it as cancelled."


def _shown_score(verdict: RecordedVerdict) -> dict[str, Any] | None:
    """The verdict's score with its grade in words; the verdict itself holds codes."""
    score = verdict.score
    return score and {**score, "evidence": Grade.read(score.get("not_isolated")).words}


def _compared(verdict: RecordedVerdict) -> list[str]:
    """The comparison behind the verdict, and what a PASS is worth where it is not better."""
    comparison = verdict.comparison
    if comparison is None:
        return []
    lines = [f"  compared with {comparison['against']}: {explain(comparison)}"]
    if verdict.verdict is Verdict.PASS and comparison["better"] is not True:
        lines.append(
            "  PASS says that the numbers are true and reach a tier. KEEP needs better: the loop"
            " keeps none of these by itself."
        )
    return lines


def _next(verdict: RecordedVerdict, step: NextStep) -> str:
    """After a PASS that is not better there is a second way."""
    passed = verdict.verdict is Verdict.PASS and verdict.gate == GateName.VALIDATION
    if passed and (verdict.comparison or {}).get("better") is False:
        keep = f"harness keep {verdict.experiment} --reason TEXT"
        return f"{step.line}; or keep it all the same: `{keep}`"
    return step.line


def decisions_answer(project: Project, decisions: list[Decision]) -> Answer:
    rows = [
        {
            "id": decision.id,
            "kind": decision.kind,
            "experiment": decision.experiment,
            "by": decision.by,
        }
        for decision in decisions
    ]
    lines = [f"{row['id']}  {row['kind']} {row['experiment']} by {row['by']}" for row in rows]
    return Answer(document={"decisions": rows}, lines=[*lines, next_step(project).line])
