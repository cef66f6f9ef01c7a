"""JSON lines: rows of the run logger as they are, and flat rows of other loggers."""

from collections.abc import Iterable
from typing import Any

from harness.artifacts.jsonl import has_place, parse_line
from harness.foreign.log_rows import COUNTERS, Row, as_number, flattened, make_row
from harness.foreign.parser import LineParser, LogHead, LogParser

_EVENTS = frozenset({"start", "epoch", "checkpoint", "attempt", "resume", "end"})


def recognise(head: LogHead) -> LogParser | None:
    # A dict as Python prints it is no JSON: it stands in the log of a program that prints.
    printed = bool(head.lines) and head.lines[0].strip().startswith(b"{'")
    return JsonLines() if head.first.startswith(b"{") and not printed else None


class JsonLines(LineParser):
    name = "JSON lines"

    def line(self, raw: bytes) -> Iterable[Row]:
        return self._rows(raw, torn=False)

    def last(self, raw: bytes) -> Iterable[Row]:
        return self._rows(raw, torn=True)

    def _rows(self, raw: bytes, *, torn: bool) -> Iterable[Row]:
        parsed = parse_line(raw.replace(b"\0", b""), _is_row)
        if parsed.problem and not (torn and parsed.lost):
            self.warnings.add(f"line {self.number} {parsed.problem}")
        for plain in parsed.rows:
            if _is_ours(plain):
                row: Row | None = _ours(plain)
            else:
                nested = any(type(value) is dict for value in plain.values())
                row = make_row(flattened(plain) if nested else plain.items())
            if row is not None:
                yield row


def _is_row(plain: dict[str, Any]) -> bool:
    return has_place(plain) or any(name in plain for name in COUNTERS)


def _is_ours(plain: Row) -> bool:
    event = plain.get("event")
    return isinstance(event, str) and event in _EVENTS and isinstance(plain.get("run"), str)


def _ours(plain: Row) -> Row:
    """A row of the run logger, with "NaN" and the like as numbers again."""
    metrics = plain.get("metrics")
    if isinstance(metrics, dict):
        numbers = ((str(key), as_number(value)) for key, value in metrics.items())
        plain["metrics"] = {key: number for key, number in numbers if number is not None}
    rate = as_number(plain.get("learning_rate"))
    if rate is not None:
        plain["learning_rate"] = rate
    return plain
