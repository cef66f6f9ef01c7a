"""Rows that agents may not read, looked for in everything that they can: files of the project,
ignored and untracked ones too, and of the folders that it makes readable; their names; git's
objects, of no commit as well, its messages and names; and what is encoded or packed in any of them.

Small blocks of equal width are looked at together, so that ten thousand files cost little, and rows
that were spread over many files are found like those of one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.artifacts.git import paths_of
from harness.domain.findings import Finding
from harness.errors import RefusedError
from harness.plans.row_blocks import LEAST, Block, blocks
from harness.plans.row_encoded import decoded
from harness.plans.row_match import Hit, Matcher, Secret
from harness.plans.row_places import sources
from harness.plans.row_sources import (
    DAMAGED,
    HEAD_ONLY,
    LEFT_OUT,
    NOT_READ,
    TIME_OVER,
    TOO_LARGE,
    Limits,
    Looking,
    Missed,
    Source,
)

__all__ = ["Found", "Limits", "Secret", "search"]

SHOWN = 5
_SMALL = 2_048
_POOL = 40_000
"""Rows that are looked at together."""
_MOST_NUMBERS = 8_000_000
_ORDER = (TIME_OVER, TOO_LARGE, HEAD_ONLY, NOT_READ, DAMAGED, LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class Place:
    """What one file or object holds of a secret table."""

    secret: str
    name: str
    path: str
    """In the project; empty for a git object."""
    blob: str
    hit: Hit
    of: int
    """Rows of the secret table that were looked for."""


@dataclass(kw_only=True)
class Found:
    """What a search found and what it missed."""

    places: list[Place] = field(default_factory=list)
    missed: Missed = field(default_factory=Missed)
    files: int = 0
    blobs: int = 0
    bytes: int = 0
    seconds: float = 0.0
    committed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Blob -> (path, commit)."""

    def refusals(self) -> list[RefusedError]:
        """One for each secret table with rows elsewhere."""
        made = []
        for name in dict.fromkeys(place.secret for place in self.places):
            certain = [one for one in self.places if one.secret == name and one.hit.certain]
            if certain:
                made.append(self._refusal(name, certain))
        return made

    def _refusal(self, name: str, places: list[Place]) -> RefusedError:
        places = sorted(places, key=lambda one: -len(one.hit.rows))
        more = len(places) - SHOWN
        listed = "; ".join(self._shown(one) for one in places[:SHOWN])
        listed += f"; and {more} more" if more > 0 else ""
        in_git = any(place.blob or place.name.startswith("git: ") for place in places)
        out = (
            " Take them out of git's files, messages and names (git filter-repo, git branch -m, git"
            " tag -d), then `git gc --prune=now`."
            if in_git
            else ""
        )
        return RefusedError(
            f"Rows of {name} stand where agents can read them: {listed}.",
            hint=(
                "Remove them from there (of a folder that `readable` names: or the folder from"
                " config.toml), or draw rows that lie nowhere else (`harness data split`), then"
                f" approve again.{out}"
            ),
            code="held_out_elsewhere",
        )

    def _shown(self, place: Place) -> str:
        what = f"{len(place.hit.rows)} of {place.of} ({place.hit.form})"
        if not place.blob:
            return f"{place.name}: {what}"
        path, commit = self.committed.get(place.blob, ("", ""))
        where = f"{path} of commit {commit}" if commit else "of no commit"
        return f"{place.name}, {where}: {what}"

    def notes(self) -> list[Finding]:
        """Short matches, and what was not looked at."""
        made = [
            Finding(
                "held_out_perhaps_elsewhere",
                f"{self._shown(place)}: more of {place.secret} than an accident explains well, too"
                " little to say that they were copied.",
                "Look at it before you approve.",
                {"place": place.name, "rows": len(place.hit.rows), "of": place.of},
            )
            for place in self.places
            if place.hit.noted and not place.hit.certain
        ]
        if any(self.missed.names.values()):
            made.append(self._missed())
        return made

    def _missed(self) -> Finding:
        parts, counts = [], {}
        for why in _ORDER:
            names = self.missed.names.get(why, [])
            if names:
                shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
                parts.append(f"{len(names)} ({why}): {shown}")
                counts[why] = len(names)
        return Finding(
            "rows_not_looked_for",
            f"Secret rows were looked for in {self.files} files and {self.blobs} git objects, not"
            f" in: {'; '.join(parts)}.",
            "Make sure yourself that they hold no rows of held-out.",
            {"files": self.files, "blobs": self.blobs, "missed": counts},
        )


