"""How an experiment and the loop end: the decisions KEEP and DISCARD, and the reasons to stop."""

from harness.detectors.behind import CODE as BEHIND
from harness.domain.plain_text import one_line
from harness.domain.statuses import DecisionKind, ExperimentStatus, GateName, Tier, spoken
from harness.loop.state import ExperimentState, LoopState, RunState, Tally, VerdictState
from harness.loop.steps import Decide, StopLoop, StopReason

_RANK = {tier: rank for rank, tier in enumerate(Tier)}


def keep(experiment: ExperimentState, verdict: VerdictState) -> Decide:
    """KEEP on a held-out PASS that is better than the parent beyond the noise floor."""
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.KEEP,
        verdict=verdict.id,
        context=f"{experiment.id} passed on validation and on held-out.",
        choice=f"Keep {experiment.id}; further experiments are compared with it.",
        alternatives="Discard it, or train it with more seeds.",
        reason=f"It reaches the tier {verdict.tier} and is better: {verdict.why}",
        confidence="high",
    )


def keep_for_person(experiment: ExperimentState, verdict: VerdictState) -> Decide:
    """KEEP because a person approved it or overrode the gate."""
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.KEEP,
        verdict=verdict.id,
        context=f"The newest verdict on {experiment.id} is {verdict.verdict} ({verdict.id}).",
        choice=f"Keep {experiment.id}; further experiments are compared with it.",
        alternatives="A person may reject it (`harness gate reject`).",
        reason=f"A person decided it: {experiment.decided}.",
        confidence="high",
    )


def discard(
    experiment: ExperimentState, verdict: VerdictState, gate: GateName, why: str | None = None
) -> Decide:
    """DISCARD on a verdict that is not PASS, or for the reason `why`."""
    findings = "; ".join(finding.message for finding in verdict.findings)
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.DISCARD,
        verdict=verdict.id,
        context=f"The {spoken(gate)} gate said {verdict.verdict} for {experiment.id}.",
        choice=f"Discard {experiment.id} and try another hypothesis.",
        alternatives="Train it again, or let a person keep it (`harness gate approve --override`).",
        reason=why if why is not None else findings,
        confidence="high" if why is None else "medium",
    )


def stopped_early(run: RunState) -> str:
    """Why an experiment is discarded whose run an alarm ended."""
    if run.stopped_by == BEHIND:
        return f"{run.id} was {run.reason}; its other seeds were not trained"
    return (
        f"{run.id} was {run.reason}; its diagnosis says why, and the next experiment tries what"
        " answers it"
    )


def stop_between(state: LoopState) -> StopLoop | None:
    """Why no further experiment is opened: the first of target, budget and patience that holds."""
    return _target(state) or budget_spent(state) or _patience(state)


def budget_spent(state: LoopState, *, opens: bool = True, trains: bool = True) -> StopLoop | None:
    """A StopLoop that names the budget that is used up, or None.

    `opens`: the step opens an experiment; `trains`: it trains.
    """
    limits, spent = state.limits, state.spent
    if opens and len(state.experiments) + spent.elsewhere >= limits.experiments:
        return _budget(f"All {limits.experiments} experiments are used (budget.experiments).")
    if trains and spent.minutes >= limits.total_minutes:
        return _budget(
            f"{spent.minutes:.1f} of {limits.total_minutes:g} minutes are used"
            " (budget.total_minutes)."
        )
    if limits.usd is not None and spent.usd >= limits.usd:
        return _budget(f"{spent.usd:.2f} of {limits.usd:.2f} USD are used (budget.usd).")
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        used = f"{spent.tokens:,} of {limits.tokens:,} tokens"
        return _budget(f"{used} are used (budget.tokens).")
    return None


def _budget(detail: str) -> StopLoop:
    return StopLoop(reason=StopReason.BUDGET, detail=detail)


def _target(state: LoopState) -> StopLoop | None:
    wanted = state.limits.stop_tier
    for experiment in state.experiments[state.earlier :]:
        tier = experiment.held_out.tier if experiment.held_out is not None else None
        if (
            experiment.status is ExperimentStatus.KEPT
            and tier is not None
            and _RANK[tier] >= _RANK[wanted]
        ):
            detail = f"{experiment.id} reaches the tier {tier} on held-out."
            return StopLoop(reason=StopReason.TARGET, detail=detail)
    return None


def _patience(state: LoopState) -> StopLoop | None:
    """Too many decided experiments in a row without an improvement beyond the noise."""
    flat = 0
    for experiment in reversed(
        [one for one in state.experiments[state.earlier :] if one.closed and not one.repeats]
    ):
        if experiment.improved:
            break
        flat += 1
    if flat < state.limits.patience:
        return None
    detail = (
        f"{flat} experiments in a row brought no improvement beyond the noise (loop.patience)."
    )
    return StopLoop(reason=StopReason.PATIENCE, detail=detail)


def ask_person(
    experiment: ExperimentState, what: str, *, evaluate_first: bool = False
) -> StopLoop:
    """Leave the decision to a person, with the commands to type.

    An approval rests on held-out: `evaluate_first` when there is no held-out verdict yet.
    """
    first = (
        f"`harness evaluate {experiment.id} --split held-out` and `harness gate check"
        f" {experiment.id}`, then "
        if evaluate_first
        else ""
    )
    return StopLoop(
        reason=StopReason.WAITING,
        detail=(
            f"{experiment.id} {what} A person decides: run {first}`harness gate approve"
            f" {experiment.id} --reason ...`, or `harness gate reject {experiment.id} --reason"
            " ...`; then `harness continue`."
        ),
    )


def cannot_judge(experiment: ExperimentState, verdict: VerdictState, gate: GateName) -> StopLoop:
    """No agent can fix it: the harness itself could not score or isolate."""
    findings = "; ".join(
        f"[{finding.code}] {finding.message} {finding.hint}" for finding in verdict.findings
    )
    detail = f"The harness could not judge {experiment.id} on {spoken(gate)}: {findings}"
    return StopLoop(reason=StopReason.FAILURES, detail=detail)


def sessions_failed(role: str, index: int, work: str, sessions: Tally) -> StopLoop:
    return work_failed(f"The {role} sessions of experiment {index}", work, sessions)


def work_failed(whose: str, work: str, sessions: Tally) -> StopLoop:
    detail = f"{whose} ended or were cut too often in a row without {work}."
    if not sessions.broken or sessions.cut_too_often:
        return StopLoop(reason=StopReason.FAILURES, detail=detail)
    detail += f" The newest was {sessions.broken}: {one_line(sessions.why, 300)}"
    return StopLoop(reason=StopReason(sessions.broken), detail=detail)
