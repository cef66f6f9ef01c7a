"""Reading the loop's state from ledger and disk. Nothing is changed."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.decisions.diagnoses import model_name, undiagnosed_runs
from harness.domain.findings import BYPASSED, STOPPED, Finding
from harness.domain.records import ApprovedPlan, Decision, Experiment, RecordedVerdict, Run
from harness.domain.statuses import CLOSED_EXPERIMENTS, DecisionKind, GateName, RunStatus, Split
from harness.evaluation.experiment import awaiting
from harness.evaluation.scores import objective_of
from harness.gates.collect import changed
from harness.gates.evidence import counted_runs
from harness.gates.next_idea import next_ideas
from harness.gates.open_alarms import open_by_run
from harness.ledger.project import Project
from harness.ledger.spending import spent_usd
from harness.ledger.training_time import training_seconds
from harness.loop.progress import Scored, improvements
from harness.loop.records import (
    ExperimentState,
    Limits,
    LoopState,
    RunState,
    SessionState,
    Spent,
    VerdictState,
)
from harness.plans.plan import Plan, plan_from

__all__ = ["LoopState", "load_state"]


def load_state(
    project: Project, *, supervised: Callable[[Run], bool], unchanged: int = 0
) -> LoopState:
    """What `next_step` needs to know now.

    Args:
        supervised: whether the process that watches an open run lives, e.g. by runs.processes.
        unchanged: how many steps in a row left the state as it was; counted by the caller, who
        compares states.

    Raises RefusedError when no plan is approved.
    """
    approved = project.plan()
    plan = plan_from(approved.content)
    experiments = [item for item in project.ledger.experiments() if item.plan == approved.name]
    runs = {item.id: project.ledger.runs(item.id) for item in experiments}
    verdicts = {item.id: project.ledger.verdicts(item.id) for item in experiments}
    progress = improvements(
        [_scored(verdicts[item.id]) for item in experiments], objective_of(approved)
    )
    states = [
        _experiment(
            project, item, runs[item.id], verdicts[item.id], improved=better, supervised=supervised
        )
        for item, better in zip(experiments, progress, strict=True)
    ]
    if states:
        ideas = next_ideas(project.layout.root, project.layout.experiment(states[-1].id, "next"))
        states[-1] = replace(states[-1], ideas=tuple(ideas))
    return LoopState(
        limits=_limits(plan),
        spent=_spent(project, approved, plan),
        experiments=tuple(states),
        sessions=_sessions(project, approved),
        unchanged=unchanged,
    )


def _limits(plan: Plan) -> Limits:
    return Limits(
        seeds=plan.oracle.seeds,
        experiments=plan.budget.experiments,
        total_minutes=plan.budget.total_minutes,
        usd=plan.budget.usd,
        stop_tier=plan.loop.stop_tier,
        patience=plan.loop.patience,
        mode=plan.gates.mode,
        references=bool(plan.references),
    )


def _spent(project: Project, approved: ApprovedPlan, plan: Plan) -> Spent:
    looks = project.ledger.queries(approved.name, Split.HELD_OUT)
    return Spent(
        minutes=training_seconds(project.ledger, approved.name) / 60,
        usd=spent_usd(project.ledger, project.layout, approved.name),
        looks_left=max(0, plan.oracle.queries - looks),
    )


def _sessions(project: Project, approved: ApprovedPlan) -> tuple[SessionState, ...]:
    """Those since this plan was first approved: indices of experiments start anew with another
    plan."""
    first = next(plan.at for plan in project.ledger.plans() if plan.name == approved.name)
    sessions = [item for item in project.ledger.sessions() if item.started_at >= first]
    if not sessions:
        return ()
    ended = project.ledger.loop_ended_at() or ""
    return tuple(
        SessionState(step=item.step, outcome=item.outcome, counted=item.started_at > ended)
        for item in sessions
    )


def _experiment(
    project: Project,
    experiment: Experiment,
    runs: Sequence[Run],
    verdicts: Sequence[RecordedVerdict],
    *,
    improved: bool,
    supervised: Callable[[Run], bool],
) -> ExperimentState:
    """One that is decided is told by its verdicts; of the others the evidence is read again."""
    closed = experiment.status in CLOSED_EXPERIMENTS
    validation = _verdict(project, verdicts, GateName.VALIDATION, closed=closed)
    held_out = _verdict(project, verdicts, GateName.HELD_OUT, closed=closed)
    if closed:
        return ExperimentState(
            id=experiment.id,
            status=experiment.status,
            hypothesis=experiment.hypothesis,
            alarms=_alarms(project, experiment.id),
            validation=validation,
            held_out=held_out,
            improved=improved,
        )
    of_newest = [run for run in runs if (run.code, run.argv) == (runs[-1].code, runs[-1].argv)]
    return ExperimentState(
        id=experiment.id,
        status=experiment.status,
        hypothesis=experiment.hypothesis,
        model=model_name(project, experiment.id),
        alarms=_alarms(project, experiment.id),
        undiagnosed=tuple(undiagnosed_runs(project, experiment.id)),
        methods_written=os.path.lexists(project.layout.experiment(experiment.id, "methods")),
        runs=_runs(project, experiment.id, runs, supervised),
        argv=runs[-1].argv if runs else (),
        lost=sum(run.status is RunStatus.LOST for run in of_newest),
        awaiting=frozenset(awaiting(project, experiment.id, Split.VALIDATION)),
        awaiting_held_out=frozenset(awaiting(project, experiment.id, Split.HELD_OUT)),
        result_written=os.path.lexists(project.layout.experiment(experiment.id, "result")),
        validation=validation,
        held_out=held_out,
        decided=_decided(project.ledger.decisions(experiment.id), verdicts),
        improved=improved,
    )


def _alarms(project: Project, experiment: str) -> dict[str, str]:
    """Code -> its worst severity."""
    raised = [alarm for alarms in open_by_run(project, experiment).values() for alarm in alarms]
    return {
        alarm.code: alarm.severity.value
        for alarm in sorted(raised, key=lambda item: item.severity.weight)
    }


def _runs(
    project: Project, experiment: str, runs: Sequence[Run], supervised: Callable[[Run], bool]
) -> tuple[RunState, ...]:
    finals = {item.run for item in project.ledger.checkpoints(experiment) if item.final}
    return tuple(
        RunState(
            id=run.id,
            seed=run.seed,
            status=run.status,
            supervised=run.ended_at is None and supervised(run),
            final_checkpoint=run.id in finals,
            bypassed=any(found.get("code") == BYPASSED for found in run.findings),
            reason=run.reason,
            stopped_by=next(
                (found["data"]["alarm"] for found in run.findings if found.get("code") == STOPPED),
                "",
            ),
        )
        for run in counted_runs(runs)
    )


def _verdict(
    project: Project, verdicts: Sequence[RecordedVerdict], gate: GateName, *, closed: bool
) -> VerdictState | None:
    mine = [item for item in verdicts if item.gate == gate]
    if not mine:
        return None
    newest = mine[-1]
    comparison: Mapping[str, Any] = newest.comparison or {}
    return VerdictState(
        id=newest.id,
        verdict=newest.verdict,
        current=closed or not changed(project, newest),
        findings=tuple(Finding.from_plain(plain) for plain in newest.findings),
        tier=newest.tier,
        better=comparison.get("better"),
        why=f"against {comparison['against']}: {comparison['why']}"
        if comparison
        else "there is nothing to compare.",
        recorded=len(mine),
    )


def _scored(verdicts: Sequence[RecordedVerdict]) -> Scored:
    """What the newest validation verdict says about the score."""
    mine = [item for item in verdicts if item.gate == GateName.VALIDATION]
    if not mine or mine[-1].score is None:
        return Scored(verdict=mine[-1].verdict if mine else None)
    newest, score = mine[-1], mine[-1].score
    findings = tuple(found["code"] for found in newest.findings)
    comparison = newest.comparison or {}
    return Scored(
        verdict=newest.verdict,
        findings=findings,
        values=tuple(score["values"]),
        baseline=score["baseline"],
        experiment=newest.experiment,
        against=comparison.get("against"),
        better=comparison.get("better"),
    )


def _decided(
    decisions: Sequence[Decision], verdicts: Sequence[RecordedVerdict]
) -> DecisionKind | None:
    """The newest decision, unless the evidence was judged anew after it."""
    if not decisions:
        return None
    newest = decisions[-1]
    since = max((item.at for item in verdicts), default="")
    return newest.kind if newest.at >= since else None
