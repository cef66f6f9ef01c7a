"""Tree against line: what the loop's choice of a parent is worth on a landscape with noise.

    python bench/tree_search.py [--seeds 50] [--record]

The loop's own functions choose and judge: `next_step` says what an experiment builds on, the noise
floor says whether it is better than its parent. Only the world is made: a configuration is a point
of 6 dimensions, its true score a sum of hills, one of them broad and low, others narrow and high;
an experiment is its parent's point and a random step, measured with 3 seeds of noise. The same
budget and the same draws for both. Figures: the true score of the best kept experiment.
"""

import argparse
import math
import random
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from _record import record, wants_record

from harness.domain.distributions import t_quantile
from harness.domain.records import Objective
from harness.domain.statuses import (
    DecisionKind,
    Direction,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Tier,
    Verdict,
)
from harness.evaluation.noise_floor import compare, compare_to_baseline
from harness.loop.next_step import next_step
from harness.loop.state import (
    ExperimentState,
    LoopLimits,
    LoopSpending,
    LoopState,
    RunState,
    SessionState,
    VerdictState,
)
from harness.loop.steps import Build, CheckGate, Decide, Evaluate, JudgeResult, StopLoop

DIMENSIONS, HILLS, STEP, NOISE, BUDGET, TRAINED = 6, 12, 0.45, 0.02, 40, 3
OBJECTIVE = Objective(
    metric="score", direction=Direction.MAXIMIZE, tiers={}, seeds=TRAINED, queries=999
)


