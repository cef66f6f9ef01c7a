"""The loop as a pure function: what is known -> what to do next. It reads no file, no clock and no
ledger.

An experiment goes Build -> Evaluate(validation) -> Judge -> Check(validation) -> when it is better
Evaluate(held_out) -> Check(held_out) -> Decide. Every step leaves a fact or a file behind, so that
after a cut the same question gets the step that was cut.
"""

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
from harness.loop.candidates import rank
from harness.loop.decisions import discard, keep, keep_for_person
from harness.loop.records import ExperimentState, LoopState, VerdictState
from harness.loop.sessions import last_place, tally
from harness.loop.steps import (
    Build,
    Check,
    Diagnose,
    Evaluate,
    Judge,
    Recover,
    Scout,
    Settle,
    Step,
    Stop,
    StopReason,
    Train,
    Wait,
)
from harness.loop.stopping import budget_spent, stop_between

STUCK = 3
"""Steps in a row that changed nothing, before the loop stops."""
MOST_VERDICTS = 20
"""Of one gate for one experiment: evidence that never stands still is not judged for ever."""
MOST_ATTEMPTS = 3
"""Build attempts for one experiment while its seeds are outstanding."""
MOST_LOST = 3
"""Lost runs before the loop no longer launches them again by itself."""
CHECKER_SESSIONS = 2
"""A run with open alarms: the second only when the first left them unexplained."""
JUDGE_SESSIONS = 2
"""Oracle sessions a build attempt: the second only when the first left no result.md."""

_PERMITTED = {DecisionKind.APPROVE, DecisionKind.OVERRIDE}
_FINAL = {DecisionKind.KEEP, DecisionKind.DISCARD, DecisionKind.CANCEL}


def next_step(state: LoopState) -> Step:
    """The one step that is due; a Stop ends the loop. Never raises, and never leads round for
    ever."""
    if state.unchanged >= STUCK:
        return Stop(
            reason=StopReason.FAILURES, detail=f"{state.unchanged} steps in a row changed nothing."
        )
    for place, experiment in enumerate(state.experiments):
        if not experiment.closed:
            return _go_on(state, place + 1, experiment)
    return stop_between(state) or _build(state, len(state.experiments) + 1, None)


def _go_on(state: LoopState, index: int, experiment: ExperimentState) -> Step:
    """The step of an experiment that is not decided yet."""
    if experiment.decided in _FINAL:
        return Settle(experiment=experiment.id, kind=experiment.decided)
    going = [run for run in experiment.runs if run.open]
    if going:
        watched = all(run.supervised for run in going)
        return Wait(experiment=experiment.id) if watched else Recover(experiment=experiment.id)
    if not experiment.runs:
        return _build(state, index, experiment)
    if _cut_short(state, experiment):
        return Train(experiment=experiment.id, argv=experiment.argv)
    if asked := _diagnose(state, index, experiment) or _scout(state, index, experiment):
        return asked
    if experiment.awaiting and not _bypassed(experiment):
        return Evaluate(experiment=experiment.id, split=Split.VALIDATION)
    return (
        _judge(state, index, experiment)
        or _check(experiment, GateName.VALIDATION)
        or _answer(state, index, experiment)
    )


def _cut_short(state: LoopState, experiment: ExperimentState) -> bool:
    """Whether seeds are outstanding only because the supervisor was lost, not because a run went
    wrong."""
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
    spent = budget_spent(state, opens=experiment is None)
    if spent is not None:
        return spent
    sessions = tally(state.sessions, f"build-{index}-")
    if sessions.failed_too_often or sessions.cut_too_often:
        return _hopeless("model-builder", index, "opening an experiment and starting a run")
    return _next_build(state, index, experiment, sessions.attempt)


def _next_build(
    state: LoopState, index: int, experiment: ExperimentState | None, attempt: int
) -> Build:
    kept = [
        item.id for item in state.experiments[: index - 1] if item.status is ExperimentStatus.KEPT
    ]
    before = (
        experiment
        if experiment is not None and _newest(experiment) is not None
        else _previous(state, index)
    )
    verdict = _newest(before)
    return Build(
        index=index,
        attempt=attempt,
        parent=kept[-1] if kept else None,
        experiment=None if experiment is None else experiment.id,
        findings=() if verdict is None or verdict.verdict is Verdict.PASS else verdict.findings,
        candidates=_candidates(state, before),
    )


