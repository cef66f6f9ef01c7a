"""Reads training_status.json, the run logger's view of where a run is now. It is a hint: rows and ledger decide."""

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WHOLE = ("rows", "non_finite", "checkpoints", "resumed", "metrics_left_out", "seed", "attempt")


@dataclass(frozen=True, kw_only=True)
class TrainingStatus:
    """The file's fields; numbers that are not finite are floats again."""

    run: str
    status: str
    """running, completed or failed, as the training said; a killed process leaves "running" behind."""
    started_at: str = ""
    updated_at: str = ""
    epoch: int | None = None
    total_epochs: int | None = None
    step: int | None = None
    learning_rate: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    metrics_left_out: int = 0
    rows: int = 0
    seed: int = 0
    attempt: int = 1
    non_finite: int = 0
    first_non_finite_epoch: int | None = None
    checkpoints: int = 0
    checkpoint: dict[str, Any] | None = None
    resumed: int = 0
    error: str | None = None


def read_status(path: Path) -> TrainingStatus | None:
    """The status, or None when there is no file. Raises UsageError naming the file and what is wrong in it."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _damaged(path, "it holds no object")
    for name in ("run", "status"):
        if not isinstance(value.get(name), str):
            raise _damaged(path, f"{name} is {value.get(name)!r}, expected text")
    for name in _WHOLE:
        if name in value and not isinstance(value[name], int):
            raise _damaged(path, f"{name} is {value[name]!r}, expected a whole number")
    if not isinstance(value.get("metrics", {}), dict):
        raise _damaged(path, f"metrics is {value['metrics']!r}, expected an object")
    known = {item.name for item in fields(TrainingStatus)}
    plain = {key: _restored(item) for key, item in value.items() if key in known}
    return TrainingStatus(
        **plain | {"metrics": {key: _restored(item) for key, item in plain.get("metrics", {}).items()}}
    )


def _restored(value: Any) -> Any:
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {what}.",
        mend="Look at the run's metrics.jsonl instead; the next start of the run sets the file aside.",
        code="status_damaged",
    )
