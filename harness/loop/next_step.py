"""The loop as a pure function from what is known to what to do next; no file, clock or ledger.

An experiment goes Build -> Evaluate(validation) -> JudgeResult -> CheckGate(validation) -> when it
is better, Evaluate(held_out) -> CheckGate(held_out) -> Decide. Every step leaves a fact or a file
behind, so that after a cut the same state gives the step that was cut. Of several open ones the
oldest goes this way; the others train meanwhile, and wait for their turn.
"""

from collections.abc import Sequence
from dataclasses import replace

from harness.artifacts.next_ideas import Idea
from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Split,
    Verdict,
    spoken,
)
from harness.loop.branches import behind_best, parent_of_next
from harness.loop.endings import (
    ask_person,
    budget_spent,
    cannot_judge,
    discard,
    keep,
    keep_for_person,
    sessions_failed,
    stop_between,
    stopped_early,
)
from harness.loop.phases import phase_step
from harness.loop.state import ExperimentState, LoopState, VerdictState, last_place, rank, tally
from harness.loop.steps import (
    Build,
    CheckGate,
    Diagnose,
    Evaluate,
    JudgeResult,
    Recover,
    Scout,
    Settle,
    Step,
    StopLoop,
    StopReason,
    Train,
    Wait,
)

STUCK = 3
"""Steps in a row that changed nothing, before the loop stops."""
MOST_VERDICTS = 20
"""Of one gate for one experiment: the limit for evidence that keeps changing."""
MOST_ATTEMPTS = 3
"""Build attempts for one experiment while its seeds are outstanding."""
MOST_LOST = 3
"""Lost runs of an experiment, before the loop stops launching them again by itself."""
CHECKER_SESSIONS = 2
"""For each run with open alarms: the second only when the first left them unexplained."""
JUDGE_SESSIONS = 2
"""Oracle sessions for each build attempt: the second only when the first left no result.md."""

_PERMITTED = {DecisionKind.APPROVE, DecisionKind.OVERRIDE}
_FINAL = {DecisionKind.KEEP, DecisionKind.DISCARD, DecisionKind.CANCEL}


def next_step(state: LoopState) -> Step:
    """The one step that is due; a StopLoop ends the loop. Never raises; the loop always ends."""
    # Without this bound a step that leaves neither fact nor file behind would be due for ever.
    if state.unchanged >= STUCK:
        return StopLoop(
            reason=StopReason.FAILURES, detail=f"{state.unchanged} steps in a row changed nothing."
        )
    own = [experiment for experiment in state.experiments if experiment.here]
    opened = [(place, one) for place, one in enumerate(own, start=1) if not one.closed]
    if not opened:
        stop = stop_between(state)
        return phase_step(state, stop) or stop or _build(state, len(own) + 1, None)
    # The oldest has its turn: looks and decisions keep the order in which experiments were opened.
    step = _continue(state, *opened[0])
    if isinstance(step, Wait) and state.parallel > 1:
        return _meanwhile(state, opened[1:], len(own) + 1) or step
    return step


def _meanwhile(
    state: LoopState, later: Sequence[tuple[int, ExperimentState]], index: int
) -> Step | None:
    """While the oldest trains: what makes a later one train too, else a further experiment."""
    for place, experiment in later:
        step = _continue(state, place, experiment)
        if isinstance(step, Recover | Train) or (isinstance(step, Build) and not experiment.runs):
            return step
    if len(later) + 1 >= state.parallel or stop_between(state) is not None:
        return None
    if state.phase is not None and state.phase.role is not None:
        return None
    step = _build(state, index, None)
    return step if isinstance(step, Build) else None


