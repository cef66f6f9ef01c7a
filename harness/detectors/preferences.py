"""Detectors of reinforcement and preference training. A loss of 0 is no fault there: with one
update a batch the GRPO loss is 0 by construction, and only its gradient says something (TRL issue
2703)."""

import math

from harness.detectors.alarm import Alarm
from harness.detectors.base import Change, Episode, Limits, Surroundings, make
from harness.detectors.keys import Role
from harness.detectors.rows import Row
from harness.detectors.series import Series

_EXACT = 1e-6
"""From ln 2: no difference at all, in single precision."""


class RewardSpread:
    """Either the standard deviation of rewards, or the share of groups in which it is zero."""

    def __init__(self, role: Role, limits: Limits) -> None:
        self._limits, self._share = limits, role is Role.ZERO_SPREAD
        self._episode = Episode(limits["reward_spread_zero.rows"])

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        limit = self._limits[
            "reward_spread_zero.share" if self._share else "reward_spread_zero.spread"
        ]
        wrong = value >= limit if self._share else abs(value) <= limit
        name = "share" if self._share else "spread"
        return _raised(
            "reward_spread_zero", self._episode.step(wrong), name, series, row, value, self._limits
        )


class Divergent:
    """KL to the reference."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._episode = Episode(limits["kl_high.rows"])

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        change = self._episode.step(value > self._limits["kl_high.kl"])
        return _raised("kl_high", change, "kl", series, row, value, self._limits)


class Entropy:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._most = float("-inf")
        self._episode = Episode(limits["entropy_collapse.rows"])

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        self._most = max(self._most, value)
        wrong = self._most > 0 and value < self._limits["entropy_collapse.share"] * self._most
        return _raised(
            "entropy_collapse", self._episode.step(wrong), "share", series, row, value, self._limits
        )


class Stuck:
    """The DPO loss of equal log-ratios is ln 2."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._episode, self._exact = (
            Episode(limits["dpo_stuck.rows"]),
            Episode(limits["dpo_stuck.exact_rows"]),
        )

    def feed_loss(self, series: Series, row: Row, value: float) -> Alarm | None:
        away = abs(value - math.log(2))
        exact = self._exact.step(away < _EXACT)
        near = self._episode.step(away < self._limits["dpo_stuck.distance"])
        change = exact if exact is Change.WARNING else near
        return _raised("dpo_stuck", change, "distance", series, row, value, self._limits)


def _raised(
    code: str,
    change: Change,
    threshold: str,
    series: Series,
    row: Row,
    value: float,
    limits: Limits,
) -> Alarm | None:
    if change is Change.NOTHING:
        return None
    return make(
        code,
        change,
        row,
        metric=series.key,
        message=f"{value:.4g}",
        evidence=series.evidence(6),
        threshold=threshold,
        limits=limits,
    )