def search(
    root: Path,
    secrets: Sequence[Secret],
    limits: Limits | None = None,
    *,
    skip: frozenset[Path] = frozenset(),
    own: frozenset[str] = frozenset(),
    readable: Sequence[Path] = (),
    now: Callable[[], float] = time.monotonic,
) -> Found:
    """Look for the rows of `secrets` below `root` and in what else is `readable`. `skip` are their
    own files and the folders that agents cannot read, `own` the paths of the plan's tables that
    they may read. Raises GitFailedError."""
    looking, start = Looking(limits or Limits(), now), now()
    searched = _Search(matchers=[Matcher(secret=secret) for secret in secrets], own=own)
    for source in sources(root, looking, skip, readable):
        searched.take(source, blocks(source, looking))
        for part in decoded(source, looking):
            searched.take(part, blocks(part, looking))
    searched.flush()
    found = Found(
        places=searched.places,
        missed=looking.missed,
        files=looking.files,
        blobs=looking.blobs,
        bytes=looking.bytes,
        seconds=now() - start,
    )
    certain = [place.blob for place in found.places if place.blob and place.hit.certain]
    found.committed = paths_of(root, list(dict.fromkeys(certain))[: 2 * SHOWN]) if certain else {}
    return found


@dataclass(kw_only=True)
class _Search:
    matchers: list[Matcher]
    own: frozenset[str]
    places: list[Place] = field(default_factory=list)
    _pools: dict[int, list[tuple[Source, Block]]] = field(default_factory=dict)
    _pooled: dict[int, int] = field(default_factory=dict)

    def take(self, source: Source, made: list[Block]) -> None:
        for matcher in self.matchers:
            rows = matcher.texts.found(source.data)
            if rows:
                self._add(matcher, source, matcher.judged("texts", rows, 0, 1.0))
        for block in made:
            if block.numbers.size > _MOST_NUMBERS:
                for part in _parts(block):
                    self._look(source, part)
            elif len(block.numbers) < _SMALL and source.path not in self.own:
                self._pool(source, block)
            else:
                self._look(source, block)

    def _look(self, source: Source, block: Block) -> None:
        for matcher in self.matchers:
            for hit in matcher.look(block, own=source.path in self.own):
                self._add(matcher, source, hit)

    def _pool(self, source: Source, block: Block) -> None:
        for matcher in self.matchers:
            for hit in matcher.in_order(block):
                self._add(matcher, source, hit)
        if block.numbers.shape[1]:
            rows, width = block.numbers.shape
            self._pools.setdefault(width, []).append((source, block))
            self._pooled[width] = self._pooled.get(width, 0) + rows
            if self._pooled[width] >= _POOL or rows * width > _MOST_NUMBERS:
                self._flush(width)

    def flush(self) -> None:
        for width in list(self._pools):
            self._flush(width)

    def _flush(self, width: int) -> None:
        members = self._pools.pop(width)
        self._pooled.pop(width)
        names = members[0][1].names
        if any(block.names != names for _, block in members):
            names = ()
        whole = Block(numbers=np.concatenate([one.numbers for _, one in members]), names=names)
        if whole.numbers.size < LEAST:
            return
        for matcher in self.matchers:
            for hit in matcher.in_rows(whole):
                self._name(matcher, hit, members)

    def _name(self, matcher: Matcher, hit: Hit, members: list[tuple[Source, Block]]) -> None:
        """Say which of the sources that were looked at together hold the rows."""
        if not (hit.certain or hit.noted):
            return
        shares: dict[str, tuple[Source, set[int]]] = {}
        for source, block in members:
            rows = {row for one in matcher.in_rows(block) for row in one.rows} & hit.rows
            if rows:
                shares.setdefault(source.name, (source, set()))[1].update(rows)
        ranked = sorted(shares.values(), key=lambda one: -len(one[1]))
        if not ranked:
            return
        first, rows = ranked[0]
        others = f", with {len(ranked) - 1} files more" if len(ranked) > 1 else ""
        alone = len(rows) == len(hit.rows)
        name = first.name if alone else f"{first.name}{others}"
        kept = Source(name=name, data=b"", blob=first.blob, path=first.path)
        self._add(matcher, kept, hit)
        if alone:
            # Whole copies in other files are named too.
            for source, more in ranked[1:]:
                if 2 * len(more) >= len(hit.rows):
                    self._add(matcher, source, hit)

    def _add(self, matcher: Matcher, source: Source, hit: Hit) -> None:
        if not (hit.certain or hit.noted):
            return
        made = Place(
            secret=matcher.secret.name,
            name=source.name,
            path=source.path,
            blob=source.blob,
            hit=hit,
            of=matcher.n if hit.form.startswith("the label") else matcher.rows,
        )
        for place in self.places:
            if (place.secret, place.name) == (made.secret, made.name):
                better = (hit.certain, len(hit.rows)) > (place.hit.certain, len(place.hit.rows))
                if better:
                    self.places[self.places.index(place)] = made
                return
        self.places.append(made)


def _parts(block: Block) -> Iterator[Block]:
    """A large block row by row, some at a time; its columns of words stay with the first."""
    step = max(1, _MOST_NUMBERS // block.numbers.shape[1])
    for start in range(0, len(block.numbers), step):
        yield Block(numbers=block.numbers[start : start + step], names=block.names)
