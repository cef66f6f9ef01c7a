"""Reads training_status.json, which agents' code writes."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.artifacts.content import MAX_TEXT_BYTES, read_bytes
from harness.domain.training_status import TrainingStatus
from harness.errors import NotFoundError, UsageError

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TEXTS, _MAYBE_TEXTS = ("run", "status", "started_at", "updated_at"), ("error",)
_WHOLE = ("rows", "non_finite", "checkpoints", "resumed", "metrics_left_out", "seed", "attempt")
_MAYBE_WHOLE = ("epoch", "total_epochs", "step", "first_non_finite_epoch")
_LARGEST = 2**63


def read_status(path: Path) -> TrainingStatus | None:
    """None without a file. Raises UsageError naming file, field and what was expected."""
    try:
        value = json.loads(read_bytes(path, limit=MAX_TEXT_BYTES))
    except NotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _damaged(path, "not a JSON object")
    # Agent code writes this file, so every field's type is checked before it is used.
    known = {entry.name for entry in fields(TrainingStatus)}
    plain = {key: entry for key, entry in value.items() if key in known}
    for name in ("run", "status"):
        plain.setdefault(name, None)
    for name in plain:
        if (expected := _expected(name, plain[name])) is not None:
            raise _damaged(path, f"{name} is {plain[name]!r:.80}, expected {expected}")
    plain["learning_rate"] = _number(plain.get("learning_rate"))
    plain["metrics"] = {key: _number(number) for key, number in plain.get("metrics", {}).items()}
    return TrainingStatus(**plain)


def _expected(name: str, value: Any) -> str | None:
    """The type that the field must have; None when it has it."""
    if value is None and name in (*_MAYBE_TEXTS, *_MAYBE_WHOLE, "learning_rate", "checkpoint"):
        return None
    if name in (*_TEXTS, *_MAYBE_TEXTS):
        return None if isinstance(value, str) else "text"
    if name in (*_WHOLE, *_MAYBE_WHOLE):
        return None if type(value) is int and abs(value) < _LARGEST else "a whole number"
    if name == "learning_rate":
        return None if _number(value) is not None else "a number"
    if not isinstance(value, dict):
        return "an object"
    if name == "metrics" and any(_number(number) is None for number in value.values()):
        return "an object of numbers"
    return None


def _number(value: Any) -> float | None:
    """`value` as a number, also from "NaN" and the like; None when a float cannot hold it."""
    if isinstance(value, str):
        return _WORDS.get(value)
    holds = isinstance(value, float) or (type(value) is int and abs(value) < _LARGEST)
    return value if holds else None


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {what}.",
        hint=(
            "Look at the run's metrics.jsonl instead; the next start of the run sets the file"
            " aside."
        ),
        code="status_damaged",
    )
