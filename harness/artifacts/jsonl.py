"""JSON lines as files really hold them: torn, glued together, in another encoding."""

import codecs
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from harness.domain.words import some

COUNTERS = ("step", "global_step", "iteration", "epoch")
"""Keys that place a row; the first one present counts."""
# Both limits bound the time that a damaged line can cost: without them a line of a million "{"
# would be decoded a million times, each time to its end.
_MOST_ATTEMPTS = 1_000
"""Restarts within one torn line."""
_MOST_READ = 1 << 16
"""Characters that may be read in vain; for a long line eight times its length."""
_MOST_LEVELS = 200
_ROOM = 20
"""Levels that a value may stand deeper where it is written."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_DIGITS = 18
"""Digits of an integer that stays one: a longer one may be beyond 64 bits, or beyond any float."""


@dataclass
class Line:
    """What one line held; `problem` says in words what was lost or guessed."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None
    lost: bool = False


class LineFeed:
    """Cut a growing byte stream into lines at b"\\n"; drop a UTF-8 BOM, decode UTF-16 with one.

    A line of more than `longest` bytes is an empty one, so that memory does not follow it.
    """

    def __init__(self, longest: int | None = None) -> None:
        self.rest = b""
        """The bytes after the last line end, as UTF-8."""
        self.left_out = 0
        """How many lines were too long."""
        self._longest, self._skips = longest, False
        self._head = b""
        self._started = False
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends."""
        if not self._started:
            self._head += data
            if len(self._head) < 3:  # a BOM may still be incomplete
                self.rest = self._head
                return []
            data, self._head, self._started, self.rest = self._head, b"", True, b""
            if data[:2] in _UTF16:
                self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
            data = data.removeprefix(codecs.BOM_UTF8)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode("utf-8", "surrogatepass")
        *lines, self.rest = (self.rest + data).split(b"\n")
        if lines and self._skips:
            lines[0], self._skips = b"", False
        if self._longest is not None and len(self.rest) > self._longest:
            self.left_out += 1
            self._skips = True
        if self._skips:
            self.rest = b""
        return lines


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


_lenient = json.JSONDecoder(strict=False, parse_int=_whole)
"""Accepts NaN, 1e999 and raw control characters, which strict readers refuse."""


def _storable(value: Any) -> Any:
    """`value` with "\ufffd" in place of each lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_storable(element) for element in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    return value


def parse_document(text: str) -> Any:
    """One strict JSON document, changed like the rows of `parse_line`. Raises ValueError and
    RecursionError."""
    return _storable(json.loads(text, parse_int=_whole))


def has_place(row: dict[str, Any]) -> bool:
    """Whether an object has an event or a counter; the inner objects of a row have neither."""
    return "event" in row or any(name in row for name in COUNTERS)


def loads(data: bytes) -> Any:
    """JSON that can be written again: orjson reads 1,024 levels and writes 254.

    Raises orjson.JSONDecodeError, also for what nests deeper.
    """
    value = orjson.loads(data)
    if data.count(b"{") + data.count(b"[") > _MOST_LEVELS and _nests_too_deep(value):
        raise orjson.JSONDecodeError("nested too deeply", "", 0)
    return value


def _nests_too_deep(value: Any) -> bool:
    for _ in range(_ROOM):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False


def parse_line(line: bytes, is_row: Callable[[dict[str, Any]], bool] = has_place) -> Line:
    """Every object on `line`; after a torn one only those for which `is_row` holds.

    An integer beyond 64 bits becomes a float, a lone surrogate U+FFFD: neither can be stored.
    """
    line = line.strip(b" \t\r\n\0")
    if not line:
        return Line()
    try:
        row = loads(line)
    except orjson.JSONDecodeError:
        return _parse_leniently(line, is_row)
    return (
        Line([row])
        if isinstance(row, dict)
        else Line(problem="is JSON but not an object", lost=True)
    )


def _parse_leniently(line: bytes, is_row: Callable[[dict[str, Any]], bool]) -> Line:
    parsed = Line()
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = line.decode("latin-1")
        parsed.problem = "is not UTF-8; it was read as Latin-1"
    position, in_vain = 0, max(_MOST_READ, 8 * len(text))
    for _ in range(_MOST_ATTEMPTS):
        position = _skip_to_object(text, position, parsed)
        if position < 0:
            break
        try:
            row, end = _lenient.raw_decode(text, position)
            row = _storable(row)
            if _nests_too_deep(row):
                raise RecursionError
        except (ValueError, RecursionError) as error:
            parsed.lost = True
            in_vain -= _failed_at(error, text) - position
            if in_vain < 0:
                break
            position += 1
            continue
        position = end
        # After a tear the next "{" may open an inner object of the lost row, e.g. its `metrics`.
        if not parsed.lost or is_row(row):
            parsed.rows.append(row)
    else:
        parsed.lost = True
    if parsed.lost:
        parsed.problem = f"is damaged; {some(len(parsed.rows), 'row')} on it could be read"
    return parsed


def _failed_at(error: Exception, text: str) -> int:
    """How far the decoder read, at most."""
    # For a string without an end the error names where it begins, though all of it was read.
    known = isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated")
    return error.pos if known and isinstance(error, json.JSONDecodeError) else len(text)


def _skip_to_object(text: str, position: int, parsed: Line) -> int:
    """The position of the next "{", or -1; anything but white space before it counts as lost."""
    start = text.find("{", position)
    if text[position : start if start >= 0 else len(text)].strip():
        parsed.lost = True
    return start
