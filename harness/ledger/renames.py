"""Ids that two clones both gave out: one clone's have other names since they were merged.

A chain stays as it was hashed. The fact `ids_renamed` says which ids of its writer's facts before
it are called what from then on, and whoever reads those facts reads the new names: in references,
in paths and in words.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.ledger.chain import StoredFact
from harness.ledger.schema import Row
from harness.ledger.store import Connection

KIND = "ids_renamed"


class Renamed:
    """Gives the ids in a value their new names, wherever they stand as a word."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self._pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._pattern.sub(lambda found: self._names[found[0]], value)
        if isinstance(value, list):
            return [self(one) for one in value]
        if isinstance(value, dict):
            return {self(name): self(one) for name, one in value.items()}
        return value


class Renames:
    """All that were renamed, by writer."""

    def __init__(self, of: Mapping[str, list[tuple[int, Renamed]]]) -> None:
        self._of = of

    def today(self, fact: StoredFact) -> StoredFact:
        later = [renamed for seq, renamed in self._of.get(fact.writer, ()) if seq > fact.seq]
        if not later:
            return fact

        def all_of(value: Any) -> Any:
            for renamed in later:
                value = renamed(value)
            return value

        return replace(fact, renamed=all_of)


def read_renames(connection: Connection) -> Renames:
    """From the facts, for a replay; looks at each of them."""
    query = "SELECT writer, seq, data FROM facts WHERE kind = :kind ORDER BY writer, seq"
    rows = connection.rows(query, kind=KIND)
    return _collected({**row, "record": json.loads(row["data"])["body"]} for row in rows)


def names_of(connection: Connection, writer: str) -> list[tuple[int, dict[str, str]]]:
    """(number of the fact, old id -> new id) of each merge that renamed this writer's."""
    query = "SELECT seq, data FROM facts WHERE kind = :kind AND writer = :writer ORDER BY seq"
    rows = connection.rows(query, kind=KIND, writer=writer)
    return [(row["seq"], json.loads(row["data"])["body"]["names"]) for row in rows]


def noted_renames(connection: Connection) -> Renames:
    """From the state."""
    query = "SELECT writer, seq, record FROM notes WHERE kind = :kind ORDER BY writer, seq"
    return _collected(connection.rows(query, kind=KIND))


def _collected(rows: Iterable[Row]) -> Renames:
    found: dict[str, list[tuple[int, Renamed]]] = defaultdict(list)
    for row in rows:
        found[row["writer"]].append((row["seq"], Renamed(row["record"]["names"])))
    return Renames(found)