def _continue(state: LoopState, index: int, experiment: ExperimentState) -> Step:
    """The step of an experiment that is not decided yet."""
    # First of all: the decision stands, only the experiment's move was cut off after it.
    if experiment.decided in _FINAL:
        return Settle(experiment=experiment.id, kind=experiment.decided)
    open_runs = [run for run in experiment.runs if run.open]
    if open_runs:
        watched = all(run.supervised for run in open_runs)
        return Wait(experiment=experiment.id) if watched else Recover(experiment=experiment.id)
    if not experiment.runs:
        if experiment.held:  # its seeds wait in the queue of an engine
            return Wait(experiment=experiment.id)
        return _build(state, index, experiment)
    if _cut_short(state, experiment):
        if experiment.held:  # between two seeds
            return Wait(experiment=experiment.id)
        return Train(experiment=experiment.id, argv=experiment.argv)
    # Before the evaluation: a diagnosis explains the rows, whatever their score will be.
    if session := _diagnose(state, index, experiment) or _scout(state, index, experiment):
        return session
    if experiment.awaiting and not _bypassed(experiment):
        return _look(state, experiment, Split.VALIDATION)
    return (
        _judge_result(state, index, experiment)
        or _check_gate(experiment, GateName.VALIDATION)
        or _answer(state, index, experiment)
    )


def _look(state: LoopState, experiment: ExperimentState, split: Split) -> Step:
    if split in state.spent.untellable:
        return StopLoop(
            reason=StopReason.BUDGET,
            detail=f"{experiment.id} is due on {spoken(split)}, but what may be told of its labels"
            " is spent (oracle.bits).",
        )
    return Evaluate(experiment=experiment.id, split=split)


def _cut_short(state: LoopState, experiment: ExperimentState) -> bool:
    """Whether seeds are outstanding only because their supervisor was lost, not by a failed run."""
    done = [run for run in experiment.runs if run.status is RunStatus.COMPLETED]
    innocent = all(run.status in (RunStatus.COMPLETED, RunStatus.LOST) for run in experiment.runs)
    outstanding = len(done) < max(state.limits.seeds, len(experiment.runs))
    return (
        outstanding
        and innocent
        and not _bypassed(experiment)
        and experiment.lost < MOST_LOST
        and state.spent.minutes < state.limits.total_minutes
    )


def _bypassed(experiment: ExperimentState) -> bool:
    return any(run.bypassed for run in experiment.runs)


def _build(state: LoopState, index: int, experiment: ExperimentState | None) -> Step:
    """A session for an experiment that has no run yet."""
    # An experiment that is open already was counted when it was opened.
    spent = budget_spent(state, opens=experiment is None)
    if spent is not None:
        return spent
    sessions = tally(state.sessions, f"build-{index}-")
    if sessions.failed_too_often or sessions.cut_too_often:
        return sessions_failed("model-builder", index, "starting a run", sessions)
    return _next_build(state, index, experiment, sessions.attempt)


def _next_build(
    state: LoopState, index: int, experiment: ExperimentState | None, attempt: int
) -> Build:
    earlier = _earlier(state, experiment)
    parent, choice = parent_of_next(replace(state, experiments=earlier))
    if choice is not None and experiment is not None:
        parent, choice = experiment.parent, None  # it was chosen when it was opened
    # What another tree found is about other code.
    previous = next((item for item in reversed(earlier) if item.here), None)
    before = experiment if experiment is not None and _newest(experiment) is not None else previous
    verdict = _newest(before)
    return Build(
        index=index,
        attempt=attempt,
        parent=parent,
        choice=choice,
        experiment=None if experiment is None else experiment.id,
        findings=() if verdict is None or verdict.verdict is Verdict.PASS else verdict.findings,
        candidates=_candidates(state, before),
    )


def _candidates(state: LoopState, before: ExperimentState | None) -> tuple[Idea, ...]:
    """The previous experiment's ideas, ranked, when at least one of them answers an alarm."""
    if before is None or not any(idea.answers for idea in before.ideas):
        return ()
    tried = [experiment.hypothesis for experiment in state.experiments]
    return rank(before.ideas, before.alarms, tried)


def _earlier(state: LoopState, experiment: ExperimentState | None) -> tuple[ExperimentState, ...]:
    """Those before `experiment`, or all, where none is open."""
    known = state.experiments
    return known if experiment is None else known[: known.index(experiment)]


