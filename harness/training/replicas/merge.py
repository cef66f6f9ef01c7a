"""The rows of all replicas as rows of one run.

Of a value that several replicas log the row has the mean, and each replica's own beside it, as
`replica-1/loss`: a detector then names the replica. DiLoCo's own rows hold the mean over tokens
already, the same in all of them.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_OWN = "own/"
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ReplicaRows:
    """Follows the file that one replica's run logger writes: each complete line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def take(self) -> list[Row]:
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        rows = []
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # torn by a kill; the next attempt began a new line
            if isinstance(row, dict):
                rows.append(row)
        return rows


class Merge:
    """Holds the rows of an epoch until all who are alive have logged it, or one is further."""

    def __init__(self) -> None:
        self._held: dict[int, dict[int, Row]] = {}
        self._newest: dict[int, int] = {}
        self._given = -1

    def put(self, replica: int, row: Row) -> None:
        epoch = row["epoch"]
        self._held.setdefault(epoch, {}).setdefault(replica, {}).update(_flat(row))
        self._newest[replica] = max(epoch, self._newest.get(replica, -1))

    def ready(self, alive: Iterable[int], *, all_of_them: bool = False) -> list[Row]:
        """Merged rows, `{epoch, step, learning_rate, metrics}`, each epoch once; what comes later
        of it becomes a row of its own, which readers merge."""
        wanted = set(alive)
        furthest = max(self._newest.values(), default=-1)
        found = []
        for epoch in sorted(self._held):
            rows = self._held[epoch]
            complete = wanted <= set(rows) or epoch < furthest
            if not (complete or all_of_them):
                break
            late = epoch <= self._given
            found.append(merged(epoch, rows, late=late))
            self._given = max(self._given, epoch)
            del self._held[epoch]
        return found


def merged(epoch: int, rows: Mapping[int, Row], *, late: bool = False) -> Row:
    metrics: Row = {}
    for key in dict.fromkeys(key for row in rows.values() for key in row):
        given = {at: row[key] for at, row in sorted(rows.items()) if key in row}
        if key.startswith(_OWN):
            metrics |= {f"replica-{at}/{key[len(_OWN) :]}": value for at, value in given.items()}
        elif key in ("step", "learning_rate") or late:
            continue
        else:
            metrics[key] = _mean(list(given.values()))
            if len(set(given.values())) > 1 and f"{_OWN}{key}" not in _keys(rows):
                metrics |= {f"replica-{at}/{key}": value for at, value in given.items()}
    first = next(iter(rows.values()))
    steps = {name: first.get(name) for name in ("step", "learning_rate")}
    return {"epoch": epoch, "metrics": metrics, **steps}


def _keys(rows: Mapping[int, Row]) -> set[str]:
    return {key for row in rows.values() for key in row}


def _mean(values: list[float]) -> float:
    # A mean of equal values could differ from them in the last bit.
    same = all(value == values[0] for value in values)
    return values[0] if same else sum(values) / len(values)


def _flat(row: Row) -> Row:
    """All numbers of a row, those under `metrics` beside the others."""
    inner = row.get("metrics")
    said = {**row, **(inner if isinstance(inner, dict) else {})}
    held = {}
    for key, value in said.items():
        value = _NON_FINITE.get(value, value) if isinstance(value, str) else value
        if isinstance(value, int | float) and type(value) is not bool and key != "epoch":
            held[key] = value
    held.pop("attempt", None)
    return held
