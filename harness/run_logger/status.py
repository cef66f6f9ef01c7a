"""training_status.json: where a run is now, small enough to read at every glance."""

import contextlib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.files import atomic_write, pretty_json, set_aside

MOST_METRICS = 200
_OWN = frozenset(
    {"run", "seed", "attempt", "status", "updated_at", "error", "_latest"}
)  # what a new attempt sets itself


@dataclass(kw_only=True)
class StatusFile:
    """The current state, and when it was written last. Of more than 200 metrics the first 200 are
    shown and the rest counted; nothing in it grows with the number of epochs."""

    run: str
    seed: int
    attempt: int
    status: str = "running"
    started_at: str = ""
    updated_at: str = ""
    epoch: int | None = None
    total_epochs: int | None = None
    step: int | None = None
    learning_rate: float | int | str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    metrics_left_out: int = 0
    rows: int = 0
    non_finite: int = 0
    first_non_finite_epoch: int | None = None
    checkpoints: int = 0
    checkpoint: dict[str, Any] | None = None
    resumed: int = 0
    error: str | None = None
    _latest: tuple[int, str, str, str] | None = None

    def note_epoch(self, epoch: int, step: str, rate: str, metrics: str) -> None:
        """Keep the latest epoch as the texts of its row; they are read only when the file is
        written."""
        self._latest = (epoch, step, rate, metrics)

    def note_non_finite(self, count: int, epoch: int) -> None:
        self.non_finite += count
        if self.first_non_finite_epoch is None:
            self.first_non_finite_epoch = epoch

    def write(self, path: Path) -> None:
        if self._latest is not None:
            self.epoch, step, rate, text = self._latest
            self.step = json.loads(step)
            if rate != "null":
                self.learning_rate = json.loads(rate)
            metrics = json.loads(f"{{{text}}}")
            self.metrics_left_out = max(0, len(metrics) - MOST_METRICS)
            self.metrics = dict(list(metrics.items())[:MOST_METRICS])
        shown = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "_latest"
        }
        atomic_write(path, pretty_json(shown), durable=False)

    def carry_over(self, path: Path) -> None:
        """After a restart in the same folder: keep what the earlier attempt had reached.

        A damaged file is set aside under a name of its own, never overwritten.
        """
        try:
            earlier = json.loads(path.read_bytes())
            if not isinstance(earlier, dict):
                raise ValueError("not an object")
        except FileNotFoundError:
            return
        except (ValueError, RecursionError):
            with contextlib.suppress(FileNotFoundError):
                set_aside(path, "damaged")
            return
        for item in fields(self):
            mine, theirs = getattr(self, item.name), earlier.get(item.name)
            if item.name not in _OWN and (mine is None or isinstance(theirs, type(mine))):
                setattr(self, item.name, theirs)
        self.resumed += 1
