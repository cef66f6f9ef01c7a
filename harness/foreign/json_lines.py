"""JSON lines: rows of the run logger as they are, and rows of other loggers."""

import re
from collections.abc import Iterable
from typing import Any

import orjson

from harness.artifacts.jsonl import has_place, parse_line
from harness.domain.words import some
from harness.foreign.log_rows import Row, as_number, flattened, make_row, tagged
from harness.foreign.names import is_position, words
from harness.foreign.parser import LineParser, LogHead, LogParser
from harness.foreign.step_logs import StepLog

_EVENTS = frozenset(
    {"start", "epoch", "checkpoint", "attempt", "resume", "end"},
)
CRASHES = frozenset(
    {"crash", "crashed", "failed", "fail", "error", "pruned"},
)
"""A status of a trial without a score."""
_TRIALS = frozenset(
    {"trial", "trial_number", "trial_id", "experiment", "experiment_id", "run_id", "params"}
)
_OBJECT = re.compile(rb"\{\s*(?:\"|\}|\Z)")
_TEXTS = ("message", "msg", "log", "event", "text")
"""Where a logger of records keeps what the program said."""


def recognise(head: LogHead) -> LogParser | None:
    # "{'loss': 2}" as Python prints it, or "{| Epoch: 1", is no JSON but what a program prints.
    return JsonLines() if _OBJECT.match(head.first) else None


def are_lines(head: LogHead) -> bool:
    """Whether each line is an object, whatever the file is called: two are, or one that says where
    a training stands and no status."""
    found = [each for line in head.lines[:2] if (each := _object(line)) is not None]
    if len(found) == 1 and len(head.lines) == 1:
        named = any(is_position(name) for name in found[0])
        return named and "status" not in found[0] and "log_history" not in found[0]
    return len(found) == 2


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(
            line.replace(b"NaN", b"null").replace(b"Infinity", b"null"),
        )
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


class JsonLines(LineParser):
    """Objects with a counter are rows of a training. Where the first has none, but names a trial
    or its parameters, it is a ledger."""

    name = "JSON lines"

    def __init__(self) -> None:
        super().__init__()
        self._begun = False
        self._crashed = 0
        self._inner: StepLog | None = None
        """Reads what a logger of records wrote as text."""

    def notes(self) -> list[str]:
        notes = super().notes()
        if self._crashed:
            notes.append(f"{some(self._crashed, 'trial')} crashed: their numbers are left out")
        return notes

    def line(self, raw: bytes) -> Iterable[Row]:
        return self._rows(raw, torn=False)

    def last(self, raw: bytes) -> Iterable[Row]:
        return self._rows(raw, torn=True)

    def finish(self) -> list[Row]:
        rows = super().finish()
        return rows if self._inner is None else rows + self._inner.finish()

    def _rows(
        self,
        raw: bytes,
        *,
        torn: bool,
    ) -> Iterable[Row]:
        parsed = parse_line(raw, _is_row)
        if parsed.problem and not (torn and parsed.lost):
            self.warnings.add(f"line {self.number} {parsed.problem}")
        for plain in parsed.rows:
            if _is_ours(plain):
                yield _ours(plain)
            else:
                yield from self._foreign(plain)

    def _foreign(
        self,
        plain: dict[str, Any],
    ) -> Iterable[Row]:
        if not self._begun:
            self._begun = True
            placed = any(is_position(name) for name in plain)
            self.is_ledger = not placed and any(words(name) in _TRIALS for name in plain)
        nested = [value for value in plain.values() if type(value) is dict]
        pairs = [*flattened(plain)] if nested else [*plain.items()]
        if nested and not any(is_position(name) for name in plain):
            pairs = _lifted(plain, nested) or pairs
        pairs = tagged(pairs)
        if self.is_ledger and any(str(value).lower() in CRASHES for _, value in pairs):
            self._crashed += 1
            return
        row = make_row(pairs)
        if row is not None and (row.get("metrics") or not _text(plain)):
            yield row
        elif (text := _text(plain)) is not None:
            yield from self._printed(text, plain)

    def _printed(
        self,
        text: str,
        plain: dict[str, Any],
    ) -> Iterable[Row]:
        if self._inner is None:
            self._inner = StepLog()
        time = plain.get("time", plain.get("timestamp"))
        self._inner.number += 1
        for row in self._inner.line(text.rstrip("\n").encode("utf-8", "replace")):
            if isinstance(time, str | int | float) and "t" not in row:
                row["t"] = time
            yield row


def _lifted(
    plain: dict[str, Any],
    nested: list[dict[str, Any]],
) -> list[tuple[str, Any]] | None:
    """The entries of the one inner object that says where the row stands, beside the outer ones."""
    placed = [inner for inner in nested if any(is_position(name) for name in inner)]
    if len(placed) != 1:
        return None
    outer = {name: value for name, value in plain.items() if value is not placed[0]}
    return [*flattened(outer | placed[0])]


def _text(plain: dict[str, Any]) -> str | None:
    """What a record says, when it is the record of a logger."""
    found = (plain.get(name) for name in _TEXTS)
    return next((text for text in found if isinstance(text, str)), None)


def _is_row(plain: dict[str, Any]) -> bool:
    return has_place(plain) or any(is_position(name) for name in plain)


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
