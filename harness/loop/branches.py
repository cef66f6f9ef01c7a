"""Which experiment the next one builds on: the last kept one (`line`), or the branch with the
highest upper confidence bound (`tree`). Pure, and told with what else could have been chosen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import pstdev

from harness.domain.statuses import ExperimentStatus
from harness.loop.state import ExperimentState, LoopState
from harness.loop.steps import Choice

TREE = "tree"
_CURIOSITY = 1.0
"""Of the bound: how many usual steps a branch is worth that was hardly tried."""
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Branch:
    """What may be built on."""

    id: str
    gain: float
    """Its score on validation, larger is better."""
    score: float
    """The same as the plan's metric has it."""
    children: int
    bound: float = math.inf


def parent_of_next(state: LoopState) -> tuple[str | None, Choice | None]:
    """(what the next experiment builds on, the choice where there was one to make)."""
    kept = [one.id for one in state.experiments if one.status is ExperimentStatus.KEPT]
    line = kept[-1] if kept else None
    if state.limits.search != TREE:
        return line, None
    branches = ranked(state)
    if len(branches) < 2:
        return branches[0].id if branches else line, None
    first, *others = branches
    told = "; ".join(_words(one) for one in others[:_SHOWN])
    return first.id, Choice(
        parent=first.id,
        reason=f"It has the highest upper bound: {_words(first)}.",
        alternatives=f"{told}; the last kept one: {line or 'none'}.",
    )


def _words(one: Branch) -> str:
    return f"{one.id} {one.bound:.4g} (score {one.score:.4g}, tried {one.children} times)"


def ranked(state: LoopState) -> list[Branch]:
    """The branches, the highest bound first; of equal ones the newer.

    UCB1 in the scale of this plan: gain + c * step * sqrt(ln N / n). `step` is the spread of what a
    child's score differs from its parent's, at least the noise of the seeds; n counts the branch
    and its children, N all of them.
    """
    nodes = [
        one for one in state.experiments if gain_of(state, one) is not None and promising(one)
    ]
    if not nodes:
        return []
    gains = {
        one.id: gain for one in state.experiments if (gain := gain_of(state, one)) is not None
    }
    children = {
        node.id: sum(one.parent == node.id for one in state.experiments if not one.repeats)
        for node in nodes
    }
    step = _step(state, gains)
    total = sum(children.values()) + len(nodes)
    made = [
        Branch(
            id=node.id,
            gain=gains[node.id],
            score=gains[node.id] if state.limits.maximize else -gains[node.id],
            children=children[node.id],
            bound=gains[node.id]
            + _CURIOSITY * step * math.sqrt(math.log(total) / (1 + children[node.id])),
        )
        for node in nodes
    ]
    made.reverse()  # the sort is stable
    return sorted(made, key=lambda one: one.bound, reverse=True)


def promising(one: ExperimentState) -> bool:
    """Kept, or decided and better than what it builds on, beyond the noise, on validation, by the
    rules and rejected by nobody."""
    if one.status is ExperimentStatus.KEPT:
        return True
    verdict = one.validation
    if one.repeats or one.unsound:
        return False
    return one.closed and verdict is not None and verdict.better is True


def behind_best(state: LoopState, one: ExperimentState) -> str | None:
    """In a tree, why a candidate that beats its parent is not looked at on held-out: the best kept
    one is another branch's, and it is not ahead of it."""
    best, gain = best_kept(state), gain_of(state, one)
    if state.limits.search != TREE or best is None or gain is None:
        return None
    name, most = best
    if name == one.parent or gain > most:
        return None
    return f"it is better than {one.parent}, but not than {name}; its branch may be built on"


def best_kept(state: LoopState) -> tuple[str, float] | None:
    """(id, gain) of the kept experiment with the highest score on validation."""
    kept = [
        (gain, one.id)
        for one in state.experiments
        if one.status is ExperimentStatus.KEPT and (gain := gain_of(state, one)) is not None
    ]
    if not kept:
        return None
    gain, name = max(kept)
    return name, gain


def gain_of(state: LoopState, one: ExperimentState) -> float | None:
    """None without a score that is told, as of hidden labels."""
    score = None if one.validation is None else one.validation.score
    if score is None or not math.isfinite(score):
        return None
    return score if state.limits.maximize else -score


def _step(state: LoopState, gains: dict[str, float]) -> float:
    steps: Sequence[float] = [
        gains[one.id] - gains[one.parent]
        for one in state.experiments
        if one.id in gains and one.parent in gains
    ]
    spreads = [
        one.validation.spread
        for one in state.experiments
        if one.validation is not None and one.validation.spread is not None
    ]
    noise = max(spreads, default=0.0)
    usual = pstdev(steps) if len(steps) > 1 else 0.0
    if not usual:
        usual = pstdev(gains.values()) if len(gains) > 1 else 0.0
    return max(usual, noise)
