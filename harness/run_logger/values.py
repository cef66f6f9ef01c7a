"""The values that training code logs, as text of strict JSON."""

import json
import math
import operator
from collections.abc import Iterator, Mapping
from datetime import (
    datetime,
    timedelta,
)
from typing import Any

from harness.clock import (
    Clock,
    iso,
)
from harness.errors import UsageError
from harness.files import strict

_LARGEST_INTEGER = 2**63
"""Beyond it other readers of JSON lose digits."""
_OUR_KEYS = frozenset(
    {"t", "event", "run", "attempt", "token", "epoch", "step", "metrics", "learning_rate"}
)
_BOOLS = ("bool", "torch.bool")
_MILLISECONDS = tuple(f"{count:03d}Z" for count in range(1000))
_MOST_KEYS = 10_000
UNSAID = '"exact":false,"missing":[],"note":"log.resumed was not called"'
"""Of a row of a training that goes on, and does not say what it restored."""
_keys: dict[Any, str] = {}
"""A metric's name -> its JSON text with the colon."""
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def number(key: str, value: Any) -> str:
    """The JSON text of `value`; "NaN", "Infinity" or "-Infinity" in quotes when it is not finite.

    Accepts what float() accepts except text and truth values, e.g. one-element tensors. Raises
    UsageError naming `key` for everything else.
    """
    kind = type(value)
    if kind is int and -_LARGEST_INTEGER < value < _LARGEST_INTEGER:
        return repr(value)
    if kind is not float:
        value = _as_float(key, value)
    return repr(value) if math.isfinite(value) else f'"{strict(value)}"'


def members(values: Mapping[str, Any]) -> tuple[str, int]:
    """`values` as the inside of a JSON object, and the number of non-finite ones."""
    # Not by json.dumps: this loop is most of what logging an epoch costs (bench/run_logger.py).
    parts, bad = [], 0
    for key, value in values.items():
        if type(value) is float and value - value == 0.0:  # the usual case, without a call
            text = repr(value)
        else:
            text = number(key, value)
            bad += text[0] == '"'
        parts.append((_keys.get(key) or _key(key)) + text)
    return ",".join(parts), bad


def inside(values: Mapping[str, Any]) -> str:
    """Any JSON values as the inside of an object, to be joined with `members`; ASCII."""
    return _encode(values)[1:-1]


def whole(name: str, value: Any) -> int:
    """A whole number from 0, e.g. an epoch. Raises UsageError."""
    try:
        plain = operator.index(value)
    except TypeError:
        plain = -1
    if plain < 0:
        raise UsageError(
            f"The {name} is {value!r}; expected a whole number from 0.",
            hint=f"Count {name}s from 0.",
        )
    return plain


def further(more: Mapping[str, Any]) -> str:
    """Members of a row beside its metrics. Raises UsageError for a name of the logger's own."""
    if taken := sorted(_OUR_KEYS & set(more)):
        raise UsageError(
            f"The name {taken[0]!r} is reserved for the logger.",
            hint="Choose another name, or put the value into metrics.",
        )
    return members(more)[0]


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as JSON; other values (path, enum, dtype) become text."""
    cleaned: dict[str, Any] = json.loads(json.dumps(strict(dict(config)), default=str))
    return cleaned


class Config(Mapping[str, Any]):
    """The values of config.yaml; remembers which of them were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        self.read.update(self._values)
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> list[str]:
        """The names that nobody asked for."""
        return sorted(self._values.keys() - self.read)


class Stamp:
    """The time of a row as text. The part down to the second is formatted once a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin_second(clock.now())

    def now(self) -> str:
        moment = self._clock.now()
        if not self._second <= moment < self._next:
            self._begin_second(moment)
        return self._text + _MILLISECONDS[moment.microsecond // 1000]

    def _begin_second(self, moment: datetime) -> None:
        self._second = moment.replace(microsecond=0)
        self._next = self._second + timedelta(seconds=1)
        self._text = iso(self._second)[:-4]


def _key(key: Any) -> str:
    # Bounded: a training that makes up a name each epoch must not fill the memory.
    if len(_keys) > _MOST_KEYS:
        _keys.clear()
    return _keys.setdefault(key, f"{_encode(str(key))}:")


def _as_float(key: str, value: Any) -> float:
    truth = isinstance(value, bool) or str(getattr(value, "dtype", "")) in _BOOLS
    if not truth and not isinstance(value, str | bytes | bytearray):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            pass  # RuntimeError: a tensor of several elements
    raise UsageError(
        f"The metric {key!r} is {_shown(value)}; expected one number.",
        hint="For yes or no log 1.0 or 0.0."
        if truth
        else "Log a float, an int or a scalar tensor; leave the key out when there is no value.",
        code="metric_not_a_number",
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"
