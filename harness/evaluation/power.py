"""How likely is a relevant gain to be found: what `plan check` tells before anything is trained,
and `harness baseline` after the starting code was.

Nobody knows the noise of models that do not exist yet, so it is assumed, and the assumption is told
with the figure; what seeds of the starting code do was measured then. The power is that of both
tests of a first try: seeds (Student's t, at the share of the level that it has where seeds are
shared) and rows (their normal limit). Both look at one difference, so it must be beyond the larger
of their floors: the chance of that, over the spreads that the seeds may show. Two chances
multiplied would be too low, the more so the lower they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from harness.domain.distributions import normal_cdf, normal_quantile, t_quantile
from harness.domain.findings import Finding
from harness.domain.metrics import METRICS, UNIT, Needs, Trivial
from harness.domain.records import LEAST_SEEDS
from harness.evaluation.intervals import NORMAL
from harness.evaluation.noise_floor import POOLED
from harness.evaluation.outcome import LEVEL

WANTED = 0.8
MOST_SEEDS = 50
FEW_ROWS = 200
"""Of validation, below which it is told what gain they can show."""
_HALVINGS = 12
ALIKE = 0.1
"""The correlation of the rows of a group."""
BESIDE_SEEDS = 0.5
"""What two experiments do to a row beyond what two seeds do, in parts of that: as in both
assumptions below."""
_LOSSES = ("mse", "mae", "log_loss")
_EVENLY = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """In the unit of the score: 1, or the trivial predictor's loss."""

    gain: float
    rerun: float
    """Mean square of a row's difference between two seeds of one experiment."""
    lasting: float
    """The same between two experiments, beyond what their seeds do."""
    common: float
    """Standard deviation over seeds of what shifts all rows together."""
    words: str


