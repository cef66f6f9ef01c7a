"""Reads the loop's state from ledger and disk; changes nothing."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.artifacts.trees import own_trees
from harness.clock import parse_iso
from harness.decisions.diagnoses import model_name
from harness.domain.findings import BYPASSED, STOPPED
from harness.domain.records import Experiment, Run
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    DecisionKind,
    GateName,
    RunStatus,
    Split,
)
from harness.evaluation.comparison import is_better
from harness.evaluation.experiment import awaiting, unlooked
from harness.evaluation.outcome import explain
from harness.evaluation.release import has_room
from harness.evaluation.released import tier_now, told_now
from harness.evaluation.scores import counted_runs, started
from harness.gates.alarms import open_by_run, undiagnosed_runs
from harness.gates.collect import changed
from harness.gates.run_evidence import next_ideas
from harness.ledger.facts import ApprovedPlan, Decision, RecordedVerdict, Session
from harness.ledger.project import Project
from harness.ledger.spending import spent
from harness.loop.limits import limits_of, phase_of, trained_since
from harness.loop.progress import improvements, scored_by
from harness.loop.state import (
    ExperimentState,
    LoopSpending,
    LoopState,
    RunState,
    SessionState,
    VerdictState,
)
from harness.plans.approved import objective_of, secret
from harness.plans.parse import Plan, plan_from

_REJECTS = (DecisionKind.REJECT, DecisionKind.ROLLBACK)


def load_state(
    project: Project,
    *,
    supervised: Callable[[Run], bool],
    held: Callable[[str], bool] = lambda _experiment: False,
    parallel: int = 1,
) -> LoopState:
    """What `next_step` needs to know now.

    Args:
        supervised: whether the supervisor of an open run is alive.
        held: whether some living process supervises an experiment; asked when `parallel` > 1.
        parallel: how many experiments may be open at once.

    Raises RefusedError when no plan is approved.
    """
    approved = project.plan()
    plan = plan_from(approved.content)
    known = [item for item in project.ledger.experiments() if item.plan == approved.name]
    here = {experiment.id for experiment in project.here(known)}
    experiments = [
        experiment
        for experiment in known
        # What another tree has in work is led there.
        if experiment.status in CLOSED_EXPERIMENTS or experiment.id in here
    ]
    verdicts = [project.ledger.verdicts(experiment.id) for experiment in experiments]
    scored = [scored_by(recorded) for recorded in verdicts]
    gains = functools.partial(is_better, project, approved)
    progress = improvements(scored, objective_of(approved), gains)
    rejected = {one.experiment for one in project.ledger.decisions() if one.kind in _REJECTS}
    repeats = {made.reproduction for made, _ in project.ledger.reproductions()}
    in_work = [one for one in experiments if one.status not in CLOSED_EXPERIMENTS]
    states = [
        replace(
            _experiment(project, experiment, recorded, improved=better, supervised=supervised),
            here=experiment.id in here,
            parent=experiment.parent,
            repeats=experiment.id in repeats,
            unsound=not achieved.competes or experiment.id in rejected,
            held=parallel > 1 and experiment in in_work and held(experiment.id),
        )
        for experiment, recorded, achieved, better in zip(
            experiments, verdicts, scored, progress, strict=True
        )
    ]
    _add_ideas(project, states)
    again = trained_since(project, approved)
    return LoopState(
        limits=limits_of(project, approved, plan),
        spent=replace(
            _spent(project, approved, plan, in_work[0] if in_work else None, supervised),
            elsewhere=len(known) - len(experiments),
        ),
        experiments=tuple(states),
        sessions=_sessions(project, approved),
        parallel=parallel,
        phase=phase_of(project, approved),
        earlier=sum(one.opened_at <= again for one in experiments),
    )


def _add_ideas(project: Project, states: list[ExperimentState]) -> None:
    """Those of the newest experiment here."""
    own = [place for place, one in enumerate(states) if one.here]
    if own:
        newest = states[own[-1]]
        ideas = next_ideas(project.layout.root, project.layout.experiment(newest.id, "next"))
        states[own[-1]] = replace(newest, ideas=tuple(ideas))


def _spent(
    project: Project,
    approved: ApprovedPlan,
    plan: Plan,
    in_turn: Experiment | None,
    supervised: Callable[[Run], bool],
) -> LoopSpending:
    ledger = project.ledger
    used = ledger.queries(approved.name, Split.HELD_OUT)
    seconds = ledger.training_seconds(approved.name)
    now, most = project.clock.now(), plan.budget.run_minutes * 60
    for run in ledger.open_runs():
        mine = ledger.experiment(run.experiment).plan == approved.name
        if mine and run.started_at is not None and supervised(run):
            began = parse_iso(run.started_at)
            seconds += min(max((now - began).total_seconds(), 0.0), most)
    paid = spent(project.ledger, project.layout, approved.name)
    return LoopSpending(
        minutes=seconds / 60,
        usd=paid.usd,
        tokens=paid.tokens,
        held_out_left=max(0, plan.oracle.queries - used),
        untellable=_untellable(project, approved, in_turn),
    )


def _untellable(
    project: Project, approved: ApprovedPlan, in_turn: Experiment | None
) -> frozenset[Split]:
    """The splits that the experiment cannot be looked at any more, for the plan's bits. One
    that it was looked at, and told, needs no look for a reference that changed since."""
    if in_turn is None:
        return frozenset()
    return frozenset(
        split
        for split in Split
        if secret(approved, split.value)
        and (
            unlooked(project, in_turn.id, split)
            or not told_now(project, in_turn.id, approved, split)
        )
        and not has_room(project, in_turn.id, approved, split)
    )


def own_sessions(project: Project, approved: ApprovedPlan) -> list[Session]:
    """Those of this tree since this plan was first approved, oldest first: each plan numbers its
    experiments from 1, and each tree its own."""
    first = next(plan.at for plan in project.ledger.plans() if plan.name == approved.name)
    trees = own_trees(project.layout) | {""}
    return [
        session
        for session in project.ledger.sessions()
        if session.started_at >= first and session.tree in trees
    ]


def _sessions(project: Project, approved: ApprovedPlan) -> tuple[SessionState, ...]:
    sessions = own_sessions(project, approved)
    ended = project.ledger.loop_ended_at() or "" if sessions else ""
    return tuple(
        SessionState(
            step=session.step,
            outcome=session.outcome,
            counted=session.started_at > ended,
            detail=session.detail,
        )
        for session in sessions
    )


def _experiment(
    project: Project,
    experiment: Experiment,
    verdicts: Sequence[RecordedVerdict],
    *,
    improved: bool,
    supervised: Callable[[Run], bool],
) -> ExperimentState:
    """A decided experiment is known by its verdicts; for an open one the evidence is read again."""
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
    runs = started(project.ledger.runs(experiment.id))
    # Lost runs of earlier code say nothing about the machine now: a new build starts at zero.
    of_newest = [run for run in runs if (run.code, run.argv) == (runs[-1].code, runs[-1].argv)]
    return ExperimentState(
        id=experiment.id,
        status=experiment.status,
        hypothesis=experiment.hypothesis,
        model=model_name(project, experiment.id),
        alarms=_alarms(project, experiment.id),
        undiagnosed=tuple(undiagnosed_runs(project, experiment.id)),
        methods_written=os.path.lexists(project.layout.experiment(experiment.id, "methods")),
        runs=_runs(runs, supervised),
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
        for alarm in sorted(raised, key=lambda alarm: alarm.severity.weight)
    }


def _runs(runs: Sequence[Run], supervised: Callable[[Run], bool]) -> tuple[RunState, ...]:
    return tuple(
        RunState(
            id=run.id,
            seed=run.seed,
            status=run.status,
            supervised=run.ended_at is None and supervised(run),
            bypassed=any(finding.code == BYPASSED for finding in run.findings),
            reason=run.reason,
            stopped_by=next(
                (finding.data["alarm"] for finding in run.findings if finding.code == STOPPED),
                "",
            ),
        )
        for run in counted_runs(runs)
    )


def _verdict(
    project: Project, verdicts: Sequence[RecordedVerdict], gate: GateName, *, closed: bool
) -> VerdictState | None:
    mine = [recorded for recorded in verdicts if recorded.gate == gate]
    if not mine:
        return None
    newest = mine[-1]
    comparison: Mapping[str, Any] = newest.comparison or {}
    score = newest.score if newest.score and "released" not in newest.score else {}
    return VerdictState(
        id=newest.id,
        verdict=newest.verdict,
        current=closed or not changed(project, newest),
        findings=newest.findings,
        tier=tier_now(project, newest),
        better=comparison.get("better"),
        why=_why(comparison),
        score=score.get("mean"),
        spread=score.get("spread"),
        recorded=len(mine),
    )


def _why(comparison: Mapping[str, Any]) -> str:
    told = f"against {comparison['against']}: {explain(comparison)}" if comparison else ""
    return told or "there is nothing to compare."


def _decided(
    decisions: Sequence[Decision], verdicts: Sequence[RecordedVerdict]
) -> DecisionKind | None:
    """The newest decision about the experiment itself, unless there is a newer verdict."""
    about = [decision for decision in decisions if decision.kind is not DecisionKind.LOWER]
    if not about:
        return None
    newest = about[-1]
    since = max((verdict.at for verdict in verdicts), default="")
    return newest.kind if newest.at >= since else None
