"""What a trainer or an evaluator answered, read with suspicion: what is wrong with the file is a
problem, and what is read can be recorded and shown."""

import json
import math
from pathlib import Path
from typing import Any

from harness.artifacts.content import open_regular
from harness.errors import HarnessError, NotFoundError
from harness.posttrain.problems import Problem, problem

_DEEPEST = 20
_LARGEST_WHOLE = 2**63


def read_object(
    path: Path, name: str, *, largest: int
) -> tuple[dict[str, Any] | None, Problem | None]:
    """The one JSON object in a regular file of at most `largest` bytes; (None, None) when it is
    missing or blank.

    Refused are a link, text that UTF-8 cannot hold, whole numbers beyond 64 bits, and nesting
    deeper than 20: neither the ledger nor a computation could take them.
    """
    try:
        with open_regular(path, follow=False) as stream:
            data = stream.read(largest + 1)
    except NotFoundError:
        return None, None
    except (HarnessError, OSError) as error:
        return None, problem(name, "a regular file", "something else", f"it is not read: {error}")
    if len(data) > largest:
        return None, problem(
            name, f"at most {largest} bytes", "more", "too much; progress belongs on stderr"
        )
    if not data.strip():
        return None, None
    try:
        value = json.loads(data, parse_int=_whole)
        require_plain(value)
    except (ValueError, RecursionError) as error:
        return None, problem(
            name,
            "one JSON object and nothing else",
            data[:80].decode("utf-8", "replace"),
            str(error),
        )
    if not isinstance(value, dict):
        return None, problem(name, "one JSON object", type(value).__name__, "it is no object")
    return value, None


def is_finite(value: Any) -> bool:
    """Whether it is a number, and a double can hold it."""
    try:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    except OverflowError:
        return False


def _whole(text: str) -> int:
    if len(text) > 20 or not -_LARGEST_WHOLE <= (value := int(text)) < _LARGEST_WHOLE:
        raise ValueError(f"the whole number {text[:20]}... has more than 64 bits")
    return value


def require_plain(value: Any) -> None:
    """Raises ValueError for text with half a surrogate pair, and for nesting that is too deep."""
    level = [value]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                item.encode("utf-8")
            elif isinstance(item, dict):
                inner += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                inner += item
        if not inner:
            return
        level = inner
    raise ValueError(f"it is nested more than {_DEEPEST} deep")
