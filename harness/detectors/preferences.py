"""Detectors of reinforcement and preference training.

A loss of 0 is no fault there: with one update for each batch the GRPO loss is 0 by construction,
and only its gradient means something (TRL issue 2703).
"""

import math

from harness.detectors.alarm import Alarm
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
    WatchedRow,
    make_alarm,
)
from harness.detectors.metric_names import MetricRole

_EXACT = 1e-6
"""Distance from ln 2 that is no difference at all, in single precision."""


class RewardSpread(SeriesDetector):
    """The standard deviation of rewards, or the share of groups in which it is zero."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role in (MetricRole.REWARD_SPREAD, MetricRole.ZERO_SPREAD)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits, self._share = limits, metric.role is MetricRole.ZERO_SPREAD
        self._episode = Episode(limits["reward_spread_zero.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        limit = self._limits[
            "reward_spread_zero.share" if self._share else "reward_spread_zero.spread"
        ]
        wrong = value >= limit if self._share else abs(value) <= limit
        name = "share" if self._share else "spread"
        return _raised(
            "reward_spread_zero", self._episode.step(wrong), name, series, row, value, self._limits
        )


class KlHigh(SeriesDetector):
    """KL divergence of the policy from its reference."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.KL

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._episode = Episode(limits["kl_high.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        change = self._episode.step(value > self._limits["kl_high.kl"])
        return _raised("kl_high", change, "kl", series, row, value, self._limits)


class EntropyCollapse(SeriesDetector):
    """The policy's entropy against the highest it had."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.ENTROPY

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._most = float("-inf")
        self._episode = Episode(limits["entropy_collapse.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        self._most = max(self._most, value)
        wrong = self._most > 0 and value < self._limits["entropy_collapse.share"] * self._most
        return _raised(
            "entropy_collapse", self._episode.step(wrong), "share", series, row, value, self._limits
        )


class DpoStuck(SeriesDetector):
    """The DPO loss of equal log-ratios is ln 2: chosen and rejected are not told apart."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._episode, self._exact = (
            Episode(limits["dpo_stuck.rows"]),
            Episode(limits["dpo_stuck.exact_rows"]),
        )

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if not around.preference or series is not around.training_loss:
            return None
        away = abs(value - math.log(2))
        exact = self._exact.step(away < _EXACT)
        near = self._episode.step(away < self._limits["dpo_stuck.distance"])
        change = exact if exact is EpisodeChange.WARNING else near
        return _raised("dpo_stuck", change, "distance", series, row, value, self._limits)


def _raised(
    code: str,
    change: EpisodeChange,
    threshold: str,
    series: Series,
    row: WatchedRow,
    value: float,
    limits: Thresholds,
) -> Alarm | None:
    if change is EpisodeChange.NOTHING:
        return None
    return make_alarm(
        code,
        change,
        row,
        metric=series.key,
        message=f"{value:.4g}",
        evidence=series.evidence(6),
        threshold=threshold,
        limits=limits,
    )
