"""A watch over one run: feed it rows, get alarms. O(1) a row, and a bounded memory whatever is
logged."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import SeriesDetector
from harness.detectors.keys import Role, is_later, is_total, role_of
from harness.detectors.learning import GUESS, Absurd, Chance, Gradient, NoProgress, Overfit, Plateau
from harness.detectors.losses import Divergence, NonFinite, Resume, Spike, Stall
from harness.detectors.preferences import Divergent, Entropy, RewardSpread, Stuck
from harness.detectors.resources import Checkpoints, LearningRate, Memory, SlowRows, Throughput
from harness.detectors.rows import Row, row_from
from harness.detectors.series import Series
from harness.detectors.settings import WatchSettings
from harness.domain.statuses import Direction

_MOST_METRICS = 200
_RATE_MEMORY = 5
_RATE_RISE = 1.5
_KNOWS, _NATS = 0.3, 50.0
"""The least accuracy that is called knowledge; nats above which exp(-x) is 0."""
_RL = frozenset({Role.KL, Role.REWARD_SPREAD, Role.ZERO_SPREAD})


class _Metric:
    """One metric, with what looks at it."""

    __slots__ = ("feeds", "non_finite", "pair", "resume", "series")

    def __init__(self, key: str, role: Role, limits: Mapping[str, float], *, whole: bool) -> None:
        self.series = Series(key, sign=-1 if role is Role.SCORE else 1)
        later = is_later(key)
        self.non_finite = NonFinite(role, limits)
        self.resume = Resume(limits) if whole else None
        detectors: list[SeriesDetector] = [*_detectors(role, later, whole, limits)]
        if self.resume is not None:
            detectors.append(self.resume)
        self.feeds = [detector.feed for detector in detectors]
        self.pair: int | None = None
        """Which of the values that are compared in pairs it is: loss, accuracy, later loss, later
        accuracy."""
        if role is Role.LOSS:
            self.pair = 2 * later
        elif role is Role.SCORE and "acc" in key:
            self.pair = 2 * later + 1


def _detectors(
    role: Role, later: bool, whole: bool, limits: Mapping[str, float]
) -> Iterator[SeriesDetector]:
    """A part of the training loss may rise while the whole falls: only its spikes say something."""
    if role is Role.LOSS and not later and not whole:
        yield Spike(limits)
    elif role is Role.LOSS and not later:
        yield from (
            Divergence(limits),
            Spike(limits),
            Stall(limits),
            NoProgress(limits),
            Plateau(limits),
        )
    elif role in (Role.LOSS, Role.SCORE) and later:
        yield Overfit(limits)
        if role is Role.LOSS:
            yield from (Spike(limits), Stall(limits, later=True))
    elif role is Role.GRADIENT:
        yield Gradient(limits)
    elif role is Role.THROUGHPUT:
        yield Throughput(limits)
    elif role is Role.MEMORY:
        yield Memory(limits)
    elif role in (Role.REWARD_SPREAD, Role.ZERO_SPREAD):
        yield RewardSpread(role, limits)
    elif role is Role.KL:
        yield Divergent(limits)
    elif role is Role.ENTROPY:
        yield Entropy(limits)


class Watch:
    """Of more than 200 metrics the first 200 are watched."""

    def __init__(self, settings: WatchSettings | None = None) -> None:
        self.settings = settings or WatchSettings()
        limits = self._limits = self.settings.limits
        self.rows = 0
        self.training_loss: Series | None = None
        self.total_epochs: int | None = None
        self.by_epoch = True
        self.rate_rose = False
        self.knows = False
        self.reinforced = False
        self._preference = False
        self._whole: str | None = None
        """The loss that stands for the run: one that is named as the whole, else the first."""
        self._metrics: dict[str, _Metric] = {}
        self._epoch_rows = 0
        self._changes = 0
        self._last_epoch: float | None = None
        self._slow, self._rate, self._stuck = SlowRows(limits), LearningRate(limits), Stuck(limits)
        self._partners: dict[int, Series] = {}
        self._pairs: list[tuple[Series, Series, Chance, Absurd]] = []
        every = self.settings.checkpoint_every
        self._checkpoints = None if every is None else Checkpoints(every, limits)
        self._rates: deque[float] = deque(maxlen=_RATE_MEMORY + 1)
        self._open: dict[tuple[str, str], Alarm] = {}

    def feed(self, plain: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that this row raises or ends; `plain` as readers of metrics files give it."""
        self.rows += 1
        row = row_from(plain, self.rows)
        found = self._epoch(row) if row.event == "epoch" else self._other(row, plain)
        alarms = [alarm for alarm in found if alarm.code not in self.settings.off]
        for alarm in alarms:
            self._open.pop(alarm.subject, None)
            if alarm.open:
                self._open[alarm.subject] = alarm
        return alarms

    @property
    def open(self) -> list[Alarm]:
        """What still stands, in the order in which it was raised."""
        return sorted(self._open.values(), key=lambda alarm: alarm.row)

    def fatal(self) -> Alarm | None:
        """The first fatal alarm that still stands and that ends a run by the settings."""
        stops = self.settings.stop_on
        return next(
            (a for a in self.open if a.severity is Severity.FATAL and a.code in stops), None
        )

    def _other(self, row: Row, plain: Mapping[str, Any]) -> Iterator[Alarm]:
        if row.event in ("start", "attempt"):
            total = plain.get("total_epochs")
            if type(total) is int and total > 0:
                self.total_epochs = total
            self._slow.restart()
            if self._checkpoints is not None:
                self._checkpoints.restart()
        if row.event == "attempt":
            for metric in self._metrics.values():
                if metric.resume is not None:
                    metric.resume.resumed(metric.series)
        if row.event == "checkpoint" and self._checkpoints is not None:
            alarm = self._checkpoints.saved(row)
            if alarm is not None:
                yield alarm

    def _epoch(self, row: Row) -> list[Alarm]:
        self._epoch_rows += 1
        self._changes += row.epoch is not None and row.epoch != self._last_epoch
        self._last_epoch = row.epoch
        self.by_epoch = 2 * self._changes > self._epoch_rows
        rows = (
            self._slow.feed_row(row),
            None if self._checkpoints is None else self._checkpoints.feed_row(row),
            None if row.learning_rate is None else self._learning_rate(row, row.learning_rate),
        )
        alarms = [alarm for alarm in rows if alarm is not None]
        if self._whole is None:
            losses = [key for key in row.metrics if role_of(key) is Role.LOSS and not is_later(key)]
            self._whole = next(
                (key for key in losses if is_total(key)), losses[0] if losses else None
            )
        known, place = self._metrics, row.place
        for key, value in row.metrics.items():
            metric = known.get(key) or self._new(key)
            if metric is None:
                continue
            metric.series.points.append((row.number, place, value))
            if (
                value - value == 0 and not metric.non_finite.episode.active
            ):  # finite, and no episode to end
                series = metric.series
                for feed in metric.feeds:
                    alarm = feed(series, row, value, self)
                    if alarm is not None:
                        alarms.append(alarm)
                if self._preference and series is self.training_loss:
                    alarm = self._stuck.feed_loss(series, row, value)
                    if alarm is not None:
                        alarms.append(alarm)
                series.add(value, row.number, row.epoch)
            else:
                self._rare(metric, row, value, alarms)
        if self._pairs and not self.reinforced and not self._preference:
            for pair in self._pairs:
                self._compare(row, *pair, alarms)
        return alarms

    def _rare(self, metric: _Metric, row: Row, value: float, alarms: list[Alarm]) -> None:
        finite = math.isfinite(value)
        alarm = metric.non_finite.feed_any(metric.series, row, finite)
        if alarm is not None:
            alarms.append(alarm)
        if finite:
            for feed in metric.feeds:
                said = feed(metric.series, row, value, self)
                if said is not None:
                    alarms.append(said)
            metric.series.add(value, row.number, row.epoch)

    def _compare(
        self,
        row: Row,
        loss: Series,
        accuracy: Series,
        chance: Chance,
        absurd: Absurd,
        alarms: list[Alarm],
    ) -> None:
        """Loss and accuracy of the same rows, when this row has both."""
        number, _, paid = loss.points[-1]
        other, _, hit = accuracy.points[-1]
        if number != row.number or other != row.number:
            return
        self.knows = hit > _KNOWS and hit > math.exp(-min(paid, _NATS))
        if (
            hit >= GUESS
            and not chance.episode.active
            and paid <= absurd.most
            and not absurd.episode.active
        ):
            return
        found = (
            chance.feed_pair(accuracy, loss, row, (hit, paid)),
            absurd.feed_pair(loss, row, paid),
        )
        alarms += [alarm for alarm in found if alarm is not None]

    def _learning_rate(self, row: Row, rate: float) -> Alarm | None:
        if not math.isfinite(rate):
            return None
        if self._rates and rate == self._rates[-1] and not self.rate_rose:
            return self._rate.feed_rate(row, rate, self.total_epochs)
        self._rates.append(rate)
        self.rate_rose = rate > _RATE_RISE * min(self._rates)
        return self._rate.feed_rate(row, rate, self.total_epochs)

    def _new(self, key: str) -> _Metric | None:
        if len(self._metrics) >= _MOST_METRICS:
            return None
        role, given = role_of(key), self.settings.directions.get(key)
        if given is not None:
            role = Role.LOSS if given is Direction.MINIMIZE else Role.SCORE
        whole = role is Role.LOSS and not is_later(key) and (key == self._whole or is_total(key))
        metric = self._metrics[key] = _Metric(key, role, self._limits, whole=whole)
        if metric.pair is not None:
            self._pair(metric.pair, metric.series)
        self.reinforced |= role in _RL or key in ("reward", "train/reward")
        self._preference |= "rewards/margins" in key
        if whole and self.training_loss is None:
            self.training_loss = metric.series
        return metric

    def _pair(self, number: int, series: Series) -> None:
        """The first loss and the first accuracy of the same rows are compared."""
        if self._partners.setdefault(number, series) is series and number ^ 1 in self._partners:
            first = number & ~1
            loss, accuracy = self._partners[first], self._partners[first + 1]
            self._pairs.append((loss, accuracy, Chance(self._limits), Absurd(self._limits)))
