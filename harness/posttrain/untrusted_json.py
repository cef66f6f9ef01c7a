"""JSON of programs and people. What is read can be recorded and shown: no lone surrogates, no whole
numbers beyond 64 bits, no deep nesting."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.content import open_regular
from harness.errors import (
    HarnessError,
    NotFoundError,
    UsageError,
)
from harness.files import sha256_bytes
from harness.posttrain.field_problems import (
    FieldProblem,
    field_problem,
)

_DEEPEST = 20
_LARGEST_WHOLE = 2**63


def read_object(
    path: Path, name: str, *, largest: int
) -> tuple[dict[str, Any] | None, FieldProblem | None]:
    """The one JSON object in a regular file of at most `largest` bytes, or what is wrong with it.

    (None, None) when the file is missing or blank. A link is refused.
    """
    try:
        with open_regular(path, follow=False) as stream:
            data = stream.read(largest + 1)
    except NotFoundError:
        return None, None
    except (HarnessError, OSError) as error:
        return None, field_problem(
            name, "a regular file", "something else", f"it cannot be read: {error}"
        )
    if len(data) > largest:
        return None, field_problem(
            name, f"at most {largest} bytes", "more", "too much; progress belongs on stderr"
        )
    if not data.strip():
        return None, None
    try:
        value = json.loads(data, parse_int=_whole)
        require_plain(value)
    except (ValueError, RecursionError) as error:
        start = data[:80].decode("utf-8", "replace")
        return None, field_problem(name, "one JSON object and nothing else", start, str(error))
    if not isinstance(value, dict):
        return None, field_problem(name, "one JSON object", type(value).__name__, "not an object")
    return value, None


def read_json_lines(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """(SHA-256 of the bytes, rows) of a JSON-lines file. Raises NotFoundError, or UsageError naming
    the bad line."""
    # One read for both: a file that changes in between would have the hash of other rows.
    with open_regular(path) as stream:
        data = stream.read()
    return sha256_bytes(data), parse_json_lines(data, str(path))


def read_within(path: Path, places: Sequence[Path]) -> bytes:
    """The bytes of a regular file in one of `places`, wherever links lead. Raises NotFoundError,
    UsageError."""
    # What was opened is compared with where the path leads, not the other way round: a link that
    # is exchanged in between leads to another file.
    with open_regular(path) as stream:
        real, opened = path.resolve(), os.fstat(stream.fileno())
        there = os.stat(real)
        same = (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
        if not same or not any(real.is_relative_to(place) for place in places):
            raise UsageError(
                f"{path} leads out of the project.",
                hint="Name a file of the project, or of a folder in `readable` of config.toml.",
                code="not_declared",
            )
        return stream.read()


def parse_json_lines(data: bytes, path: str) -> list[dict[str, Any]]:
    """Rows of a JSON-lines file. Raises UsageError naming the bad line of `path`."""
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            require_plain(row)
        except (ValueError, RecursionError) as error:
            raise _bad_rows(path, f"line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise _bad_rows(path, f"line {number} is not a JSON object")
        rows.append(row)
    if not rows:
        raise _bad_rows(path, "it has no rows")
    return rows


def _bad_rows(path: str, why: str) -> UsageError:
    return UsageError(
        f"{path}: {why}; expected one JSON object a line.",
        hint="Correct that file.",
        code="bad_rows",
    )


def is_finite(value: Any) -> bool:
    """Whether it is a number, and a double can hold it."""
    try:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    except OverflowError:
        return False


def require_plain(value: Any) -> None:
    """Raises ValueError for text with a lone surrogate, and for nesting deeper than 20."""
    # Level by level, not recursive: the input chooses the depth, and Python's stack is finite.
    level = [value]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, str):
                part.encode("utf-8")
            elif isinstance(part, dict):
                inner += [*part.keys(), *part.values()]
            elif isinstance(part, list):
                inner += part
        if not inner:
            return
        level = inner
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def _whole(text: str) -> int:
    # The length first: Python refuses to convert more than 4,300 digits, with another error.
    if len(text) > 20 or not -_LARGEST_WHOLE <= (value := int(text)) < _LARGEST_WHOLE:
        raise ValueError(f"the whole number {text[:20]}... has more than 64 bits")
    return value
