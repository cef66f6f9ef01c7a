"""`harness evaluate EXP`: score its checkpoints; labels never meet the agent's code."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.answer import Answer, give
from harness.cli.changing import changing
from harness.cli.chosen import EXPERIMENT, chosen
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import environment, json_option, project_option
from harness.cli.person import session_of
from harness.cli.train import told
from harness.domain.records import Experiment
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import Split
from harness.errors import UsageError
from harness.evaluation.experiment import evaluate_experiment
from harness.evaluation.outcome import more_bits
from harness.evaluation.predict_sources import way_with_predict, whose
from harness.evaluation.released import bits_limit
from harness.evaluation.scores import trained_seconds
from harness.gates.check import require_validation_passed
from harness.ledger.facts import Evaluation
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.rendering.standing import next_step
from harness.runs.predict_trial import AS_IT_IS, try_now
from harness.runs.take import take
from harness.views.snapshot import split_score
from harness.views.tables import score_text, value_text


@click.command("evaluate")
@EXPERIMENT
@click.option("--split", type=click.Choice(["validation", "held-out"]), default="validation")
@click.option(
    "--predict-from",
    "code",
    default=None,
    metavar="CODE",
    help="Take predict from a commit (HEAD, a branch, ...) or, with `.`, as the files are now.",
)
@click.option(
    "--check",
    "checks",
    is_flag=True,
    help="Only try predict on eight training rows, by the files as they are now.",
)
@isolation_options
@project_option
@json_option
def command(
    experiment: str | None,
    split: str,
    code: str | None,
    checks: bool,
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Recompute the score of EXPERIMENT (default: the open one) from its checkpoints, per seed.

    A held-out evaluation counts against the plan's query budget. Exit 1 when a checkpoint could not
    be scored. --predict-from scores the weights that are there by other predict code, without
    training; what is shown names both. --check also works while the first seed trains: it takes the
    newest checkpoint, scores nothing and records nothing.
    """
    on = Split(split.replace("-", "_"))
    if (checks or code is not None) and on is Split.HELD_OUT:
        option = "--check" if checks else "--predict-from"
        raise UsageError(
            f"{option} is for validation: mended code is scored there before held-out.",
            hint=f"Leave --split out: `harness evaluate EXP {option}{'' if checks else ' CODE'}`.",
        )
    with changing(project) as opened:
        experiment = chosen(opened, experiment, "harness evaluate")
        used = isolation(opened, sandbox, reason, verb="evaluate", experiment=experiment)
        if checks:
            answer = check_answer(opened, experiment, code, used)
        else:
            if code is not None:
                _take_predict(opened, experiment, code, used, quiet=as_json)
            answer = evaluate_answer(opened, experiment, on, used)
    give(answer, as_json=as_json)


def _take_predict(
    project: Project, experiment: str, code: str, sandbox: Sandbox, *, quiet: bool
) -> None:
    """The experiment's own weights with other code: runs of their own, nothing is trained."""
    take(
        project,
        experiment,
        [experiment],
        sandbox=sandbox,
        session=session_of(environment()),
        inherited=os.environ,
        code=None if code == AS_IT_IS else code,
        on_event=functools.partial(told, project, quiet=quiet),
    )


def check_answer(project: Project, experiment: str, code: str | None, sandbox: Sandbox) -> Answer:
    """Whether predict, by the files as they are now or by those of a commit, answers a few training
    rows with the newest weights. Nothing is recorded."""
    tried = try_now(project, experiment, code, sandbox)
    trial, name = tried.trial, f"{experiment}/{tried.run}"
    ok = not trial.findings
    then = f"`harness evaluate {experiment} --predict-from {code or AS_IT_IS}` scores it so."
    if not ok:
        again = "" if code is None else f" --predict-from {code}"
        then = f"Mend predict, then `harness evaluate {experiment} --check{again}`."
    elif not tried.changed:
        then = f"The code is that of the runs: `harness evaluate {experiment}` scores it."
    elif not tried.trained:
        then = f"When all seeds are trained: {then}"
    said = "answers" if ok else "does not answer"
    took = f", {trial.seconds:.1f} s" if ok else ""
    head = f"{name}  predict {said} {trial.rows} training rows with {tried.weights}{took}"
    found = [f"  - {one.message} {one.hint}" for one in trial.findings]
    document = {
        "experiment": experiment,
        "ok": ok,
        "run": tried.run,
        "checkpoint": tried.checkpoint,
        "rows": trial.rows,
        "predict_seconds": round(trial.seconds, 1),
        "findings": [one.plain() for one in trial.findings],
        "next": [then],
    }
    return Answer(document=document, lines=[head, *found, then], ok=ok)


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
    lineage = whose(project, experiment)
    ok = bool(results) and all(row["scored"] for row in results)
    lines = [f"{row['run']}  seed {row['seed']}  {value_text(row)}{_took(row)}" for row in results]
    lines += [f"  - {', '.join(runs)}: {text}" for text, runs in _by_finding(results).items()]
    lines.append(
        f"{experiment}  {score_text(total)}"
        if results
        else f"{experiment} has no completed run to evaluate"
    )
    if lineage:
        lines.append(f"scored by the {lineage}")
    document = {
        "experiment": experiment,
        "split": on,
        "predict_code": lineage,
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
