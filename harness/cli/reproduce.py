"""`harness reproduce EXP`: train a kept experiment again from its snapshot, with its command,
configuration and seeds, and say whether its score comes again."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.artifacts.content import write_below
from harness.artifacts.objects import load_object
from harness.cli.answer import Answer, give
from harness.cli.changing import changing
from harness.cli.chosen import require_id
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import environment, json_option, project_option, tell
from harness.cli.person import caller, session_of
from harness.cli.train import told
from harness.decisions.experiments import decide, open_experiment
from harness.domain.records import Experiment, Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import DecisionKind, ExperimentStatus, RunStatus, Split
from harness.errors import RefusedError
from harness.evaluation.experiment import evaluate_experiment
from harness.evaluation.reproduction import judged
from harness.evaluation.scores import counted_runs, recorded_evaluations
from harness.gates.check import require_validation_passed
from harness.ledger.facts import ApprovedPlan, ReproductionJudged
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, objective_of, plan_of, secret
from harness.plans.judge import require_judge
from harness.runs.lock import looping
from harness.runs.train import train

_BY = "harness"
_RATIONALE = "A result that does not come again is luck of the machine or of hidden state."


@click.command("reproduce")
@click.argument("experiment")
@isolation_options
@project_option
@json_option
def command(experiment: str, sandbox: str, reason: str, project: Path, as_json: bool) -> None:
    """Train EXPERIMENT, a kept one, again from its snapshot with its own command, config.yaml and
    seeds; compare the scores on validation within the noise of the seeds.

    It is an experiment of its own: it counts in the budget, and is discarded when it is judged.
    Interrupted, the same call goes on. Where the labels of validation are hidden, as of a table
    that `harness init` split, it is refused: it would tell of them. Exit 1 unless the score comes
    again.
    """
    require_id(experiment, "harness reproduce")
    with changing(project) as opened, looping(opened.layout):
        record = opened.ledger.experiment(experiment)
        approved = _require_reproducible(opened, record)
        used = isolation(opened, sandbox, reason, verb="reproduce", experiment=experiment)
        answer = _answer(opened, record, approved, used, quiet=as_json)
    give(answer, as_json=as_json)


def _require_reproducible(project: Project, record: Experiment) -> ApprovedPlan:
    """Raises RefusedError (not_kept, labels_hidden, plan_changed, no_runs, judge_changed), before
    an experiment is opened."""
    if record.status is not ExperimentStatus.KEPT:
        raise RefusedError(
            f"{record.id} is {record.status}; expected a kept one: what is built on is reproduced.",
            hint=f"`harness train {record.id}` trains one that is not decided.",
            code="not_kept",
        )
    approved = plan_of(project, record)
    if secret(approved, Split.VALIDATION.value):
        raise RefusedError(
            f"The labels of validation are hidden, so whether the score of {record.id} comes again"
            " is not told.",
            hint="A person may evaluate on held-out, which costs a look.",
            code="labels_hidden",
        )
    if project.plan().basis != approved.basis:
        raise RefusedError(
            f"Data, metric or seeds changed since {record.id} was judged; its score would be of"
            " something else.",
            hint=f"Approve version {approved.version} of {approved.path} again.",
            code="plan_changed",
        )
    if not _first(project, record):
        raise RefusedError(
            f"{record.id} has no completed run.",
            hint="There is nothing to repeat.",
            code="no_runs",
        )
    require_judge(project)
    return approved


def _first(project: Project, record: Experiment) -> list[Run]:
    runs = counted_runs(project.ledger.runs(record.id))
    return [run for run in runs if run.status is RunStatus.COMPLETED]


def _answer(
    project: Project, record: Experiment, approved: ApprovedPlan, sandbox: Sandbox, *, quiet: bool
) -> Answer:
    first = _first(project, record)
    again = _opened(project, record)
    if not quiet:
        tell(f"{again.id}  opened: it trains the snapshot {first[-1].code[:12]} of {record.id}")
    _take_config(project, first[-1], again.id)
    report = train(
        project,
        again.id,
        list(first[-1].argv),
        sandbox=sandbox,
        session=session_of(environment()),
        code=first[-1].code,
        inherited=os.environ,
        on_event=lambda event: told(project, event, quiet=quiet),
    )
    if report.ok:
        evaluate_experiment(
            project, again.id, Split.VALIDATION, sandbox, admit=require_validation_passed
        )
    judgement = _judged(project, record, again, approved, first[-1])
    project.ledger.append(judgement)
    decide(
        project,
        kind=DecisionKind.CANCEL,
        experiment=again.id,
        by=_BY,
        context=f"{again.id} trained {record.id} again.",
        choice=f"Discard {again.id}: it is no candidate of its own.",
        alternatives="none",
        reason=f"{record.id}: {judgement.outcome}; {judgement.why}.",
        confidence="high",
    )
    return _shown(judgement)


def _opened(project: Project, record: Experiment) -> Experiment:
    """A new experiment, or the one that an interrupted call left. Raises RefusedError."""
    hypothesis = f"{record.id} comes again: its code, command, configuration and seeds"
    for one in project.undecided():
        if (one.hypothesis, one.parent) == (hypothesis, record.id):
            return one
    return open_experiment(
        project,
        hypothesis=hypothesis,
        rationale=_RATIONALE,
        parent=record.id,
        by=caller(environment()),
        session=session_of(environment()),
        parallel=1,
    )


def _take_config(project: Project, run: Run, experiment: str) -> None:
    if run.config is not None:
        path = project.layout.experiment(experiment, "config")
        write_below(project.layout.root, path, load_object(project.layout.objects, run.config))


def _judged(
    project: Project,
    record: Experiment,
    again: Experiment,
    approved: ApprovedPlan,
    before: Run,
) -> ReproductionJudged:
    scores = {one.id: _scores(project, one.id, approved) for one in (record, again)}
    result = judged(scores[record.id], scores[again.id], objective_of(approved))
    after = project.ledger.runs(again.id)
    return ReproductionJudged(
        experiment=record.id,
        reproduction=again.id,
        metric=str(approved.content["oracle"]["metric"]),
        split=Split.VALIDATION.value,
        outcome=result.outcome.value,
        difference=result.difference,
        floor=result.floor,
        scores=[
            {"seed": seed, "first": value, "again": scores[again.id].get(seed)}
            for seed, value in sorted(scores[record.id].items())
        ],
        changed=_changed(approved, before, after[-1]) if after else [],
        why=result.why,
        by=caller(environment()),
    )


def _scores(project: Project, experiment: str, approved: ApprovedPlan) -> Mapping[int, float]:
    made = recorded_evaluations(project, experiment, approved, Split.VALIDATION)
    return {one.seed: one.value for one in made if one.value is not None}


def _changed(approved: ApprovedPlan, before: Run, after: Run) -> list[str]:
    """What was not as it was at the first training, by name."""
    changed = [
        name
        for name in ("python", "libraries", "os", "cpu", "gpus", "threads")
        if before.environment.get(name) != after.environment.get(name)
    ]
    if before.data and before.data != data_hashes(approved):
        changed.append("data")
    if before.sandbox != after.sandbox:
        changed.append("sandbox")
    return changed


def _shown(made: ReproductionJudged) -> Answer:
    ok = made.outcome in ("exact", "reproduced")
    lines = [f"{made.experiment}  {made.outcome}: {made.why} ({made.metric} on validation)"]
    for row in made.scores:
        again = "no score" if row["again"] is None else f"{row['again']:.6g}"
        lines.append(f"  seed {row['seed']}  first {row['first']:.6g}  again {again}")
    if made.changed:
        lines.append(f"  not as it was then: {', '.join(made.changed)}")
    document: dict[str, Any] = {**made.body(), "ok": ok}
    return Answer(document=document, lines=lines, ok=ok)
