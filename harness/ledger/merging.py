"""Two clones that both gave out an id become one ledger: who merges renames its own.

The others' ids stand in their commits already. What is renamed is told by a fact and by a decision;
every chain stays as it was hashed.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness.artifacts.moved import Renaming
from harness.domain.ids import experiment_id
from harness.domain.statuses import DecisionKind
from harness.errors import RefusedError
from harness.ledger.chain import StoredFact
from harness.ledger.exchange import anchor_facts, insert_facts, require_no_clash
from harness.ledger.facts import (
    KINDS,
    DecisionRecorded,
    ExperimentOpened,
    IdsRenamed,
    PriorRecorded,
    VerdictRecorded,
)
from harness.ledger.facts.base import next_number, tail_number
from harness.ledger.ledger import Ledger
from harness.ledger.renames import Renamed, names_of
from harness.ledger.replay import facts_in_order, rebuild_state
from harness.ledger.store import Connection

_SPELLED: dict[str, Callable[[int], str]] = {
    ExperimentOpened.KIND: experiment_id,
    VerdictRecorded.KIND: lambda number: f"v-{number:06d}",
    DecisionRecorded.KIND: lambda number: f"d-{number:04d}",
    PriorRecorded.KIND: lambda number: f"p-{number:04d}",
}
"""What numbers an id, by the kind of fact that makes it."""


class Merged(NamedTuple):
    imported: int
    names: dict[str, str]
    """Old id -> new id, of this clone's own."""


def merge_facts(ledger: Ledger, folder: Path, *, by: str, taken: Callable[[str], bool]) -> Merged:
    """Take in all facts that the ledger lacks, and rename its own ids that others have too.

    `taken`: whether an id has a folder already. Raises LedgerDamagedError, and RefusedError
    (id_clash) for what has no number to change, such as a plan's version, and for an id that the
    facts of a third writer name.
    """
    with ledger.transaction() as writer:
        connection = writer.connection
        fresh, last = insert_facts(connection, ledger, folder)
        names = _names(connection, ledger.writer, taken) if fresh else {}
        if names:
            writer.append(IdsRenamed(names=names, by=by))
        if fresh:
            require_no_clash(facts_in_order(connection))
            rebuild_state(connection)
        if names:
            writer.append(
                DecisionRecorded(
                    decision=f"d-{next_number(writer, 'decisions'):04d}",
                    kind=DecisionKind.RENAME,
                    experiment=None,
                    by=by,
                    context=f"two clones worked at the same time; {fresh} facts came from {folder}",
                    choice=", ".join(f"{old} is now {new}" for old, new in names.items()),
                    alternatives="keep one clone's facts and repeat the other's experiments",
                    reason="both had given out these ids",
                    confidence="high",
                    verdict=None,
                )
            )
    anchor_facts(ledger, last)
    return Merged(fresh, names)


def renamings(ledger: Ledger) -> list[Renaming]:
    """Every merge that renamed ids of this ledger's writer, oldest first."""
    with ledger.connection() as connection:
        names = names_of(connection, ledger.writer)
        opened = [
            (fact.seq, str(fact.body()["experiment"]))
            for fact in (facts_in_order(connection) if names else ())
            if fact.writer == ledger.writer and fact.kind == ExperimentOpened.KIND
        ]
    found: list[Renaming] = []
    today: dict[str, str] = {}
    for seq, of in reversed(names):
        today |= {old: today.get(new, new) for old, new in of.items()}
        own = [name for at, name in opened if at < seq]
        found.append(Renaming(seq, {old: today[old] for old in of}, own))
    return found[::-1]


def _names(connection: Connection, own: str, taken: Callable[[str], bool]) -> dict[str, str]:
    makers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for fact in facts_in_order(connection):
        if fact.kind in _SPELLED:
            (field,) = KINDS[fact.kind].MAKES
            makers[fact.kind, str(fact.body()[field])].add(fact.writer)
    names: dict[str, str] = {}
    for kind, spell in _SPELLED.items():
        ids = {name: who for (of, name), who in makers.items() if of == kind}
        number = max(map(tail_number, ids), default=0)
        for name in sorted(ids, key=tail_number):
            if own in ids[name] and len(ids[name]) > 1:
                number += 1
                while taken(spell(number)):
                    number += 1
                names[name] = spell(number)
    if names:
        _require_only_makers(connection, names, makers)
    return names


def _require_only_makers(
    connection: Connection, names: dict[str, str], makers: dict[tuple[str, str], set[str]]
) -> None:
    """Raises RefusedError (id_clash) where a writer who made no such thing names one of the ids:
    nobody knows whose it meant."""
    of = {name: who for (_, name), who in makers.items() if name in names}
    others: dict[str, dict[str, str]] = {}
    """Writer -> those that it did not make."""
    for fact in facts_in_order(connection):
        if fact.writer not in others:
            others[fact.writer] = {
                name: new for name, new in names.items() if fact.writer not in of[name]
            }
        strange = _named(fact, others[fact.writer])
        if strange is not None:
            raise RefusedError(
                f"Fact {fact.seq} of writer {fact.writer} names {strange}, which two other writers"
                " made. Nothing was merged.",
                hint="Merge the two clones that made it before a third one's facts come in.",
                code="id_clash",
            )


def _named(fact: StoredFact, names: dict[str, str]) -> str | None:
    if not names:
        return None
    before = fact.body()
    if Renamed(names)(before) == before:
        return None
    return next(old for old in names if Renamed({old: names[old]})(before) != before)
