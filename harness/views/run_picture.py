"""One run as a watcher sees it, built row by row in bounded memory."""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from harness.artifacts.resources import Summary
from harness.artifacts.resume_check import ResumeCheck
from harness.detectors.alarm import PREDICT_FAILS, Alarm, Severity, open_alarms
from harness.detectors.metric_names import MetricRole, role_of
from harness.detectors.rows import row_from
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings
from harness.domain.plain_text import one_line
from harness.domain.statuses import Direction
from harness.domain.training_status import last_epoch
from harness.views.trace import Best, Trace

MOST_METRICS = 60
_NAME_LENGTH = 40
_PACE_ROWS = 40
_ROWS_OF_AN_AXIS = 3
_METRICS_IN_A_ROW = 6
_MOST_NOTES = 3
_NOT_DRAWN = frozenset(
    {MetricRole.LEARNING_RATE, MetricRole.THROUGHPUT, MetricRole.MEMORY, MetricRole.TIME}
)
_ENDINGS = {"completed": "completed", "failed": "failed"}


class RunPicture:
    """Progress, speed, metrics and alarms of a run.

    `feed` takes the rows of a log reader. Alarms come from a RunWatch, or from the supervisor by
    `alarms_from`. `said` is the end that the log itself reports.
    """

    def __init__(
        self, name: str, settings: WatchSettings, *, title: str = "", watches: bool = True
    ) -> None:
        self.name, self.title = name, title or name
        self.rows = 0
        self.measured = 0
        """Rows with values: the others say that something began or ended."""
        self.place: float | None = None
        self.unit = "epoch"
        self.counts = "step"
        """What a step is in the log's own words, e.g. an iteration or an episode."""
        self.step: float | None = None
        """Set when rows have both an epoch and a step."""
        self.total: float | None = None
        self.traces: dict[str, Trace] = {}
        self.rate: float | None = None
        self.throughput: tuple[str, float] | None = None
        self.memory: tuple[str, float] | None = None
        self.checkpoints = 0
        self.checkpoint_place: float | None = None
        self.summary: dict[str, float] = {}
        self.said: str | None = None
        self.used: Summary = {}
        """Peak and mean of what it used of its machine, where the supervisor looked."""
        self.resumes = 0
        self.resume_check = ResumeCheck()
        self.first_time: float | None = None
        self.last_time: float | None = None
        """Unix seconds, from the rows."""
        self._directions = settings.directions
        self._watch = RunWatch(settings) if watches else None
        self._alarms: dict[tuple[str, str], Alarm] = {}
        self._paces: deque[float] = deque(maxlen=_PACE_ROWS)
        """Seconds per epoch or step, between rows."""
        self._pace_from: tuple[float, float] | None = None
        self._from_one = False
        """Whether the first epoch is number 1."""
        self._steps = self._epochs = self._without_step = 0
        """How often each counter changed, and for how many rows there was no step."""
        self._newest: tuple[float | None, float | None] = (None, None)

    def feed(self, plain: Mapping[str, Any]) -> list[Alarm]:
        """Add a row; returns the alarms that it raises or ends."""
        self.rows += 1
        self.resume_check.take(dict(plain))
        row = row_from(plain, self.rows)
        if row.event == "epoch":
            self.measured += bool(row.metrics) or row.learning_rate is not None
            counts = plain.get("unit")
            if isinstance(counts, str) and row.step is not None:
                self.counts = one_line(counts, _NAME_LENGTH)
            if row.metrics and self.said is not None:
                self.said = None  # it went on
            self._axis(row.epoch, row.step, ours=plain.get("event") == "epoch")
            self._epoch(row.metrics, row.epoch, row.step, row.learning_rate)
        else:
            self._event(row.event, plain)
        if row.seconds is not None:
            self._time(row.seconds)
        alarms = [] if self._watch is None else self._watch.feed(plain)
        self.take_alarms(alarms)
        return alarms

    def end(self) -> list[Alarm]:
        """The alarms that wait for a row that will not come."""
        alarms = [] if self._watch is None else self._watch.end()
        self.take_alarms(alarms)
        return alarms

    def take_alarms(self, alarms: Iterable[Alarm]) -> None:
        for alarm in alarms:
            self._alarms[alarm.subject] = alarm

    def alarms_from(self, alarms: Iterable[Alarm]) -> None:
        """Use the supervisor's alarms in place of our own watch."""
        if self._watch is not None:
            self._watch, self._alarms = None, {}
        self.take_alarms(alarms)

    @property
    def alarms(self) -> list[Alarm]:
        """Open alarms, the most severe first."""
        return sorted(
            open_alarms(list(self._alarms.values())), key=lambda item: -item.severity.weight
        )

    @property
    def shown_alarms(self) -> list[Alarm]:
        """Those, and what no row raised."""
        notes = [one for one in self._alarms.values() if one.code == PREDICT_FAILS]
        return [*self.alarms, *notes]

    def notes(self) -> list[str]:
        """Notes on the rows for a person; those of detectors, too."""
        why = self.resume_check.newest
        said = [] if why is None else [f"the resume was not exact: {why}"]
        noted = [one for one in self._alarms.values() if one.severity is Severity.NOTE]
        noted = [one for one in noted if not one.recovered and one.code != PREDICT_FAILS]
        return said + [f"{one.code}: {one.message}" for one in noted[-_MOST_NOTES:]]

    @property
    def word(self) -> str:
        """What the place counts."""
        return self.counts if self.unit == "step" else self.unit

    @property
    def last(self) -> float | None:
        """What the place is shown "of": of epochs that count from 0 the last is one less."""
        if self.unit == "step" or self._from_one:
            return self.total
        return last_epoch(self.place, self.total)

    @property
    def done(self) -> float | None:
        """The share of the work that is done, 0 to 1."""
        if self.place is None or not self.total:
            return None
        passed = self.place + (self.unit == "epoch" and not self._from_one)
        return min(1.0, max(0.0, passed / self.total))

    @property
    def seconds_each(self) -> float | None:
        """Median time of one epoch or step: a pause or a moved clock changes it little."""
        return median(self._paces) if self._paces else None

    @property
    def eta_s(self) -> float | None:
        each, done = self.seconds_each, self.done
        return (
            None
            if each is None or done is None or not self.total
            else each * self.total * (1 - done)
        )

    def direction(self, metric: str) -> Direction | None:
        """The plan's direction, else the one that the metric's name implies."""
        if metric in self._directions:
            return self._directions[metric]
        return {MetricRole.LOSS: Direction.MINIMIZE, MetricRole.SCORE: Direction.MAXIMIZE}.get(
            role_of(metric)
        )

    def is_goal(self, metric: str) -> bool:
        """Whether it is the plan's metric, in any spelling."""
        return metric in self._directions

    def best(self, metric: str) -> Best | None:
        trace, direction = self.traces[metric], self.direction(metric)
        if direction is None:
            return None
        return trace.smallest if direction is Direction.MINIMIZE else trace.largest

    def shown(self) -> list[str]:
        """The metrics to draw: the plan's first, then losses, scores, gradients, others."""
        ranks = {MetricRole.LOSS: 1, MetricRole.SCORE: 2, MetricRole.GRADIENT: 3}
        names = [
            name for name in self.traces if role_of(name) not in _NOT_DRAWN or self.is_goal(name)
        ]
        return sorted(
            names, key=lambda name: 0 if self.is_goal(name) else ranks.get(role_of(name), 4)
        )

    def _epoch(
        self,
        metrics: Mapping[str, float],
        epoch: float | None,
        step: float | None,
        rate: float | None,
    ) -> None:
        counted = step if self.unit == "step" else epoch
        if counted is not None:
            self.place = counted
        self.step = step if self.unit == "epoch" else None
        self.rate = self.rate if rate is None else rate
        place = epoch if epoch is not None else step
        for key, value in metrics.items():
            self._value(key, value, place)

    def _axis(self, epoch: float | None, step: float | None, *, ours: bool) -> None:
        """Choose the counter that places the rows: the finer one, unless epochs are planned.

        A row of the epoch among rows of steps does not change it.
        """
        before_epoch, before_step = self._newest
        if epoch is not None and before_epoch is None:
            self._from_one = epoch == 1
        self._steps += step is not None and step != before_step
        self._epochs += epoch is not None and epoch != before_epoch
        self._without_step = self._without_step + 1 if step is None else 0
        self._newest = (
            before_epoch if epoch is None else epoch,
            before_step if step is None else step,
        )
        # A fraction of an epoch is where the step is, less exactly.
        share = step is not None and epoch is not None and epoch != int(epoch)
        if share and not ours:
            chosen = "step"
        elif ours or (self.total and self.unit == "epoch"):
            chosen = "step" if epoch is None else "epoch"
        elif self._without_step > _ROWS_OF_AN_AXIS:
            chosen = "epoch"
        elif self.total or self._steps > 2 * self._epochs:
            chosen = "step" if self._steps else "epoch"
        else:
            chosen = "epoch" if self._epochs else "step"
        self.unit = chosen

    def _value(self, key: str, value: float, place: float | None) -> None:
        name = one_line(key, _NAME_LENGTH)
        role = role_of(name)
        if role is MetricRole.THROUGHPUT:
            self.throughput = name, value
        elif role is MetricRole.MEMORY:
            self.memory = name, value
        trace = self.traces.get(name)
        if trace is None:
            if len(self.traces) >= MOST_METRICS:
                return
            trace = self.traces[name] = Trace()
        trace.add(value, place)

    def _event(self, event: str, plain: Mapping[str, Any]) -> None:
        if event in ("start", "attempt", "total", "status", "summary"):
            self._totals(plain)
        if event == "axis":
            # Steps count within epochs: so far they looked like the run's.
            self._steps, self.total, self.unit = 0, None, "epoch"
            epochs = plain.get("total_epochs")
            self._totals({"total_epochs": epochs})
        if event == "attempt":
            self.resumes += 1
            self._pace_from = None
            at = plain.get("resumed_at")
            if isinstance(at, int | float):
                for trace in self.traces.values():
                    trace.drop_from(at)
        elif event == "checkpoint":
            self.checkpoints += 1
            epoch = plain.get("epoch")
            self.checkpoint_place = epoch if isinstance(epoch, int) else self.place
        elif event == "summary":
            self.summary.update(plain.get("metrics") or {})
            self.said = "completed"
        elif event in ("end", "status"):
            said = plain.get("status")
            self.said = _ENDINGS.get(said) if isinstance(said, str) else None
        if event in ("attempt", "start"):
            self.said = None

    def _totals(self, plain: Mapping[str, Any]) -> None:
        for unit in ("epoch", "step"):
            total = plain.get(f"total_{unit}s")
            if isinstance(total, int) and not isinstance(total, bool) and total > 0:
                self.total, self.unit = total, unit
        step = plain.get("step")
        if plain.get("event") in ("status", "summary") and isinstance(step, int | float):
            self.place, self.unit = step, "step"

    def _time(self, seconds: float) -> None:
        if not math.isfinite(seconds):
            return
        self.first_time = seconds if self.first_time is None else self.first_time
        self.last_time = seconds
        if self.place is None:
            return
        if (
            self._pace_from is not None
            and self.place > self._pace_from[0]
            and seconds > self._pace_from[1]
        ):
            self._paces.append((seconds - self._pace_from[1]) / (self.place - self._pace_from[0]))
        # Several rows at one place count once: their time belongs to the step that they end.
        if self._pace_from is None or self.place != self._pace_from[0]:
            self._pace_from = self.place, seconds


def shown_metrics(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The first six numbers under printable names: the watched code wrote both."""
    numbers = {
        one_line(str(name), _NAME_LENGTH): float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return dict(list(numbers.items())[:_METRICS_IN_A_ROW])
