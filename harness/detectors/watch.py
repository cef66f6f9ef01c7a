"""A watch over one run: feed it rows, get alarms. O(1) a row, and a bounded memory whatever is logged."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import SeriesDetector
from harness.detectors.keys import Role, is_later, is_total, role_of
from harness.detectors.learning import Chance, Gradient, NoProgress, Overfit, Plateau
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
_RL = frozenset({Role.KL, Role.REWARD_SPREAD, Role.ZERO_SPREAD})


class _Metric:
    """One metric, with what looks at it."""

    __slots__ = ("detectors", "later", "non_finite", "resume", "role", "series")

    def __init__(self, key: str, role: Role, limits: Mapping[str, float], *, whole: bool) -> None:
        self.series = Series(key, sign=-1 if role is Role.SCORE else 1)
        self.role, self.later = role, is_later(key)
        self.non_finite = NonFinite(role, limits)
        self.resume = Resume(limits) if whole else None
        self.detectors: list[SeriesDetector] = list(_detectors(role, self.later, whole, limits))
        if self.resume is not None:
            self.detectors.append(self.resume)


def _detectors(role: Role, later: bool, whole: bool, limits: Mapping[str, float]) -> Iterator[SeriesDetector]:
    """A part of the training loss may rise while the whole falls: only its spikes say something."""
    if role is Role.LOSS and not later and not whole:
        yield Spike(limits)
    elif role is Role.LOSS and not later:
        yield from (Divergence(limits), Spike(limits), Stall(limits), NoProgress(limits), Plateau(limits))
    elif role in (Role.LOSS, Role.SCORE) and later:
        yield Overfit(limits)
        if role is Role.LOSS:
            yield Spike(limits)
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
        self.total_rows = self.settings.total_rows
        self.by_epoch = True
        self.rate_rose = False
        self.reinforced = False
        self._preference = False
        self._whole: str | None = None
        """The loss that stands for the run: one that is named as the whole, else the first."""
        self._metrics: dict[str, _Metric] = {}
        self._epochs = 0
        self._slow, self._rate, self._stuck = SlowRows(limits), LearningRate(limits), Stuck(limits)
        self._chance: dict[bool, Chance] = {later: Chance(limits) for later in (False, True)}
        every = self.settings.checkpoint_every
        self._checkpoints = None if every is None else Checkpoints(every, limits)
        self._rates: list[float] = []
        self._open: dict[tuple[str, str], Alarm] = {}

    def feed(self, plain: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that this row raises or ends; `plain` as readers of metrics files give it."""
        self.rows += 1
        row = row_from(plain, self.rows)
        if row.event == "epoch":
            alarms = [alarm for alarm in self._epoch(row) if alarm.code not in self.settings.off]
        else:
            alarms = [alarm for alarm in self._other(row, plain) if alarm.code not in self.settings.off]
        for alarm in alarms:
            code = "loss_spike" if alarm.code == "spike_recovered" else alarm.code
            self._open.pop((code, alarm.metric), None)
            if alarm.open:
                self._open[code, alarm.metric] = alarm
        return alarms

    @property
    def open(self) -> list[Alarm]:
        """What still stands, in the order in which it was raised."""
        return sorted(self._open.values(), key=lambda alarm: alarm.row)

    def fatal(self) -> Alarm | None:
        """The first fatal alarm that still stands and that ends a run by the settings."""
        stops = self.settings.stop_on
        return next((a for a in self.open if a.severity is Severity.FATAL and a.code in stops), None)

    def _other(self, row: Row, plain: Mapping[str, Any]) -> Iterator[Alarm]:
        if row.event in ("start", "attempt"):
            total = plain.get("total_epochs")
            if type(total) is int and total > 0:
                self.total_rows = total
            self._slow.restart()
        if row.event == "attempt":
            for metric in self._metrics.values():
                if metric.resume is not None:
                    metric.resume.resumed(metric.series)
        if row.event == "checkpoint" and self._checkpoints is not None:
            alarm = self._checkpoints.saved(row)
            if alarm is not None:
                yield alarm

    def _epoch(self, row: Row) -> Iterator[Alarm]:
        self._epochs += 1
        self.by_epoch = row.epoch is not None
        rows = (
            self._slow.feed_row(row),
            None if self._checkpoints is None else self._checkpoints.feed_row(row),
            None if row.learning_rate is None else self._learning_rate(row, row.learning_rate),
        )
        yield from (alarm for alarm in rows if alarm is not None)
        if self._whole is None:
            losses = [key for key in row.metrics if role_of(key) is Role.LOSS and not is_later(key)]
            self._whole = next((key for key in losses if is_total(key)), losses[0] if losses else None)
        pairs: dict[tuple[bool, Role], tuple[_Metric, float]] = {}
        for key, value in row.metrics.items():
            metric = self._metrics.get(key) or self._new(key)
            if metric is None:
                continue
            yield from self._value(metric, row, value)
            if metric.role is Role.LOSS or "acc" in key:
                pairs.setdefault((metric.later, metric.role), (metric, value))
        yield from self._pairs(row, pairs)

    def _value(self, metric: _Metric, row: Row, value: float) -> Iterator[Alarm]:
        series, finite = metric.series, math.isfinite(value)
        series.note(row, value)
        alarm = metric.non_finite.feed_any(series, row, finite)
        if alarm is not None:
            yield alarm
        if not finite:
            return
        for detector in metric.detectors:
            alarm = detector.feed(series, row, value, self)
            if alarm is not None:
                yield alarm
        if self._preference and series is self.training_loss:
            alarm = self._stuck.feed_loss(series, row, value)
            if alarm is not None:
                yield alarm
        series.add(value, row.number)

    def _pairs(self, row: Row, pairs: dict[tuple[bool, Role], tuple[_Metric, float]]) -> Iterator[Alarm]:
        """Accuracy and loss of the same rows: training, and later ones."""
        for later, chance in self._chance.items():
            accuracy, loss = pairs.get((later, Role.SCORE)), pairs.get((later, Role.LOSS))
            if accuracy is None or loss is None or self.reinforced or self._preference:
                continue
            alarm = chance.feed_pair(accuracy[0].series, loss[0].series, row, (accuracy[1], loss[1]))
            if alarm is not None:
                yield alarm

    def _learning_rate(self, row: Row, rate: float) -> Alarm | None:
        if not math.isfinite(rate):
            return None
        self._rates = [*self._rates[-_RATE_MEMORY:], rate]
        self.rate_rose = rate > _RATE_RISE * min(self._rates)
        return self._rate.feed_rate(row, rate, self.total_rows, self._epochs)

    def _new(self, key: str) -> _Metric | None:
        if len(self._metrics) >= _MOST_METRICS:
            return None
        role, given = role_of(key), self.settings.directions.get(key)
        if given is not None:
            role = Role.LOSS if given is Direction.MINIMIZE else Role.SCORE
        whole = role is Role.LOSS and not is_later(key) and (key == self._whole or is_total(key))
        metric = self._metrics[key] = _Metric(key, role, self._limits, whole=whole)
        self.reinforced |= role in _RL or key in ("reward", "train/reward")
        self._preference |= "rewards/margins" in key
        if whole and self.training_loss is None:
            self.training_loss = metric.series
        return metric
