"""A reward that rises alone: the policy found what pays, not what was meant."""

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    RunDetector,
    Series,
    Surroundings,
    make_alarm,
)
from harness.detectors.metric_names import of_reward
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings

_LEAST = 8
"""Rows of a reward, and"""
_EVALUATIONS = 4
"""evaluations, before anything is compared."""
_KL_RISE = 5.0


class RewardGap(RunDetector):
    """The reward against a score on other rows, and against length, KL and entropy together."""

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = settings.limits
        self._episode = Episode(self._limits["reward_gap.rows"])
        self._sure = False

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        reward = around.reward
        if reward is None or reward.level is None or reward.count < _LEAST:
            return None
        gap, sure = "", False
        if self._rose(reward, reward.level):
            gap, sure = self._apart(around)
        if not gap and not self._episode.active:
            return None
        if sure and self._episode.raised and not self._sure:
            # What was a note is one no more.
            self._episode = Episode(self._limits["reward_gap.rows"])
        change = self._episode.step(bool(gap))
        if change is EpisodeChange.NOTHING:
            return None
        self._sure = sure
        name = "fall" if "below its start" in gap else "kl"
        alarm = make_alarm(
            "reward_gap",
            change,
            row,
            metric=reward.key,
            message=f"{reward.level:.4g} -> {reward.recent:.4g}; {gap or 'they agree again'}",
            evidence=reward.evidence(6),
            threshold=name,
            limits=self._limits,
        )
        return alarm if sure else alarm.at_most(Severity.NOTE)

    def _rose(self, reward: Series, level: float) -> bool:
        rise = reward.best - level
        return (
            rise > self._limits["reward_gap.rise"] * abs(level)
            and reward.recent > level + 0.5 * rise
        )

    def _apart(self, around: Surroundings) -> tuple[str, bool]:
        """What parts from the reward, and whether that is sure."""
        for score in around.later_scores:
            if of_reward(score.key) or score.count < _EVALUATIONS or score.level is None:
                continue
            low = score.best * (1 - self._limits["reward_gap.fall"])
            if score.best > 0 and score.recent < min(low, score.level):
                told = f"{score.key} {score.level:.4g} -> {score.recent:.4g}, below its start"
                return told, True
        found = self._run_away(around)
        return ", ".join(found), len(found) > 2

    def _run_away(self, around: Surroundings) -> list[str]:
        """Two or three of length, KL and entropy that went far; else nothing."""
        limits, far = self._limits, []
        for name, series in around.sides.items():
            level, now = series.level, series.recent
            if level is None or series.count < _LEAST:
                continue
            went = {
                "length": now > limits["reward_gap.length"] * level > 0,
                "kl": now > max(limits["reward_gap.kl"], _KL_RISE * level),
                "entropy": level > 0 and now < limits["reward_gap.entropy"] * level,
            }[name]
            if went:
                far.append(f"{series.key} {level:.4g} -> {now:.4g}")
        return far if len(far) > 1 else []
