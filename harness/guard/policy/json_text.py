"""JSON without the `json` package, whose import (it pulls `re`) costs more than a whole decision.

The same C functions that `json` uses are called with the same settings, so that values and text are
the same; where an interpreter lacks them, `json` itself is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import _json as c_json
except ImportError:  # an interpreter without the C functions
    c_json = None  # type: ignore[assignment]

_BLANK = " \t\n\r"
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Reading:
    """The settings of json.JSONDecoder, as its C scanner reads them."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__
    memo: dict[str, str] = {}  # noqa: RUF012  the scanner empties it after each text


def loads(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for anything else, RecursionError for one that is
    nested too deep."""
    if c_json is None:
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(_BLANK))
    try:
        value, end = c_json.make_scanner(_Reading)(text, start)  # type: ignore[arg-type]
    except StopIteration as stop:
        raise ValueError(f"expected a JSON value at character {stop.value}") from None
    except SystemError:  # it would raise json's own error, and finds that json was not imported
        import json

        return json.loads(text)
    if text[end:].strip(_BLANK):
        raise ValueError(f"more text stands after the JSON value, at character {end}")
    return value


def dumps(value: Any, *, sort_keys: bool = False) -> str:
    """Compact ASCII JSON text, keys sorted or as they stand. Raises TypeError, ValueError or
    RecursionError."""
    if c_json is None:
        import json

        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
    encoder = c_json.make_encoder(
        {}, _unknown, c_json.encode_basestring_ascii, None, ":", ",", sort_keys, False, True
    )
    return "".join(encoder(value, 0))


def _unknown(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not a JSON value")
