"""The score of an experiment: the mean over its seeds' evaluations, with the spread."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from harness.domain.findings import Finding
from harness.domain.records import Evaluation
from harness.domain.statuses import Evidence, SandboxKind, Split


@dataclass(frozen=True, kw_only=True)
class Score:
    metric: str
    split: Split
    mean: float
    spread: float | None
    """Sample standard deviation over seeds; None with one seed."""
    n_seeds: int
    values: tuple[float, ...]
    """One a seed, in the order of seeds."""
    interval: tuple[float, float] | None
    """Mean of the seeds' intervals: the uncertainty that comes from the rows, which all seeds
    share."""
    baseline: float | None
    """The trivial predictor's score on the same rows."""
    evidence: Evidence

    def plain(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "values": list(self.values),
            "interval": list(self.interval) if self.interval else None,
        }


def summarise(evaluations: Sequence[Evaluation]) -> Score | None:
    """The score of one experiment's evaluations on one split; of several of one seed the last
    counts.

    Evaluations without a value are left out; None when none is left. Raises ValueError when they
    are of several experiments, splits, metrics or plan versions, because their mean would mean
    nothing.
    """
    kinds = {(item.experiment, item.split, item.metric, item.plan_version) for item in evaluations}
    if len(kinds) > 1:
        raise ValueError(
            "expected evaluations of one experiment, split, metric and plan version, got"
            f" {sorted(kinds)}"
        )
    newest = {item.seed: item for item in evaluations}
    usable = [newest[seed] for seed in sorted(newest) if newest[seed].value is not None]
    if not usable:
        return None
    values = tuple(float(item.value) for item in usable if item.value is not None)
    return Score(
        metric=usable[0].metric,
        split=usable[0].split,
        mean=fmean(values),
        spread=stdev(values) if len(values) > 1 else None,
        n_seeds=len(values),
        values=values,
        interval=_joined([item.interval for item in usable]),
        baseline=usable[-1].baseline,
        evidence=evidence_of([item.sandbox for item in usable]),
    )


def evidence_of(sandboxes: Sequence[str]) -> Evidence:
    """`recomputed`, or `recomputed, not isolated` when any of the sandboxes was none."""
    isolated = all(sandbox != SandboxKind.NONE for sandbox in sandboxes)
    return Evidence.RECOMPUTED if isolated else Evidence.RECOMPUTED_NOT_ISOLATED


def row_noise(*scores: Score) -> float:
    """Half width of the 95% interval over rows of a difference of these scores, in the metric's
    unit; rows are taken as independent. 0 when a score has no interval."""
    widths = [
        (score.interval[1] - score.interval[0]) / 2
        for score in scores
        if score.interval is not None
    ]
    return math.hypot(*widths) if len(widths) == len(scores) else 0.0


def seed_findings(evaluations: Sequence[Evaluation]) -> list[Finding]:
    """`seed_ignored` for each checkpoint that two different seeds share: the training did not use
    its seed."""
    seeds: defaultdict[str, set[int]] = defaultdict(set)
    for item in evaluations:
        seeds[item.checkpoint].add(item.seed)
    return [
        Finding(
            "seed_ignored",
            f"Seeds {', '.join(map(str, sorted(shared)))} gave the same checkpoint"
            f" {checkpoint[:12]}: their runs count as one, and the spread over seeds means"
            " nothing.",
            "Seed every random generator of the training with HARNESS_SEED, then train again.",
            {"checkpoint": checkpoint, "seeds": sorted(shared)},
        )
        for checkpoint, shared in sorted(seeds.items())
        if len(shared) > 1
    ]


def _joined(intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [interval for interval in intervals if interval is not None]
    if not known or len(known) < len(intervals):
        return None
    return fmean(low for low, _ in known), fmean(high for _, high in known)
