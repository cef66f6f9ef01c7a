"""What seeds alone do to a score: the noise of an experiment's own seeds on validation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from harness.domain.distributions import gamma_quantile
from harness.domain.records import LEAST_SEEDS
from harness.domain.statuses import Split
from harness.evaluation.outcome import LEVEL
from harness.evaluation.paired import rerun_of
from harness.evaluation.power import Measured, Power, power_of
from harness.evaluation.problems import Unscorable
from harness.evaluation.scores import recorded_evaluations
from harness.evaluation.split_rows import read_verified, table_of
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret


@dataclass(frozen=True, kw_only=True)
class SeedNoise:
    metric: str
    seeds: int
    """That have a score."""
    sealed: bool
    """Its validation is hidden: what its seeds scored is nobody's to know."""
    values: tuple[float, ...] = ()
    spread: float | None = None
    """Standard deviation over seeds."""
    between: tuple[float, float] | None = None
    """The 95% interval of the spread: few seeds say little about it."""
    power: Power | None = None

    @property
    def words(self) -> str:
        if self.sealed:
            return (
                f"{self.seeds} seeds are scored, and validation is hidden: what each scored and how"
                " far they lie apart is sealed"
            )
        if self.spread is None or self.between is None:
            return f"{self.seeds} seeds are scored; their spread takes {LEAST_SEEDS}"
        low, high = min(self.values), max(self.values)
        least, most = self.between
        return (
            f"{self.seeds} seeds score {low:.4g} to {high:.4g}, mean {fmean(self.values):.4g},"
            f" spread {self.spread:.2g} (95%: {least:.2g} to {most:.2g})"
        )


def seed_noise(
    project: Project, approved: ApprovedPlan, experiment: str, gain: float | None = None
) -> SeedNoise:
    """Of hidden labels it says no more than was assumed before: neither the spread nor a power
    that was made of it."""
    split, objective = Split.VALIDATION, objective_of(approved)
    made = recorded_evaluations(project, experiment, approved, split)
    scored = [one for one in made if one.scored]
    sealed = secret(approved, split.value)
    values = () if sealed else tuple(one.value for one in scored if one.value is not None)
    spread = stdev(values) if len(values) >= LEAST_SEEDS else None
    measured = None
    if spread is not None:
        measured = Measured(
            seeds=len(values),
            spread=spread,
            rerun=rerun_of(project, approved, scored),
        )
    return SeedNoise(
        metric=objective.metric,
        seeds=len(scored),
        sealed=sealed,
        values=values,
        spread=spread,
        between=None if spread is None else _interval(spread, len(values)),
        power=_power(project, approved, gain, measured),
    )


def _power(
    project: Project, approved: ApprovedPlan, gain: float | None, measured: Measured | None
) -> Power | None:
    """Of a comparison with the plan's seeds."""
    split = approved.splits[Split.VALIDATION.value]
    objective = objective_of(approved)
    return power_of(
        "" if approved.scorer["files"] else objective.metric,
        rows=split["rows"],
        seeds=objective.seeds,
        groups=_groups(project, approved, split.get("group")),
        labels=_labels(project, approved),
        gain=gain,
        measured=measured,
    )


def _interval(spread: float, seeds: int) -> tuple[float, float]:
    degrees = seeds - 1
    tails = (1 - LEVEL / 2, LEVEL / 2)
    squares = [2 * gamma_quantile(degrees / 2, tail) for tail in tails]
    low, high = (spread * math.sqrt(degrees / square) for square in squares)
    return low, high


def _groups(project: Project, approved: ApprovedPlan, group: str | None) -> int | None:
    if group is None:
        return None
    try:
        table = read_verified(table_of(project, approved, Split.VALIDATION.value), "validation")
    except Unscorable:
        return None
    return len(np.unique(table[group].astype(str)))


def _labels(project: Project, approved: ApprovedPlan) -> Sequence[float] | None:
    try:
        table = read_verified(table_of(project, approved, "train"), "training")
    except Unscorable:
        return None
    labels = table[approved.splits["train"]["label"]]
    return labels.astype(float).tolist() if labels.dtype.kind in "biuf" else None
