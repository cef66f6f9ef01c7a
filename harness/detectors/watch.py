"""The watch over one run: feed it rows, get alarms. Each row costs O(1), memory is bounded."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    PairDetector,
    RunDetector,
    Series,
    SeriesDetector,
    Thresholds,
    WatchedMetric,
)
from harness.detectors.kinds import KINDS
from harness.detectors.losses import NonFinite
from harness.detectors.metric_names import (
    MetricRole,
    is_later,
    is_length,
    is_total,
    of_policy,
    of_reward,
    role_of,
)
from harness.detectors.rows import WatchedRow, row_from
from harness.detectors.watch_settings import WatchSettings
from harness.domain.statuses import Direction

_MOST_METRICS = 200
_RATE_MEMORY = 5
_RATE_RISE = 1.5
"""A learning rate this much above the least of the last rows rose."""
_KNOWS = 0.3
"""The least accuracy that is called knowledge."""
_NATS = 50.0
"""From here on exp(-x) is 0 for the comparison with an accuracy."""
_REINFORCED = frozenset({MetricRole.REWARD_SPREAD, MetricRole.ZERO_SPREAD})
"""A divergence alone is none: a variational encoder has one, and a student."""
_SIDES = 8
"""Values on other rows that are asked whether training still helps."""
_LATELY = 3
"""Rows in which a value was best: training still helps."""
_SOLVED_ROWS, _ROSE, _NEAR = 12, 0.5, 0.1
"""A reward that rose by half of its level, and is within a tenth of that from its best."""


class _MetricWatch:
    """One metric, and the detectors that watch it."""

    __slots__ = ("detectors", "feeds", "non_finite", "pair", "series")

    def __init__(
        self, metric: WatchedMetric, detectors: list[SeriesDetector], limits: Thresholds
    ) -> None:
        self.series = Series(metric.key, sign=-1 if metric.role is MetricRole.SCORE else 1)
        self.non_finite = NonFinite(metric.role, limits)
        self.detectors = detectors
        # Bound methods, looked up once: this list is walked for every value of every row.
        self.feeds = [detector.feed for detector in detectors]
        self.pair: int | None = None
        """Its part in a pair: 0 loss, 1 accuracy, 2 later loss, 3 later accuracy."""
        if metric.role is MetricRole.LOSS:
            self.pair = 2 * metric.later
        elif metric.role is MetricRole.SCORE and "acc" in metric.key:
            self.pair = 2 * metric.later + 1


class RunWatch:
    """All detectors of `kinds.KINDS` on one run; of more than 200 metrics the first 200."""

    def __init__(self, settings: WatchSettings | None = None) -> None:
        self.settings = settings or WatchSettings()
        self._limits = self.settings.limits
        self.rows = 0
        self.training_loss: Series | None = None
        self.total_epochs: int | None = None
        self.total_steps: int | None = None
        self.by_epoch = True
        self.rate_rose = False
        self.knows = False
        self.reinforced = False
        self.preference = False
        self.policy = False
        self.improving = False
        self.judged = frozenset(self.settings.directions)
        self.later_scores: list[Series] = []
        self.reward: Series | None = None
        self.sides: dict[str, Series] = {}
        self._later: list[Series] = []
        """Losses and scores on other rows."""
        self._rate_key: str | None = None
        self._whole: str | None = None
        """The loss that stands for the run: one named as the whole, else the first."""
        self._metrics: dict[str, _MetricWatch] = {}
        self._epoch_rows = 0
        self._changes = 0
        self._last_epoch: float | None = None
        self._rates: deque[float] = deque(maxlen=_RATE_MEMORY + 1)
        self._open: dict[tuple[str, str], Alarm] = {}
        self._partners: dict[int, Series] = {}
        self._pairs: list[tuple[Series, Series, list[PairDetector]]] = []
        classes = [*_detector_classes()]
        self._of_series = [made for made in classes if issubclass(made, SeriesDetector)]
        self._of_pairs = [made for made in classes if issubclass(made, PairDetector)]
        self._of_run = [made(self.settings) for made in classes if issubclass(made, RunDetector)]

    def feed(self, plain: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a row, as readers of metrics files return it, raises or ends."""
        self.rows += 1
        row = row_from(plain, self.rows)
        raised = self._epoch(row) if row.event == "epoch" else self._event(row, plain)
        alarms = [alarm for alarm in raised if alarm.code not in self.settings.off]
        for alarm in alarms:
            self._open.pop(alarm.subject, None)
            if alarm.open:
                self._open[alarm.subject] = alarm
        return alarms

    @property
    def open(self) -> list[Alarm]:
        """The alarms that still stand, oldest first."""
        return sorted(self._open.values(), key=lambda alarm: alarm.row)

    def fatal(self) -> Alarm | None:
        """The first standing fatal alarm for which the settings stop a run."""
        stops = self.settings.stop_on
        return next(
            (a for a in self.open if a.severity is Severity.FATAL and a.code in stops), None
        )

    def _event(self, row: WatchedRow, plain: Mapping[str, Any]) -> Iterator[Alarm]:
        if row.event in ("start", "attempt"):
            total = plain.get("total_epochs")
            if type(total) is int and total > 0:
                self.total_epochs = total
        steps = plain.get("total_steps")
        if type(steps) is int and steps > 0:
            self.total_steps = steps
        if row.event == "attempt":
            for metric in self._metrics.values():
                for detector in metric.detectors:
                    detector.resumed(metric.series)
        if row.event == "end":
            yield from self._at_end(row)
        if row.event == "checkpoint" and plain.get("final"):
            yield from self._kept(row)
        for run_detector in self._of_run:
            alarm = run_detector.feed_event(row)
            if alarm is not None:
                yield alarm

    def end(self) -> list[Alarm]:
        """The alarms that wait for a next row, when there will be none."""
        row = row_from({"event": "end"}, self.rows)
        found = [alarm for alarm in self._at_end(row) if alarm.code not in self.settings.off]
        self._open |= {alarm.subject: alarm for alarm in found}
        return found

    def _at_end(self, row: WatchedRow) -> Iterator[Alarm]:
        for metric in self._metrics.values():
            alarm = metric.non_finite.at_end(metric.series, row)
            if alarm is not None:
                yield alarm

    def _kept(self, row: WatchedRow) -> Iterator[Alarm]:
        for metric in self._metrics.values():
            for detector in metric.detectors:
                alarm = detector.kept(metric.series, row)
                if alarm is not None:
                    yield alarm

    def _epoch(self, row: WatchedRow) -> list[Alarm]:
        self._note_cadence(row)
        if row.learning_rate is None and self._rate_key in row.metrics:
            row = row._replace(learning_rate=row.metrics[self._rate_key])
        self.improving = False
        for series in self._later:
            if series.count > 2 and row.number - series.best_row <= _LATELY:
                self.improving = True
                break
        if row.learning_rate is not None:
            self._note_rate(row.learning_rate)
        alarms = []
        for run_detector in self._of_run:
            alarm = run_detector.feed_row(row, self)
            if alarm is not None:
                alarms.append(alarm)
        if self._whole is None:
            losses = [
                key for key in row.metrics if role_of(key) is MetricRole.LOSS and not is_later(key)
            ]
            self._whole = next(
                (key for key in losses if is_total(key)), losses[0] if losses else None
            )
        known, place = self._metrics, row.place
        for key, value in row.metrics.items():
            metric = known.get(key) or self._new(key)
            if metric is None:
                continue
            metric.series.points.append((row.number, place, value))
            # `value - value == 0` is the cheapest test for a finite number.
            if value - value == 0 and not metric.non_finite.episode.active:
                self._feed_finite(metric, row, value, alarms)
            else:
                self._feed_any(metric, row, value, alarms)
        # A policy's or a preference model's loss is no cross-entropy of its accuracy.
        if self._pairs and not self.reinforced and not self.preference:
            for loss, accuracy, detectors in self._pairs:
                self._compare(row, loss, accuracy, detectors, alarms)
        return alarms

    def _note_cadence(self, row: WatchedRow) -> None:
        self._epoch_rows += 1
        # Parts of an epoch are rows of steps.
        epoch = None if row.epoch is None else math.floor(row.epoch)
        self._changes += epoch is not None and epoch != self._last_epoch
        self._last_epoch = epoch
        self.by_epoch = 2 * self._changes > self._epoch_rows

    def _note_rate(self, rate: float) -> None:
        if not math.isfinite(rate):
            return
        # A constant rate changes nothing, unless it is what comes after a rise.
        if self._rates and rate == self._rates[-1] and not self.rate_rose:
            return
        self._rates.append(rate)
        self.rate_rose = rate > _RATE_RISE * min(self._rates)

    def _feed_finite(
        self, metric: _MetricWatch, row: WatchedRow, value: float, alarms: list[Alarm]
    ) -> None:
        series = metric.series
        for feed in metric.feeds:
            alarm = feed(series, row, value, self)
            if alarm is not None:
                alarms.append(alarm)
        series.add(value, row.number, row.epoch)

    def _feed_any(
        self, metric: _MetricWatch, row: WatchedRow, value: float, alarms: list[Alarm]
    ) -> None:
        """A non-finite value, or a finite one while such an episode is open."""
        finite = math.isfinite(value)
        alarm = metric.non_finite.feed_any(metric.series, row, finite)
        if alarm is not None:
            alarms.append(alarm)
        if finite:
            self._feed_finite(metric, row, value, alarms)

    def _compare(
        self,
        row: WatchedRow,
        loss: Series,
        accuracy: Series,
        detectors: list[PairDetector],
        alarms: list[Alarm],
    ) -> None:
        """Feed the pair, when this row has both values."""
        number, _, paid = loss.points[-1]
        other, _, hit = accuracy.points[-1]
        if number != row.number or other != row.number:
            return
        self.knows = hit > _KNOWS and hit > math.exp(-max(-_NATS, min(paid, _NATS)))
        for detector in detectors:
            alarm = detector.feed_pair(loss, accuracy, row, (paid, hit))
            if alarm is not None:
                alarms.append(alarm)

    def _new(self, key: str) -> _MetricWatch | None:
        if len(self._metrics) >= _MOST_METRICS:
            return None
        role, direction = role_of(key), self.settings.directions.get(key)
        if direction is not None:
            role = MetricRole.LOSS if direction is Direction.MINIMIZE else MetricRole.SCORE
        later = is_later(key)
        whole = role is MetricRole.LOSS and not later and (key == self._whole or is_total(key))
        watched = WatchedMetric(key, role, later, whole)
        detectors = [
            made(watched, self._limits) for made in self._of_series if made.watches(watched)
        ]
        metric = self._metrics[key] = _MetricWatch(watched, detectors, self._limits)
        if metric.pair is not None:
            self._pair(metric.pair, metric.series)
        self.reinforced |= role in _REINFORCED or (of_reward(key) and not later)
        self.preference |= "rewards/margins" in key
        self.policy |= of_policy(key) or self.preference
        self._note(metric.series, role, later)
        if whole and self.training_loss is None:
            self.training_loss = metric.series
        return metric

    def _note(self, series: Series, role: MetricRole, later: bool) -> None:
        """Remember a series that detectors of others ask about."""
        if role is MetricRole.LEARNING_RATE and self._rate_key is None:
            self._rate_key = series.key
        if later and role in (MetricRole.LOSS, MetricRole.SCORE) and len(self._later) < _SIDES:
            self._later.append(series)
            if role is MetricRole.SCORE:
                self.later_scores.append(series)
        if self.reward is None and not later and of_reward(series.key):
            self.reward = series
        sides = {MetricRole.KL: "kl", MetricRole.ENTROPY: "entropy"}
        side = "length" if is_length(series.key) else sides.get(role)
        if side is not None and not later:
            self.sides.setdefault(side, series)

    @property
    def solved(self) -> bool:
        """Whether the reward rose to its best and stays there."""
        reward = self.reward
        if reward is None or reward.level is None or reward.count < _SOLVED_ROWS:
            return False
        best, level, now = reward.best, reward.level, reward.recent
        rose = best - level > _ROSE * max(abs(level), _ROSE * abs(best))
        return rose and best - now <= _NEAR * (best - level)

    def _pair(self, number: int, series: Series) -> None:
        """Compare the first loss and the first accuracy of the same rows."""
        # `number ^ 1` is the partner in the numbering of `_MetricWatch.pair`.
        if self._partners.setdefault(number, series) is series and number ^ 1 in self._partners:
            first = number & ~1
            loss, accuracy = self._partners[first], self._partners[first + 1]
            self._pairs.append((loss, accuracy, [made(self._limits) for made in self._of_pairs]))


def _detector_classes() -> Iterator[type[Any]]:
    """The classes that the table names, in its order, each once."""
    for path in dict.fromkeys(path for kind in KINDS.values() for path in kind.detectors):
        module, name = path.split(":")
        yield getattr(import_module(module), name)