class World:
    """Hills in a box of side 2; the starting point is on the flank of the broad one."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"world {seed}")
        self.hills = [
            (
                [draw.uniform(-1, 1) for _ in range(DIMENSIONS)],
                draw.uniform(0.3, 0.7),
                draw.uniform(0.4, 1.0),
            )
            for _ in range(HILLS)
        ]
        self.start = [draw.uniform(-1, 1) for _ in range(DIMENSIONS)]

    def score(self, point: list[float]) -> float:
        return max(
            height * math.exp(-sum((a - b) ** 2 for a, b in zip(point, at, strict=True)) / width)
            for at, width, height in self.hills
        )


class Life:
    """One search: what each step of the loop leaves behind in a made world."""

    def __init__(self, seed: int, search: str) -> None:
        self.world = World(seed)
        self.steps, self.noise = random.Random(f"steps {seed}"), random.Random(f"noise {seed}")
        limits = LoopLimits(
            seeds=TRAINED,
            experiments=BUDGET,
            total_minutes=1e9,
            usd=None,
            stop_tier=Tier.COULD,
            patience=BUDGET,
            search=search,
            mode=GateMode.FULL_AUTO,
        )
        self.state = LoopState(limits=limits, spent=LoopSpending(held_out_left=10**6))
        self.points: dict[str, list[float]] = {}
        self.values: dict[tuple[str, GateName], list[float]] = {}
        self.best: list[float] = []
        """The true score of the best kept one, after each experiment."""

    def run(self) -> "Life":
        while not isinstance(due := next_step(self.state), StopLoop):
            if isinstance(due, Build | JudgeResult):
                served = SessionState(step=due.key, outcome="ended")
                self.state = replace(self.state, sessions=(*self.state.sessions, served))
            if isinstance(due, Build):
                self._build(due.parent)
            elif isinstance(due, JudgeResult):
                self._now(result_written=True)
            elif isinstance(due, Evaluate):
                self._now(awaiting_held_out=frozenset())
            elif isinstance(due, CheckGate):
                verdict = self._judged(due.gate)
                held = due.gate is GateName.HELD_OUT
                found = {"held_out": verdict} if held else {"validation": verdict}
                self._now(status=ExperimentStatus.JUDGED, **found)
            else:
                assert isinstance(due, Decide), due
                kept = due.kind is DecisionKind.KEEP
                self._now(status=ExperimentStatus.KEPT if kept else ExperimentStatus.DISCARDED)
                self.best.append(self.true_best())
        return self

    def _build(self, parent: str | None) -> None:
        name = f"exp-{len(self.points) + 1:04d}"
        origin = self.world.start if parent is None else self.points[parent]
        width = STEP / math.sqrt(DIMENSIONS)
        moved = (part + self.steps.gauss(0, width) for part in origin)
        self.points[name] = [min(1.0, max(-1.0, part)) for part in moved]
        runs = (
            RunState(id=f"run-{n}", seed=n, status=RunStatus.COMPLETED) for n in range(TRAINED)
        )
        one = ExperimentState(
            id=name,
            status=ExperimentStatus.OPEN,
            runs=tuple(runs),
            awaiting_held_out=frozenset({"run-0"}),
            parent=parent,
        )
        self.state = replace(self.state, experiments=(*self.state.experiments, one))

    def _now(self, **changes: Any) -> None:
        *before, one = self.state.experiments
        self.state = replace(self.state, experiments=(*before, replace(one, **changes)))

    def _judged(self, gate: GateName) -> VerdictState:
        one = self.state.experiments[-1]
        true = self.world.score(self.points[one.id])
        values = [true + self.noise.gauss(0, NOISE) for _ in range(TRAINED)]
        self.values[one.id, gate] = values
        if one.parent is None:
            against = compare_to_baseline(values, 0.0, OBJECTIVE)
        else:
            against = compare(values, self._of(one.parent, gate), OBJECTIVE)
        return VerdictState(
            id=f"v-{one.id}-{gate}",
            verdict=Verdict.PASS,
            current=True,
            better=against.better,
            score=fmean(values),
            spread=stdev(values),
        )

    def _of(self, parent: str, gate: GateName) -> list[float]:
        """A branch that never was looked at on held-out is looked at now."""
        key = (parent, gate)
        if key not in self.values:
            true = self.world.score(self.points[parent])
            self.values[key] = [true + self.noise.gauss(0, NOISE) for _ in range(TRAINED)]
        return self.values[key]

    def true_best(self) -> float:
        """Of the kept ones that with the best score on validation."""
        kept = [one for one in self.state.experiments if one.status is ExperimentStatus.KEPT]
        scored = [(fmean(self.values[one.id, GateName.VALIDATION]), one.id) for one in kept]
        name = max(scored)[1] if scored else None
        return self.world.score(self.world.start if name is None else self.points[name])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=50)
    seeds = parser.parse_known_args()[0].seeds
    ends: dict[str, list[float]] = {}
    halves: dict[str, list[float]] = {}
    for search in ("line", "tree"):
        lives = [Life(seed, search).run() for seed in range(seeds)]
        ends[search] = [life.best[-1] for life in lives]
        halves[search] = [life.best[len(life.best) // 2] for life in lives]
    gains = [tree - line for tree, line in zip(ends["tree"], ends["line"], strict=True)]
    half = t_quantile(seeds - 1, 0.975) * stdev(gains) / math.sqrt(seeds)
    figures: dict[str, float | str] = {
        "seeds": seeds,
        "experiments": BUDGET,
        "line": round(fmean(ends["line"]), 4),
        "tree": round(fmean(ends["tree"]), 4),
        "line_at_half_the_budget": round(fmean(halves["line"]), 4),
        "tree_at_half_the_budget": round(fmean(halves["tree"]), 4),
        "tree_minus_line": round(fmean(gains), 4),
        "low": round(fmean(gains) - half, 4),
        "high": round(fmean(gains) + half, 4),
        "tree_ahead": sum(gain > 0 for gain in gains),
        "line_ahead": sum(gain < 0 for gain in gains),
    }
    for name, value in figures.items():
        print(f"{name:26} {value}")
    if wants_record():
        record("tree-search", "python bench/tree_search.py --record", figures, seed=0)


if __name__ == "__main__":
    main()
