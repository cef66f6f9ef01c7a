"""`harness evaluate EXP`: score its checkpoints; labels never meet the agent's code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.answer import Answer, give
from harness.cli.changing import changing
from harness.cli.chosen import EXPERIMENT, chosen
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import json_option, project_option
from harness.domain.records import Experiment
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import Split
from harness.evaluation.experiment import evaluate_experiment
from harness.evaluation.outcome import more_bits
from harness.evaluation.predict_code import way_with_predict
from harness.evaluation.released import bits_limit
from harness.evaluation.scores import trained_seconds
from harness.gates.check import require_validation_passed
from harness.ledger.facts import Evaluation
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.rendering.standing import next_step
from harness.views.snapshot import split_score
from harness.views.tables import score_text, value_text


@click.command("evaluate")
@EXPERIMENT
@click.option("--split", type=click.Choice(["validation", "held-out"]), default="validation")
@isolation_options
@project_option
@json_option
def command(
    experiment: str | None, split: str, sandbox: str, reason: str, project: Path, as_json: bool
) -> None:
    """Recompute the score of EXPERIMENT (default: the open one) from its checkpoints, per seed.

    A held-out evaluation counts against the plan's query budget. Exit 1 when a checkpoint could not
    be scored.
    """
    with changing(project) as opened:
        experiment = chosen(opened, experiment, "harness evaluate")
        on = Split(split.replace("-", "_"))
        used = isolation(opened, sandbox, reason, verb="evaluate", experiment=experiment)
        answer = evaluate_answer(opened, experiment, on, used)
    give(answer, as_json=as_json)


def evaluate_answer(project: Project, experiment: str, on: Split, sandbox: Sandbox) -> Answer:
    """Evaluate what has no value yet on the split, as `evaluate_experiment`."""
    evaluations = evaluate_experiment(
        project, experiment, on, sandbox, admit=require_validation_passed
    )
    trained = {
        run.id: None if run.seconds is None else round(trained_seconds(project.ledger, run), 1)
        for run in project.ledger.runs(experiment)
    }
    record = project.ledger.experiment(experiment)
    total = split_score(project, record, on)
    then = _then(project, record, total["released"], evaluations)
    then.append(next_step(project, experiment).line)
    results: list[dict[str, Any]] = [
        {
            "run": evaluation.run,
            "seed": evaluation.seed,
            "value": evaluation.value,
            "scored": evaluation.scored,
            "n": evaluation.n,
            "predict_seconds": evaluation.predict_seconds,
            "training_seconds": trained[evaluation.run],
            "findings": [finding.plain() for finding in evaluation.findings],
        }
        for evaluation in evaluations
    ]
    ok = bool(results) and all(row["scored"] for row in results)
    lines = [f"{row['run']}  seed {row['seed']}  {value_text(row)}{_took(row)}" for row in results]
    lines += [f"  - {', '.join(runs)}: {text}" for text, runs in _by_finding(results).items()]
    lines.append(
        f"{experiment}  {score_text(total)}"
        if results
        else f"{experiment} has no completed run to evaluate"
    )
    document = {
        "experiment": experiment,
        "split": on,
        "evaluations": results,
        "score": total["score"],
        "released": total["released"],
        "next": then,
    }
    return Answer(document=document, lines=[*lines, *then], ok=ok)


def _then(
    project: Project,
    record: Experiment,
    released: dict[str, Any] | None,
    evaluations: Sequence[Evaluation],
) -> list[str]:
    """What leads on: from a coarse answer, and from a predict that failed or was mended."""
    lines = []
    if released is not None and released["coarse"]:
        approved = plan_of(project, record)
        least = " The tier may be a higher one." if released["or_more"] else ""
        lines.append(
            "The answer is coarse: few of the plan's bits are left, so it tells less than there"
            f" is.{least} For more: {more_bits(approved.path, bits_limit(approved), record.id)}"
        )
    codes = {found.code for one in evaluations for found in one.findings}
    way = way_with_predict(project, record.id, codes)
    return [*lines, way] if way else lines


def _took(row: dict[str, Any]) -> str:
    predict, training = row["predict_seconds"], row["training_seconds"]
    if predict is None or training is None:
        return ""
    return f"  (predict took {predict:.1f} s, training {training:.1f} s)"


def _by_finding(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Finding -> the runs that have it: the same crash of three seeds is printed once."""
    runs: dict[str, list[str]] = {}
    for row in results:
        for finding in row["findings"]:
            runs.setdefault(f"{finding['message']} {finding['hint']}", []).append(row["run"])
    return runs