def _candidates(state: LoopState, before: ExperimentState | None) -> tuple[Idea, ...]:
    """What the experiment before proposes, when detectors or their reader had something to say
    about it."""
    if before is None or not any(item.answers for item in before.ideas):
        return ()
    return rank(before.ideas, before.alarms, [item.hypothesis for item in state.experiments])


def _previous(state: LoopState, index: int) -> ExperimentState | None:
    return state.experiments[index - 2] if index > 1 else None


def _newest(experiment: ExperimentState | None) -> VerdictState | None:
    """The verdict that the experiment ended on: held-out when it was asked, else validation."""
    return None if experiment is None else experiment.held_out or experiment.validation


def _diagnose(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """A training-checker session for each run with an open alarm that nothing explains; then the
    gate finds it."""
    for run in experiment.undiagnosed:
        sessions = tally(state.sessions, f"diagnose-{index}-{run}-")
        if sessions.cut_too_often:
            return _hopeless("training-checker", index, f"explaining the alarms of {run}")
        if sessions.ended < CHECKER_SESSIONS:
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
    """A research-scout session that answers the diagnosis, where the plan gives it something to
    read; once."""
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
    step = Scout(experiment=experiment.id, index=index, attempt=sessions.attempt)
    return budget_spent(state, opens=False, trains=False) or step


def _judge(state: LoopState, index: int, experiment: ExperimentState) -> Step | None:
    """An oracle session a build attempt, also when there is no evaluation; a second when result.md
    is missing."""
    prefix = f"judge-{index}-"
    sessions = tally(state.sessions, prefix, after=last_place(state.sessions, f"build-{index}-"))
    wanted = 1 if experiment.result_written else JUDGE_SESSIONS
    if sessions.ended >= wanted:
        return None
    if sessions.cut_too_often:
        return _hopeless("oracle", index, "writing result.md")
    spent = budget_spent(state, opens=False, trains=False)
    return spent or Judge(experiment=experiment.id, index=index, attempt=sessions.attempt)


def _check(experiment: ExperimentState, gate: GateName) -> Step | None:
    """Ask the gate unless its newest verdict still stands and the experiment was moved by it."""
    verdict = experiment.verdict(gate)
    if verdict is not None and verdict.current and experiment.status is ExperimentStatus.JUDGED:
        return None
    if verdict is not None and verdict.recorded >= MOST_VERDICTS:
        detail = (
            f"{experiment.id} has {verdict.recorded} verdicts on {spoken(gate)}: its evidence does"
            " not stand still."
        )
        return Stop(reason=StopReason.FAILURES, detail=detail)
    return Check(experiment=experiment.id, gate=gate)


def _answer(state: LoopState, index: int, experiment: ExperimentState) -> Step:
    """What follows from a validation verdict that stands."""
    verdict = experiment.validation
    assert verdict is not None  # _check saw it
    if experiment.decided in _PERMITTED:
        return keep_for_person(experiment, _newest(experiment) or verdict)
    if experiment.decided is DecisionKind.ITERATE:
        return _again(state, index, experiment) or discard(experiment, verdict, GateName.VALIDATION)
    if experiment.decided is DecisionKind.REJECT:
        return discard(experiment, verdict, GateName.VALIDATION, "a person rejected it")
    if verdict.verdict is Verdict.PASS:
        return _candidate(state, experiment, verdict)
    stopped = next((run for run in experiment.runs if run.stopped_by), None)
    if verdict.verdict is Verdict.INCONCLUSIVE and stopped is not None:
        why = (
            f"{stopped.id} was {stopped.reason}; its diagnosis says why, and the next experiment"
            " tries what answers it"
        )
        return discard(experiment, verdict, GateName.VALIDATION, why)
    if verdict.verdict is Verdict.INCONCLUSIVE and _runs_failed(state, experiment):
        return _again(state, index, experiment) or discard(experiment, verdict, GateName.VALIDATION)
    if verdict.verdict is Verdict.INCONCLUSIVE:
        return _cannot_judge(experiment, verdict, GateName.VALIDATION)
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
        return _hopeless("model-builder", index, "training again")
    return _next_build(state, index, experiment, sessions.attempt)


def _candidate(state: LoopState, experiment: ExperimentState, verdict: VerdictState) -> Step:
    """What passed on validation is compared there first: no look at held-out is spent on what would
    not be kept."""
    if verdict.better is False:
        return discard(experiment, verdict, GateName.VALIDATION, f"it is not better: {verdict.why}")
    if verdict.better is None:
        return _undecided(state, experiment, verdict, GateName.VALIDATION)
    return _held_out(state, experiment)


def _held_out(state: LoopState, experiment: ExperimentState) -> Step:
    """A candidate is looked at once on held-out rows, then kept or discarded."""
    if experiment.awaiting_held_out:
        if state.spent.looks_left <= 0:
            return Stop(
                reason=StopReason.BUDGET,
                detail=(
                    f"{experiment.id} passed on validation, but no look at held-out is left"
                    " (oracle.queries)."
                ),
            )
        return Evaluate(experiment=experiment.id, split=Split.HELD_OUT)
    asked = _check(experiment, GateName.HELD_OUT)
    if asked is not None:
        return asked
    verdict = experiment.held_out
    assert verdict is not None  # _check saw it
    if verdict.verdict is Verdict.INCONCLUSIVE:
        return _cannot_judge(experiment, verdict, GateName.HELD_OUT)
    if verdict.verdict is not Verdict.PASS:
        return discard(experiment, verdict, GateName.HELD_OUT)
    return _keep(state, experiment, verdict)


def _keep(state: LoopState, experiment: ExperimentState, verdict: VerdictState) -> Step:
    if verdict.better is False:
        return discard(experiment, verdict, GateName.HELD_OUT, f"it is not better: {verdict.why}")
    if verdict.better is None:
        return _undecided(state, experiment, verdict, GateName.HELD_OUT)
    if state.limits.mode is GateMode.SUPERVISED:
        return _ask_person(experiment, "passed both gates.")
    return keep(experiment, verdict)


def _undecided(
    state: LoopState, experiment: ExperimentState, verdict: VerdictState, gate: GateName
) -> Step:
    """It passed, but nobody can say that it is better: a person decides, or without one it is not
    kept."""
    if state.limits.mode is GateMode.FULL_AUTO:
        return discard(experiment, verdict, gate, f"it is not shown to be better: {verdict.why}")
    if gate is GateName.VALIDATION:
        return _ask_person(
            experiment, f"passed on validation, but is it better? {verdict.why}", looks_first=True
        )
    return _ask_person(experiment, f"passed both gates, but is it better? {verdict.why}")


def _ask_person(experiment: ExperimentState, what: str, *, looks_first: bool = False) -> Stop:
    """The plan or the numbers leave it to a person; nothing is decided meanwhile. An approval rests
    on held-out: `looks_first` when nobody has looked there yet."""
    look = (
        f"`harness evaluate {experiment.id} --split held-out` and `harness gate check"
        f" {experiment.id}`, then "
        if looks_first
        else ""
    )
    return Stop(
        reason=StopReason.WAITING,
        detail=(
            f"{experiment.id} {what} A person decides: run {look}`harness gate approve"
            f" {experiment.id} --reason ...`, or `harness gate reject {experiment.id} --reason"
            " ...`; then `harness continue`."
        ),
    )


def _cannot_judge(experiment: ExperimentState, verdict: VerdictState, gate: GateName) -> Stop:
    """No agent can fix it: the harness itself could not score or isolate."""
    words = "; ".join(f"[{found.code}] {found.message} {found.hint}" for found in verdict.findings)
    detail = f"The harness could not judge {experiment.id} on {spoken(gate)}: {words}"
    return Stop(reason=StopReason.FAILURES, detail=detail)


def _hopeless(role: str, index: int, work: str) -> Stop:
    detail = (
        f"The {role} sessions of experiment {index} ended or were cut too often in a row without"
        f" {work}."
    )
    return Stop(reason=StopReason.FAILURES, detail=detail)