def _newest(experiment: ExperimentState | None) -> VerdictState | None:
    """The verdict that counts last: held-out when there is one, else validation."""
    return None if experiment is None else experiment.held_out or experiment.validation


def _diagnose(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """A training-checker session for each run with an open alarm that nothing explains.

    An alarm that stays unexplained after that is left to the gate.
    """
    for run in experiment.undiagnosed:
        sessions = tally(state.sessions, f"diagnose-{index}-{run}-")
        left = sessions.ended >= CHECKER_SESSIONS
        if sessions.cut_too_often or (left and sessions.broken):
            work = f"explaining the alarms of {run}"
            return sessions_failed("training-checker", index, work, sessions)
        if not left:
            attempt = tally(state.sessions, f"diagnose-{index}-").attempt
            step = Diagnose(
                experiment=experiment.id,
                index=index,
                run=run,
                attempt=attempt,
                model=experiment.model,
            )
            return budget_spent(state, opens=False, trains=False) or step
    return None


def _scout(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """One research-scout session that answers the diagnosis, if the plan gives it something to
    read."""
    if (
        not state.limits.references
        or not experiment.alarms
        or experiment.undiagnosed
        or experiment.methods_written
    ):
        return None
    sessions = tally(state.sessions, f"scout-{index}-")
    if sessions.ended or sessions.cut_too_often:
        return None
    spent = budget_spent(state, opens=False, trains=False)
    return spent or Scout(experiment=experiment.id, index=index, attempt=sessions.attempt)


def _judge_result(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """One oracle session for each build attempt, even without an evaluation; a second one when
    result.md is missing."""
    prefix = f"judge-{index}-"
    sessions = tally(state.sessions, prefix, after=last_place(state.sessions, f"build-{index}-"))
    wanted = 1 if experiment.result_written else JUDGE_SESSIONS
    left = sessions.ended >= wanted
    if left and (experiment.result_written or not sessions.broken):
        return None
    # An experiment whose oracle never came to work is not judged without its result.md.
    if left or sessions.cut_too_often:
        return sessions_failed("oracle", index, "writing result.md", sessions)
    spent = budget_spent(state, opens=False, trains=False)
    return spent or JudgeResult(experiment=experiment.id, index=index, attempt=sessions.attempt)


def _check_gate(experiment: ExperimentState, gate: GateName) -> Step | None:
    """Ask the gate, unless its newest verdict is current and has moved the experiment."""
    verdict = experiment.verdict(gate)
    if verdict is not None and verdict.current and experiment.status is ExperimentStatus.JUDGED:
        return None
    # A verdict that is stale each time it is read would otherwise be renewed for ever.
    if verdict is not None and verdict.recorded >= MOST_VERDICTS:
        detail = (
            f"{experiment.id} has {verdict.recorded} verdicts on {spoken(gate)}: its evidence keeps"
            " changing."
        )
        return StopLoop(reason=StopReason.FAILURES, detail=detail)
    return CheckGate(experiment=experiment.id, gate=gate)


def _answer(state: LoopState, index: int, experiment: ExperimentState) -> Step:
    """What follows from a current verdict on validation."""
    verdict = experiment.validation
    assert verdict is not None  # else _check_gate gave a step
    if experiment.decided in _PERMITTED:
        return keep_for_person(experiment, _newest(experiment) or verdict)
    if experiment.decided is DecisionKind.ITERATE:
        return _again(state, index, experiment) or discard(
            experiment, verdict, GateName.VALIDATION
        )
    if experiment.decided is DecisionKind.REJECT:
        return discard(experiment, verdict, GateName.VALIDATION, "a person rejected it")
    if verdict.verdict is Verdict.PASS:
        return _candidate(state, experiment, verdict)
    # A run that a detector stopped would be stopped again: another hypothesis, not another attempt.
    stopped = next((run for run in experiment.runs if run.stopped_by), None)
    if verdict.verdict is Verdict.INCONCLUSIVE and stopped is not None:
        why = stopped_early(stopped)
        return discard(experiment, verdict, GateName.VALIDATION, why)
    if verdict.verdict is Verdict.INCONCLUSIVE and _runs_failed(state, experiment):
        if any(one.here for one in state.experiments[state.experiments.index(experiment) + 1 :]):
            why = "its runs failed, and the files are those of a later experiment by now"
            return discard(experiment, verdict, GateName.VALIDATION, why)
        return _again(state, index, experiment) or discard(
            experiment, verdict, GateName.VALIDATION
        )
    if verdict.verdict is Verdict.INCONCLUSIVE:
        return cannot_judge(experiment, verdict, GateName.VALIDATION)
    return discard(experiment, verdict, GateName.VALIDATION)


def _runs_failed(state: LoopState, experiment: ExperimentState) -> bool:
    done = [run for run in experiment.runs if run.status is RunStatus.COMPLETED]
    return len(done) < max(state.limits.seeds, len(experiment.runs))


def _again(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """Another build attempt; None when the attempts or the budget are used up."""
    sessions = tally(state.sessions, f"build-{index}-")
    if sessions.attempt > MOST_ATTEMPTS or budget_spent(state, opens=False) is not None:
        return None
    if sessions.cut_too_often:
        return sessions_failed("model-builder", index, "training again", sessions)
    return _next_build(state, index, experiment, sessions.attempt)


def _candidate(state: LoopState, experiment: ExperimentState, verdict: VerdictState) -> Step:
    """What passed on validation is compared there first: no held-out evaluation is spent on an
    experiment that would not be kept."""
    if verdict.better is False:
        return discard(
            experiment, verdict, GateName.VALIDATION, f"it is not better: {verdict.why}"
        )
    if verdict.better is None:
        return _undecided(state, experiment, verdict, GateName.VALIDATION)
    if (why := behind_best(state, experiment)) is not None:
        return discard(experiment, verdict, GateName.VALIDATION, why)
    return _held_out(state, experiment)


def _held_out(state: LoopState, experiment: ExperimentState) -> Step:
    """A candidate is evaluated once on held-out rows, then kept or discarded."""
    if experiment.awaiting_held_out:
        if state.spent.held_out_left <= 0:
            return StopLoop(
                reason=StopReason.BUDGET,
                detail=(
                    f"{experiment.id} passed on validation, but no held-out evaluation is left"
                    " (oracle.queries)."
                ),
            )
        return _look(state, experiment, Split.HELD_OUT)
    step = _check_gate(experiment, GateName.HELD_OUT)
    if step is not None:
        return step
    verdict = experiment.held_out
    assert verdict is not None  # else _check_gate gave a step
    if verdict.verdict is Verdict.INCONCLUSIVE:
        return cannot_judge(experiment, verdict, GateName.HELD_OUT)
    if verdict.verdict is not Verdict.PASS:
        return discard(experiment, verdict, GateName.HELD_OUT)
    return _keep(state, experiment, verdict)


def _keep(state: LoopState, experiment: ExperimentState, verdict: VerdictState) -> Step:
    if verdict.better is False:
        return discard(experiment, verdict, GateName.HELD_OUT, f"it is not better: {verdict.why}")
    if verdict.better is None:
        return _undecided(state, experiment, verdict, GateName.HELD_OUT)
    if state.limits.mode is GateMode.SUPERVISED:
        return ask_person(experiment, "passed both gates.")
    return keep(experiment, verdict)


def _undecided(
    state: LoopState, experiment: ExperimentState, verdict: VerdictState, gate: GateName
) -> Step:
    """It passed, but the comparison is not decidable: a person decides; in full-auto mode it is
    discarded."""
    if state.limits.mode is GateMode.FULL_AUTO:
        return discard(experiment, verdict, gate, f"it is not shown to be better: {verdict.why}")
    if gate is GateName.VALIDATION:
        return ask_person(
            experiment,
            f"passed on validation, but is it better? {verdict.why}",
            evaluate_first=True,
        )
    return ask_person(experiment, f"passed both gates, but is it better? {verdict.why}")
