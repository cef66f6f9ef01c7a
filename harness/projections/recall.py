"""What the project remembers, found again by words: experiments, decisions, diagnoses, priors and
hand-offs, ranked by SQLite's FTS5 (bm25) for an experiment and a role.

The index is made anew for each question, in memory: it cannot be out of date.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.artifacts.content import decode, open_regular
from harness.artifacts.locate import Layout, hand_off_name
from harness.domain.plain_text import inline, one_line, plain
from harness.domain.records import Experiment
from harness.errors import HarnessError
from harness.ledger import Ledger

MOST = 20
_WORD = re.compile(r"\w+")
_MOST_WORDS = 40
_LONGEST = 20_000
"""Characters of one text that are searched; bytes of a file."""
_COMMON = frozenset(
    ["a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "in", "is", "it"]
)
_COMMON |= {"its", "no", "not", "of", "on", "or", "so", "than", "that", "the", "their", "then"}
_COMMON |= {"there", "this", "to", "was", "were", "will", "with"}
"""Words that say nothing of what a text is about."""
_SHOWN = 160
_KIN = 1.6
"""How much more a text counts that is about the experiment asked for, or about its ancestors."""


class Kind(StrEnum):
    EXPERIMENT = "experiment"
    DECISION = "decision"
    DIAGNOSIS = "diagnosis"
    PRIOR = "prior"
    HAND_OFF = "hand-off"


WEIGHTS: Mapping[str, Mapping[Kind, float]] = {
    "model-builder": {Kind.PRIOR: 2.0, Kind.EXPERIMENT: 1.5, Kind.DIAGNOSIS: 1.2},
    "training-checker": {Kind.DIAGNOSIS: 2.0, Kind.PRIOR: 1.5},
    "research-scout": {Kind.DIAGNOSIS: 2.0, Kind.PRIOR: 1.5},
    "oracle": {Kind.DECISION: 1.5},
}
"""By role, what its work needs first; 1.0 otherwise."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    kind: Kind
    id: str
    """E.g. "exp-0001", "d-0002", "p-0001", or the page of a hand-off."""
    experiment: str | None
    at: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Recalled:
    memory: Memory
    score: float
    """Larger is nearer; comparable within one answer only."""
    excerpt: str
    """The part of the text that has the words, on one line."""


def memories(ledger: Ledger, layout: Layout) -> Iterator[Memory]:
    """Everything there is to recall. Diagnoses are files of this working tree."""
    for one in ledger.experiments():
        text = f"{one.hypothesis}\n{one.status}"
        yield Memory(
            kind=Kind.EXPERIMENT, id=one.id, experiment=one.id, at=one.opened_at, text=text
        )
        path = layout.experiment(one.id, "diagnosis")
        if path.is_file():
            yield Memory(
                kind=Kind.DIAGNOSIS,
                id=layout.relative(path),
                experiment=one.id,
                at=one.opened_at,
                text=_text(layout, path),
            )
    for decision in ledger.decisions():
        parts = (decision.kind, decision.context, decision.choice, decision.reason)
        yield Memory(
            kind=Kind.DECISION,
            id=decision.id,
            experiment=decision.experiment,
            at=decision.at,
            text="\n".join(parts),
        )
    for prior in ledger.priors(standing=True):
        text = f"{prior.lesson}\nRule: {prior.rule}\n{prior.evidence}"
        yield Memory(kind=Kind.PRIOR, id=prior.id, experiment=None, at=prior.at, text=text)
    for hand_off in ledger.hand_offs():
        yield Memory(
            kind=Kind.HAND_OFF,
            id=hand_off_name(hand_off.at, hand_off.hash),
            experiment=hand_off.experiment,
            at=hand_off.at,
            text=hand_off.text,
        )


def _text(layout: Layout, path: Path) -> str:
    """ "" for a link, a pipe or other bytes than text: there is nothing to recall."""
    try:
        with open_regular(path, follow=False, below=layout.root) as stream:
            data = stream.read(_LONGEST)
    except HarnessError:
        return ""
    # The last character may be cut: of UTF-8 it has at most three bytes here.
    for missing in range(4 if len(data) == _LONGEST else 1):
        with contextlib.suppress(HarnessError):
            return decode(data[: len(data) - missing], where=str(path))
    return ""


def recall(
    known: Iterable[Memory],
    query: str,
    *,
    role: str | None = None,
    kin: Sequence[str] = (),
    limit: int = MOST,
) -> list[Recalled]:
    """The memories that share words with `query`, the nearest first; of equal ones the newer.

    Words are compared by their stem, without case and accents; one is enough, and rare ones count
    more. `role` weighs kinds, `kin` are experiments whose texts count more.
    """
    said = dict.fromkeys(_WORD.findall(query.lower()))
    words = [word for word in said if word not in _COMMON][:_MOST_WORDS]
    if not words:
        return []
    indexed = list(known)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61')"
        )
        connection.executemany(
            "INSERT INTO texts(rowid, text) VALUES (?, ?)",
            ((place, plain(one.text)[:_LONGEST]) for place, one in enumerate(indexed)),
        )
        rows = connection.execute(
            "SELECT rowid, bm25(texts), snippet(texts, 0, '', '', ' … ', 24) FROM texts"
            " WHERE texts MATCH ?",
            (" OR ".join(f'"{word}"' for word in words),),
        ).fetchall()
    finally:
        connection.close()
    weights = WEIGHTS.get(role or "", {})
    found = []
    for place, distance, excerpt in rows:
        one = indexed[place]
        score = -distance * weights.get(one.kind, 1.0)
        if one.experiment in kin:
            score *= _KIN
        near = Recalled(memory=one, score=score, excerpt=one_line(excerpt, _SHOWN * 2))
        found.append((score, one.at, place, near))
    return [near for *_, near in sorted(found, reverse=True)[:limit]]


def kin_of(ledger: Ledger, experiment: str | None) -> list[str]:
    """The experiment and those that it builds on."""
    known: dict[str, Experiment] = {one.id: one for one in ledger.experiments()}
    line: list[str] = []
    while experiment in known and experiment not in line:
        line.append(experiment)
        experiment = known[experiment].parent or ""
    return line


def section(found: Iterable[Recalled], room: int) -> str:
    """A part of a briefing, "" where nothing fits in `room` characters: a line for each memory."""
    text = "## From memory\n\n"
    lines = 0
    for one in found:
        memory = one.memory
        about = f" ({memory.experiment})" if memory.experiment not in (None, memory.id) else ""
        line = f"- {memory.kind} {inline(memory.id)}{about}: {inline(one.excerpt, _SHOWN)}\n"
        if len(text) + len(line) > room:
            break
        text += line
        lines += 1
    return text.rstrip() if lines else ""
