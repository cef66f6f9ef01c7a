"""Detectors of reinforcement and preference training.

A loss of 0 is no fault there: with one update for each batch the GRPO loss is 0 by construction,
and only its gradient means something (TRL issue 2703).
"""

import math

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
)
from harness.detectors.metric_names import (
    CHANNEL,
    MetricRole,
)
from harness.detectors.rows import WatchedRow

_NEAR_END = 0.7
"""Of the groups: so many had no spread in the row before."""
_EXACT = 1e-6
"""Distance from ln 2 that is no difference at all, in single precision."""


class _ValueDetector(SeriesDetector):
    """One whose alarm says no more than the value."""

    def _raised(
        self,
        threshold: str,
        change: EpisodeChange,
        series: Series,
        row: WatchedRow,
        value: float,
    ) -> Alarm | None:
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(threshold, change, row, series, f"{value:.4g}", rows=6)


class RewardSpread(_ValueDetector):
    """The spread of rewards, or the share of groups without any."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role in (MetricRole.REWARD_SPREAD, MetricRole.ZERO_SPREAD)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits, self._share = limits, metric.role is MetricRole.ZERO_SPREAD
        self._name = f"reward_spread_zero.{'share' if self._share else 'spread'}"
        self._limit = limits[self._name]
        self._episode = Episode(limits["reward_spread_zero.rows"])
        self._slowly = False

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        wrong = value >= self._limit if self._share else abs(value) <= self._limit
        if wrong and not self._episode.hits:
            # Questions are solved one after the other; a reward that breaks does so at once.
            near = value * _NEAR_END if self._share else (series.level or 0.0) * (1 - _NEAR_END)
            self._slowly = series.last >= near if self._share else series.last <= near
        alarm = self._raised(self._name, self._episode.step(wrong), series, row, value)
        solved = self._slowly and around.solved
        return alarm.at_most(Severity.NOTE) if alarm is not None and solved else alarm


class KlHigh(_ValueDetector):
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
        alarm = self._raised("kl_high.kl", change, series, row, value)
        # A variational encoder's divergence has no such bound.
        return alarm if alarm is None or around.policy else alarm.at_most(Severity.NOTE)


class EntropyCollapse(_ValueDetector):
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
        alarm = self._raised(
            "entropy_collapse.share", self._episode.step(wrong), series, row, value
        )
        # A policy that found the right answers is sure of them.
        return alarm.at_most(Severity.NOTE) if alarm is not None and around.solved else alarm


class DpoStuck(_ValueDetector):
    """The DPO loss of equal log-ratios is ln 2: chosen and rejected are not told apart."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._episode = Episode(limits["dpo_stuck.rows"])
        self._exact = Episode(limits["dpo_stuck.exact_rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if not around.preference or series is not around.training_loss:
            return None
        away = abs(value - math.log(2))
        # Exactly ln 2 is no accident and warns sooner; both counters must see every row.
        exact = self._exact.step(away < _EXACT)
        near = self._episode.step(away < self._limits["dpo_stuck.distance"])
        change = exact if exact is EpisodeChange.WARNING else near
        return self._raised("dpo_stuck.distance", change, series, row, value)


class ChannelSilent(_ValueDetector):
    """Rows that a channel of a composed loss fired on; a channel of weight 0 logs none."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.key.startswith(CHANNEL) and metric.key.endswith("/rows")

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._episode = Episode(limits["channel_silent.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        change = self._episode.step(value <= 0)
        return self._raised("channel_silent.rows", change, series, row, value)
