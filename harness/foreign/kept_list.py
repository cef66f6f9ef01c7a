"""The list that a loop of another program keeps of its experiments: autoresearch's results.tsv."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.content import open_regular
from harness.domain.plain_text import one_line, plain_name
from harness.foreign.log_rows import as_number

KEEP, DISCARD, CRASH = "keep", "discard", "crash"
_SPOKEN = {
    "keep": KEEP,
    "kept": KEEP,
    "discard": DISCARD,
    "discarded": DISCARD,
    "revert": DISCARD,
    "reverted": DISCARD,
    "crash": CRASH,
    "crashed": CRASH,
}
_MOST_BYTES = 5 << 20
_LONGEST = 200
_STATUS = "status"
_WORDS = ("description", "idea", "change", "notes")
_COMMITS = ("commit", "hash", "sha")
_MEMORY = ("memory", "peak", "vram")
_COUNTED = {
    "step",
    "epoch",
    "iteration",
    "iter",
    "experiment",
    "exp",
    "run",
    "id",
    "n",
    "#",
    "seed",
}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One row, as it was written."""

    commit: str
    value: float | None
    """None where it crashed, or no finite number stands there."""
    memory: float | None
    status: str
    description: str


@dataclass(frozen=True, kw_only=True)
class KeptList:
    metric: str
    """The name of its column."""
    rows: tuple[Tried, ...]
    left_out: int
    """Lines with too few cells, or a status that is none of the three."""


def read_list(path: Path) -> KeptList | None:
    """None for a file that is no such list: a table with a column `status` that says keep, discard
    or crash, and a column of numbers that is the metric."""
    if not path.is_file():
        return None  # a folder can be one log
    with open_regular(path) as stream:
        text = stream.read(_MOST_BYTES).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    cells = _cells(lines)
    names = [name.strip().lower() for name in cells[0]]
    if _STATUS not in names:
        return None
    place = names.index(_STATUS)
    known = [row for row in cells[1:] if _status(row, place) and len(row) >= len(names)]
    metric = _metric(names, known, place)
    if metric is None:
        return None
    rows = [dict(zip(names, row, strict=False)) for row in known]
    return KeptList(
        metric=plain_name(cells[0][names.index(metric)].strip()),
        rows=tuple(_tried(row, metric) for row in rows),
        left_out=len(cells) - 1 - len(known),
    )


def _cells(lines: Sequence[str]) -> list[list[str]]:
    if "\t" in lines[0]:
        return [line.split("\t") for line in lines]  # a quote means nothing there
    return list(csv.reader(lines))


def _status(row: Sequence[str], place: int) -> str | None:
    if len(row) <= place:
        return None
    return _SPOKEN.get(row[place].strip().lower())


def _metric(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    status: int,
) -> str | None:
    """The first column in which each row that was kept has a number."""
    kept = [row for row in rows if _status(row, status) == KEEP]
    for place, name in enumerate(names):
        other = name.startswith(_MEMORY) or name in (*_COMMITS, *_WORDS)
        if not kept or other or name in _COUNTED:
            continue
        if all(_finite(row[place]) is not None for row in kept):
            return name
    return None


def _tried(row: Mapping[str, str], metric: str) -> Tried:
    status = _SPOKEN[row[_STATUS].strip().lower()]
    value = None if status == CRASH else _finite(row[metric])
    memory = next((name for name in row if name.startswith(_MEMORY)), "")
    return Tried(
        commit=_text(row, _COMMITS)[:40],
        value=value,
        memory=_finite(row.get(memory, "")),
        status=status,
        description=_text(row, _WORDS),
    )


def _text(row: Mapping[str, str], names: Sequence[str]) -> str:
    found = next((row[name] for name in names if name in row), "")
    return one_line(found, _LONGEST).strip()


def _finite(text: str) -> float | None:
    number = as_number(text.strip())
    if number is None or not math.isfinite(number):
        return None
    return float(number)