_SHARE = _Noise(
    gain=0.02,
    rerun=0.10,
    lasting=0.05,
    common=0.005,
    words="two seeds of one experiment answer 10% of the rows differently, two experiments 5% more,"
    " and a seed moves the score by 0.5 points",
)
_LOSS = _Noise(
    gain=0.05,
    rerun=0.09,
    lasting=0.04,
    common=0.01,
    words="in parts of the trivial predictor's loss a row differs by 30% between two seeds of one"
    " experiment, by 20% more between two experiments, and a seed moves the score by 1%",
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What seeds of one experiment did, in the metric's unit."""

    seeds: int
    spread: float
    """Standard deviation of their scores."""
    rerun: float | None
    """As `_Noise.rerun`; None where rows are not known."""


@dataclass(frozen=True, kw_only=True)
class Power:
    gain: float
    """In the metric's unit, as is `smallest`."""
    smallest: float
    """That is found in WANTED of cases."""
    rows: int
    seeds: int
    power: float
    """Of a first try."""
    seeds_wanted: int | None
    """From how many seeds on it is WANTED; None when the rows alone are too few for it."""
    assumed: str
    measured: str = ""

    @property
    def words(self) -> str:
        found = (
            f"power: a gain of {self.gain:.3g} is found in {self.power:.0%} of cases with"
            f" {self.rows} validation rows and {self.seeds} seeds"
        )
        if self.seeds_wanted is None:
            enough = f"no number of seeds finds it in {WANTED:.0%}: that takes more rows"
        else:
            enough = f"{self.seeds_wanted} seeds find it in {WANTED:.0%}"
        least = f"the smallest gain that is found in {WANTED:.0%} is {self.smallest:.2g}"
        known = f"measured: {self.measured}; " if self.measured else ""
        return f"{found}; {enough}; {least} ({known}assumed: {self.assumed})"


def few_rows(metric: str, rows: int, power: Power | None) -> list[Finding]:
    """A note where validation has so few rows that they tell little."""
    if rows >= FEW_ROWS:
        return []
    known = METRICS.get(metric)
    tells = "only a large gain can be told from luck"
    if power is not None:
        least, seeds = power.smallest, power.seeds
        tells = f"a gain below {least:.2g} is hardly told from luck with {seeds} seeds"
    elif known is not None and known.range == UNIT:
        half = NORMAL * math.sqrt(0.8 * 0.2 / rows)
        tells = f"a score near 0.8 is known to about ±{half:.2g}, and a gain hardly better"
    return [
        Finding(
            "validation_small",
            f"Validation has {rows} rows: {tells}.",
            "Give it more rows (`harness data split TABLE --validation 0.3`, or more data): more"
            " seeds help little. Or look for larger gains only.",
            {"rows": rows, "smallest": None if power is None else power.smallest},
        )
    ]


def power_of(
    metric: str,
    *,
    rows: int,
    seeds: int,
    groups: int | None,
    labels: Sequence[float] | None,
    gain: float | None = None,
    measured: Measured | None = None,
) -> Power | None:
    """Of a metric of the harness whose rows are right or wrong, or have a loss; of any other only
    with what was `measured`. None for others, and a script, of whose noise nothing is known, for
    fewer seeds than a comparison takes, for a loss whose trivial predictor has none, and where the
    seeds that were measured did nothing. `labels`: of training, where they are numbers. `gain`: in
    the metric's unit."""
    if seeds < LEAST_SEEDS:
        return None
    independent, more = float(rows), ""
    if groups is not None:
        independent = rows / (1 + max(rows / groups - 1, 0) * ALIKE)
        more = f"; rows of a group correlate by {ALIKE:g}"
    noise, unit = _assumed(metric, labels)
    if gain is None and noise is not None:
        gain = noise.gain * unit
    if measured is not None:
        noise, unit = _seen(measured, independent)
        gain = measured.spread if gain is None else gain
    if noise is None or gain is None:
        return None
    wanted = (
        k
        for k in range(LEAST_SEEDS, MOST_SEEDS + 1)
        if _both(noise, independent, k, gain / unit) >= WANTED
    )
    return Power(
        gain=gain,
        smallest=_smallest(noise, independent, seeds) * unit,
        rows=rows,
        seeds=seeds,
        power=_both(noise, independent, seeds, gain / unit),
        seeds_wanted=next(wanted, None),
        assumed=noise.words + more,
        measured="" if measured is None else _told(measured),
    )


def _assumed(metric: str, labels: Sequence[float] | None) -> tuple[_Noise | None, float]:
    """The noise, and the unit that it is in."""
    of = METRICS.get(metric)
    if of is not None and of.needs is Needs.CLASS and of.range == UNIT:
        return _SHARE, 1.0
    unit = _loss(metric, labels) if metric in _LOSSES else 0.0
    return (_LOSS, unit) if unit else (None, 1.0)


def _seen(measured: Measured, rows: float) -> tuple[_Noise | None, float]:
    """The noise, and the unit that it is in."""
    unit = measured.spread or math.sqrt(measured.rerun or 0.0)
    if not unit:
        return None, 1.0
    rerun = (measured.rerun or 0.0) / unit**2
    spread = measured.spread / unit
    beside = f"two experiments differ on the rows by {BESIDE_SEEDS:.0%} more than two seeds"
    noise = _Noise(
        gain=1.0,
        rerun=rerun,
        lasting=rerun * BESIDE_SEEDS,
        common=math.sqrt(max(spread**2 - rerun / 2 / rows, 0.0)),
        words=beside if rerun else "rows are not compared, seeds alone decide",
    )
    return noise, unit


def _told(measured: Measured) -> str:
    said = f"{measured.seeds} seeds have a spread of {measured.spread:.2g}"
    if measured.rerun is None:
        return said
    apart = math.sqrt(measured.rerun)
    return f"{said}, and their rows differ by {apart:.2g} (root mean square)"


def _smallest(noise: _Noise, rows: float, seeds: int) -> float:
    low, high = 0.0, 1.0
    while _both(noise, rows, seeds, high) < WANTED:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = _both(noise, rows, seeds, middle) >= WANTED
        low, high = (low, middle) if enough else (middle, high)
    return high


def _both(noise: _Noise, rows: float, seeds: int, gain: float) -> float:
    of_score = noise.rerun / 2 / rows + noise.common**2
    of_mean, degrees = math.sqrt(2 * of_score / seeds), 2 * seeds - 2
    # Of all spreads that so few seeds can show, each as likely as the other.
    floors = of_mean * np.sqrt(2 * _even_gammas(seeds - 1) / degrees)
    floors *= t_quantile(degrees, 1 - LEVEL * POOLED / 2)
    luck = math.sqrt((noise.lasting + noise.rerun / seeds) / rows)
    varies = math.hypot(luck, noise.common * math.sqrt(2 / seeds))
    beyond = (gain - np.maximum(floors, NORMAL * luck)) / varies
    return fmean(map(normal_cdf, beyond.tolist()))


@cache
def _even_gammas(shape: int) -> NDArray[np.float64]:
    """The gamma distribution's quantiles at _EVENLY, for a whole `shape`."""
    normal = np.array([normal_quantile(p) for p in _EVENLY.tolist()])
    # From Wilson and Hilferty's cubes, by Newton's method on the closed form.
    x = shape * (1 - 1 / (9 * shape) + normal / (3 * math.sqrt(shape))) ** 3
    x = np.maximum(x, 1e-3)
    for _ in range(8):
        term = total = np.exp(-x)
        for step in range(1, shape):
            term = term * x / step
            total = total + term
        step_to = x - (1 - total - _EVENLY) / term
        x = np.where(step_to > 0, step_to, x / 2)
    return x


def _loss(metric: str, labels: Sequence[float] | None) -> float:
    """The trivial predictor's, on the training labels."""
    if METRICS[metric].needs is Needs.PROBABILITIES:
        return math.log(2)  # of two even classes; more classes cost more
    if not labels:
        return 0.0
    middle = median(labels) if METRICS[metric].trivial is Trivial.MEDIAN else fmean(labels)
    apart = [abs(label - middle) for label in labels]
    return fmean(one * one for one in apart) if metric == "mse" else fmean(apart)
