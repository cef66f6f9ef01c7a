"""What `harness train` tells while a run goes on: one line each, and the same for programs."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.artifacts.metrics_file import Row, place
from harness.detectors.alarm import Alarm
from harness.domain.training_status import last_epoch
from harness.runs.run_tail import RunRows

_MOST_METRICS = 4
_EVENT_SECONDS = 1.0

Event = Callable[[dict[str, Any]], None]


def alarm_event(run: str, alarm: Alarm) -> dict[str, Any]:
    text = f"{run}  {alarm.severity} {alarm.code} at row {alarm.row}: {alarm.message}"
    return {"kind": "alarm", "run": run, "alarm": alarm.plain(), "text": text}


def epoch_event(run: str, row: Mapping[str, Any], total: int | None) -> dict[str, Any]:
    epoch, metrics = place(dict(row)), row.get("metrics")
    shown = metrics if isinstance(metrics, dict) else {}
    numbers = "  ".join(
        f"{key} {value:.4g}"
        for key, value in list(shown.items())[:_MOST_METRICS]
        if isinstance(value, float | int)
    )
    last = last_epoch(epoch, total)
    of = "" if last is None else f"/{last}"
    text = f"{run}  epoch {epoch}{of}  {numbers}"
    return {"kind": "epoch", "run": run, "epoch": epoch, "metrics": shown, "text": text}


class Progress:
    """The newest epoch, at most once a second, and the last one in any case."""

    def __init__(self, on_event: Event, rows: RunRows) -> None:
        self._on_event, self._rows = on_event, rows
        self._latest: Row | None = None
        self._shown_at = -_EVENT_SECONDS

    def show(self, elapsed: float) -> None:
        if elapsed - self._shown_at >= _EVENT_SECONDS and self._tell():
            self._shown_at = elapsed

    def end(self) -> None:
        self._tell()

    def note(self, new: list[Row]) -> None:
        epochs = [row for row in new if row.get("event") == "epoch"]
        self._latest = epochs[-1] if epochs else self._latest

    def _tell(self) -> bool:
        if self._latest is None:
            return False
        self._on_event(epoch_event(self._rows.run, self._latest, self._rows.total_epochs))
        self._latest = None
        return True
