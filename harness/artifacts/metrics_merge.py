"""What rows add up to: resumes drop what they replaced, rows of one step become one row."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.jsonl import COUNTERS

TEXTS = frozenset(
    {"t", "event", "run", "token", "status", "path", "error", "note", "config", "seed", "attempt"}
)
Row = dict[str, Any]


def place(row: Row) -> float | None:
    """The number that places a row: its epoch when the run logger wrote it, else its step."""
    names = ("epoch",) if row.get("event") == "epoch" else COUNTERS
    for name in names:
        value = row.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63:
            return value
    return None


def values(row: Row) -> Iterator[tuple[str, Any]]:
    """The measured values: those under `metrics` and every further key that is neither a counter
    nor a text."""
    for key, value in row.items():
        if key == "metrics" and isinstance(value, dict):
            yield from value.items()
        elif key not in TEXTS and key not in COUNTERS:
            yield key, value


@dataclass
class _Merger:
    """One slot a place; for each key the stack of (place, slot) that still holds, in rising
    order."""

    slots: list[Row | None] = field(default_factory=list)
    at: dict[float, int] = field(default_factory=dict)
    stacks: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def resume(self, position: float, keys: Iterable[str]) -> None:
        dropped = False
        for key in list(keys):
            stack = self.stacks.get(key, [])
            while stack and stack[-1][0] >= position:
                held_at, slot = stack.pop()
                self._forget(key, held_at, slot)
                dropped = True
        if dropped:
            self.notes.append(f"resumed at {position}")

    def _forget(self, key: str, held_at: float, slot: int) -> None:
        row = self.slots[slot]
        if row is None:
            return
        inner = _inner(row)
        (inner if key in inner else row).pop(key, None)
        if not any(value is not None for _, value in values(row)):
            self.slots[slot] = None
            self.at.pop(held_at, None)

    def went_back(self, position: float, keys: list[str]) -> list[str]:
        """The keys of all streams in which each key of the row stood beyond `position` before."""
        streams: dict[str, list[str]] = {}
        for key in keys:
            streams.setdefault(_stream(key), []).append(key)
        back = {
            name
            for name, members in streams.items()
            if all(self.stacks.get(key) and self.stacks[key][-1][0] > position for key in members)
        }
        return [key for key in self.stacks if _stream(key) in back] if back else []

    def put(self, position: float, row: Row) -> None:
        slot = self.at.get(position)
        if slot is None:
            slot = self.at[position] = len(self.slots)
            copy = dict(row)
            if isinstance(row.get("metrics"), dict):
                copy["metrics"] = dict(row["metrics"])
            self.slots.append(copy)
        else:
            held = self.slots[slot]
            assert held is not None
            metrics = _inner(held) | _inner(row)
            held.update({key: value for key, value in row.items() if value is not None})
            if metrics:
                held["metrics"] = metrics
        for key, _ in values(row):
            stack = self.stacks.setdefault(key, [])
            if not stack or stack[-1][0] < position:
                stack.append((position, slot))


def _inner(row: Row) -> Row:
    inner = row.get("metrics")
    return inner if isinstance(inner, dict) else {}


def _stream(key: str) -> str:
    return key.rpartition("/")[0]


def merge(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """The effective rows in order, and one note a resume. Rows without a place stay where they
    are."""
    merger, resumed = _Merger(), False
    for row in rows:
        event = row.get("event")
        position = place(row)
        if event == "attempt":
            resumed = True
            if isinstance(row.get("resumed_at"), int):
                merger.resume(row["resumed_at"], merger.stacks)
        if (event is not None and event != "epoch") or position is None:
            merger.slots.append(row)
            continue
        keys = [key for key, value in values(row) if value is not None]
        if resumed:
            merger.resume(position, merger.stacks)
            resumed = False
        elif back := merger.went_back(position, keys):
            merger.resume(position, back)
        merger.put(position, row)
    return [row for row in merger.slots if row is not None], merger.notes
