"""training_status.json: where a run is now, small enough to read at every glance."""

import contextlib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.files import atomic_write, pretty_json, set_aside

MOST_METRICS = 200
_OWN = frozenset({"run", "seed", "attempt", "status", "updated_at", "error"})  # what a new attempt sets itself


@dataclass(kw_only=True)
class StatusFile:
    """The current state, and when it was written last. Its size does not grow with the number of epochs."""

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

    def note_metrics(self, metrics: dict[str, Any]) -> None:
        """Show `metrics` as the latest; of more than 200 the first 200 are kept and the rest counted."""
        self.metrics_left_out = max(0, len(metrics) - MOST_METRICS)
        self.metrics = metrics if not self.metrics_left_out else dict(list(metrics.items())[:MOST_METRICS])

    def write(self, path: Path) -> None:
        atomic_write(path, pretty_json(asdict(self)), durable=False)

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
