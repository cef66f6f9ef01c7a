"""When the loop ends between two experiments: target, budget, patience."""

from harness.domain.statuses import ExperimentStatus, Tier
from harness.loop.records import LoopState
from harness.loop.steps import Stop, StopReason

_RANK = {tier: rank for rank, tier in enumerate(Tier)}


def stop_between(state: LoopState) -> Stop | None:
    """The reason to open no further experiment; the first of target, budget and patience that
    holds."""
    return _target(state) or budget_spent(state) or _patience(state)


def budget_spent(state: LoopState, *, opens: bool = True, trains: bool = True) -> Stop | None:
    """A Stop naming the budget that is used up, or None. `opens`: the step opens an experiment,
    `trains`: it trains."""
    limits, spent = state.limits, state.spent
    if opens and len(state.experiments) >= limits.experiments:
        return _budget(f"All {limits.experiments} experiments are used (budget.experiments).")
    if trains and spent.minutes >= limits.total_minutes:
        return _budget(
            f"{spent.minutes:.1f} of {limits.total_minutes:g} minutes are used"
            " (budget.total_minutes)."
        )
    if limits.usd is not None and spent.usd >= limits.usd:
        return _budget(f"{spent.usd:.2f} of {limits.usd:.2f} USD are used (budget.usd).")
    return None


def _budget(detail: str) -> Stop:
    return Stop(reason=StopReason.BUDGET, detail=detail)


def _target(state: LoopState) -> Stop | None:
    wanted = state.limits.stop_tier
    for item in state.experiments:
        tier = item.held_out.tier if item.held_out is not None else None
        if (
            item.status is ExperimentStatus.KEPT
            and tier is not None
            and _RANK[tier] >= _RANK[wanted]
        ):
            return Stop(
                reason=StopReason.TARGET, detail=f"{item.id} reaches the tier {tier} on held-out."
            )
    return None


def _patience(state: LoopState) -> Stop | None:
    """Decided experiments in a row that were not better than all before by more than the noise."""
    flat = 0
    for item in reversed(state.experiments):
        if item.improved:
            break
        flat += 1
    if flat < state.limits.patience:
        return None
    detail = f"{flat} experiments in a row brought no improvement beyond the noise (loop.patience)."
    return Stop(reason=StopReason.PATIENCE, detail=detail)
