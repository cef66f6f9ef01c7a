"""Who added the facts: each says it, or the one before it in its chain does."""

from collections import deque
from typing import NamedTuple

from harness.ledger.ledger import Ledger


class Listed(NamedTuple):
    position: int
    writer: str
    seq: int
    at: str
    kind: str
    origin: str | None
    """E.g. "ada@desk person"; None: written before facts said it."""


def newest_facts(ledger: Ledger, count: int) -> list[Listed]:
    """In the order of their arrival."""
    newest: deque[Listed] = deque(maxlen=count)
    said: dict[str, str | None] = {}
    for fact in ledger.facts():
        origin = fact.origin or said.get(fact.writer)
        said[fact.writer] = origin
        newest.append(Listed(fact.position, fact.writer, fact.seq, fact.at, fact.kind, origin))
    return list(newest)
