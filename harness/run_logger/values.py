"""Turns what training code hands over into numbers that strict JSON can hold."""

import json
import math
import operator
from collections.abc import Mapping
from typing import Any

from harness.errors import UsageError
from harness.files import strict

_LARGEST_INTEGER = 2**63  # beyond it other readers of JSON lose digits
_OUR_KEYS = frozenset({"t", "event", "run", "attempt", "token", "epoch", "step", "metrics", "learning_rate"})
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def number(key: str, value: Any) -> float | int | str:
    """`value` as a JSON number, or as "NaN", "Infinity", "-Infinity".

    Takes what float() takes but for text: Python numbers, numpy and torch scalars, one-element tensors.
    Raises UsageError naming `key` for everything else.
    """
    kind = type(value)
    if kind is int and -_LARGEST_INTEGER < value < _LARGEST_INTEGER:
        plain: int = value
        return plain
    if kind is not float:
        value = _as_float(key, value)
    if math.isfinite(value):
        finite: float = value
        return finite
    text: str = strict(value)
    return text


def numbers(values: Mapping[str, Any]) -> tuple[dict[str, float | int | str], int]:
    """Every value of `values` through `number`, and how many of them are not finite."""
    plain = {str(key): number(key, value) for key, value in values.items()}
    return plain, sum(1 for value in plain.values() if value.__class__ is str)


def epoch_number(epoch: Any) -> int:
    """A whole number from 0. Raises UsageError."""
    try:
        value = operator.index(epoch)
    except TypeError:
        value = -1
    if value < 0:
        raise UsageError(f"The epoch is {epoch!r}; expected a whole number from 0.", mend="Count epochs from 0.")
    return value


def further(more: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of a row under names of their own. Raises UsageError for a name that the logger uses itself."""
    if taken := sorted(_OUR_KEYS & set(more)):
        raise UsageError(f"The name {taken[0]!r} is the logger's own.", mend="Choose another, or put it into metrics.")
    return numbers(more)[0]


def encode(row: Mapping[str, Any]) -> bytes:
    """One row of metrics.jsonl: ASCII JSON without the line's end."""
    return _encode(row).encode("ascii")


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON: what JSON does not know (a path, an enum, a dtype) becomes its text."""
    cleaned: dict[str, Any] = json.loads(json.dumps(strict(dict(config)), default=str))
    return cleaned


def _as_float(key: str, value: Any) -> float:
    if not isinstance(value, str | bytes | bytearray):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError, OverflowError):  # RuntimeError: a tensor of several elements
            pass
    raise UsageError(
        f"The metric {key!r} is {_shown(value)}; expected one number.",
        mend="Log a float, an int or a scalar tensor; leave the key out when there is no value.",
        code="metric_not_a_number",
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"
