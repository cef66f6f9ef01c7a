"""What `harness train` tells while a run goes on: one line each, and the same for programs."""

from collections.abc import Mapping
from typing import Any

from harness.artifacts.metrics_file import place
from harness.detectors.alarm import Alarm
from harness.domain.training_status import last_epoch

_MOST_METRICS = 4


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
