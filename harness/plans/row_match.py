"""How many rows of a secret table a block holds, in which form, and how many an accident explains.

An accident: rows of the same kind of data that were drawn by themselves. Two measures bound what it
finds, and the smaller one counts: the secret rows' own twins (`contamination.expected_share`), and
the share of them that the tables which agents may read hold, in the same form, carried on to as
many rows as the block has (the share that a drawing covers grows no faster than the drawing).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.domain.distributions import gamma_quantile, poisson_above
from harness.plans.contamination import Columns, expected_share, row_hashes
from harness.plans.row_blocks import Block
from harness.plans.row_keys import (
    ORDERED,
    Candidate,
    Grid,
    Keys,
    Numbers,
    candidates,
    codes,
    grids,
    ordered,
    unordered,
)
from harness.plans.row_labels import BITS, is_classes, rate, sequences
from harness.plans.row_labels import Sequence as LabelSequence
from harness.plans.row_texts import Texts

MOST_ROWS = 4_000
"""Of a secret table that are looked for, evenly spread."""
MOST_KNOWN = 200_000
MOST_SHARED = 0.05
"""Of the secret rows: as for what a split may share with training."""
CERTAIN = 1e-6
"""Chance of an accident below which rows were copied."""
DOUBTED = 0.01
LEAST = 8
LEAST_IDS = 20
_PRECISE = 5
_DISTINCT = 0.9
_MOST_SEQUENCES = 2_000


@dataclass(frozen=True, kw_only=True)
class Hit:
    form: str
    rows: frozenset[int]
    """Of the secret table, among those that are looked for."""
    tried: int
    """Rows, or numbers, of the block that no known table has."""
    expected: float
    """What an accident finds at most, by `tried`."""
    certain: bool
    noted: bool


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A table that agents may not read, and the tables of its plan that they may."""

    name: str
    columns: Columns
    inputs: Sequence[str]
    label: str
    id: str | None
    known: Sequence[Columns]


@dataclass(kw_only=True)
class Matcher:
    """Looks for one secret table; what it makes of the known ones is made when first needed."""

    secret: Secret
    _own: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one = self.secret
        self.n = len(one.columns[one.label])
        step = max(1, -(-self.n // MOST_ROWS))
        self.places = np.arange(0, self.n, step)
        self.rows = len(self.places)
        self.inputs = [name for name in one.inputs if one.columns[name].dtype.kind in "biuf"]
        self.numbers = _matrix(one.columns, self.inputs, self.places)
        self.width = self.numbers.shape[1]
        label = one.columns[one.label]
        known = [part[one.label] for part in one.known if one.label in part]
        self.labels = LabelSequence(label=label, known=known)
        self.texts = Texts.of(one.columns, one.inputs, one.known, self.places)
        self._names = [name for name in self.inputs for _ in range(one.columns[name][:1].size)]

    def known(self) -> Numbers:
        if "known" not in self._own:
            parts = [
                _matrix(part, self.inputs, _spread(len(part[self.inputs[0]])))
                for part in self.secret.known
                if all(name in part for name in self.inputs)
            ]
            same = [part for part in parts if part.shape[1] == self.width]
            self._own["known"] = np.concatenate(same) if same else np.zeros((0, self.width))
        made: Numbers = self._own["known"]
        return made

    def look(self, block: Block, *, own: bool) -> Iterator[Hit]:
        """What the block holds; `own` when it is of a table that agents may read."""
        yield from self.in_rows(block, own=own)
        yield from self.in_order(block, own=own)

    def in_rows(self, block: Block, *, own: bool = False) -> Iterator[Hit]:
        """By rows, in any order."""
        if self.width:
            yield from self._rows(block, own)
        yield from self._values(block.numbers)

    def in_order(self, block: Block, *, own: bool = False) -> Iterator[Hit]:
        """By the label, in order or beside the ids."""
        if max(block.numbers.size, len(block.numbers)) >= self.labels.shortest():
            yield from self._sequences(block)
        if not own and len(block.numbers) >= LEAST_IDS:
            yield from self._by_id(block)

    def judged(self, form: str, rows: frozenset[int], tried: int, expected: float) -> Hit:
        chance = _chance(len(rows), expected)
        large = len(rows) > MOST_SHARED * self.rows and len(rows) >= LEAST
        return Hit(
            form=form,
            rows=rows,
            tried=tried,
            expected=expected,
            certain=large and chance < CERTAIN,
            noted=len(rows) >= 3 and chance < DOUBTED,
        )

    def _rows(self, block: Block, own: bool) -> Iterator[Hit]:
        best: Hit | None = None
        for form, made in self._arrangements(block):
            kind, parts, keys = made
            wanted = self._keys(kind, parts)
            if not np.isin(wanted, keys).any():
                continue
            hit = self._row_hit(f"{form}{kind}", kind, parts, keys, own)
            if hit is not None and (best is None or len(hit.rows) > len(best.rows)):
                best = hit
        if best is not None:
            yield best

    def _arrangements(self, block: Block) -> Iterator[tuple[str, Candidate]]:
        numbers, names = block.numbers, block.names
        rows, columns = numbers.shape
        for made in candidates(numbers, self.width, names, self._names):
            yield "rows, ", made
        if rows <= self.width + 8 and columns >= LEAST:
            turned = np.ascontiguousarray(numbers.T)
            for made in candidates(turned, self.width, (), ()):
                yield "transposed, ", made
        if min(rows, columns) == 1 and self.width > 1:
            flat = numbers.reshape(-1)
            for width in range(self.width, self.width + 3):
                if len(flat) % width == 0 and len(flat) >= LEAST * width:
                    lines = flat.reshape(-1, width)
                    standing = np.ascontiguousarray(flat.reshape(width, -1).T)
                    for made in candidates(lines, self.width, (), ()):
                        yield "one row of numbers, ", made
                    for made in candidates(standing, self.width, (), ()):
                        yield "one row of numbers, column after column, ", made

    def _keys(self, kind: str, parts: tuple[Grid, ...]) -> Keys:
        made: Keys = self._cached(("keys", kind, parts), lambda: _keyed(self.numbers, kind, parts))
        return made

    def _known_keys(self, kind: str, parts: tuple[Grid, ...]) -> Keys:
        made: Keys = self._cached(
            ("known", kind, parts), lambda: np.unique(_keyed(self.known(), kind, parts))
        )
        return made

    def _cached(self, key: Any, make: Any) -> Any:
        if key not in self._own:
            self._own[key] = make()
        return self._own[key]

    def _row_hit(
        self, form: str, kind: str, parts: tuple[Grid, ...], keys: Keys, own: bool
    ) -> Hit | None:
        wanted, known = self._keys(kind, parts), self._known_keys(kind, parts)
        here, shared = np.isin(wanted, keys), np.isin(wanted, known)
        distinct = np.unique(keys)
        if own:
            # In a table of the plan the rows that it has as they are are told as its overlap.
            new, tried = here & ~self._twins(), len(distinct)
            covered = float("inf")
        else:
            new, tried = here & ~shared, int((~np.isin(distinct, known)).sum())
            most = gamma_quantile(int(shared.sum()) + 1, 0.975)
            covered = most * max(1.0, tried / len(known)) if len(known) else float("inf")
        if not new.any():
            return None
        counts = np.unique(wanted, return_counts=True)[1]
        pairs = int((counts * (counts - 1) // 2).sum())
        twins = self.rows * expected_share(pairs, self.rows, tried)
        rows = frozenset(self.places[new].tolist())
        return self.judged(form, rows, tried, min(covered, twins))

    def _twins(self) -> NDArray[np.bool_]:
        """Which rows a table of the plan has as they are."""

        def make() -> NDArray[np.bool_]:
            one, names = self.secret, list(self.secret.inputs)
            known: set[bytes] = set()
            for part in one.known:
                if all(name in part for name in names):
                    known |= set(row_hashes(part, names))
            mine = row_hashes({name: one.columns[name][self.places] for name in names}, names)
            return np.array([key in known for key in mine])

        made: NDArray[np.bool_] = self._cached("twins", make)
        return made

    def _values(self, numbers: Numbers) -> Iterator[Hit]:
        """Single numbers that only one row has: a column among others, or some of the columns."""
        if not numbers.size:
            return
        by_grid: dict[Grid, list[int]] = {}
        for place, part in enumerate(grids(numbers)):
            if part[0] < _PRECISE - 1 or part[1] < _PRECISE:
                continue  # few digits: many rows have the same
            by_grid.setdefault(part, []).append(place)
        for part, columns in by_grid.items():
            wanted, owner, known, shared = self._singles(part)
            if not len(wanted):
                continue
            made = codes(numbers[:, columns], [part] * len(columns))
            distinct = np.unique(made)
            here = np.isin(wanted, distinct)
            if int(here.sum()) < LEAST:
                continue
            rows = np.unique(owner[here])
            tried = int((~np.isin(distinct, known)).sum())
            most = gamma_quantile(shared + 1, 0.975)
            expected = most * max(1.0, tried / len(known)) if len(known) else 0.0
            several = int(here.sum()) >= 2 * len(rows)
            form = "some of the columns" if several else "one column among others"
            yield self.judged(form, frozenset(self.places[rows].tolist()), tried, expected)

    def _singles(self, part: Grid) -> tuple[Keys, NDArray[Any], Keys, int]:
        """(codes that one row alone has and no known table, their rows, known codes, rows with a
        code that a known table has)."""

        def make() -> tuple[Keys, NDArray[Any], Keys, int]:
            one = self.secret
            label = one.columns[one.label][self.places]
            mine = self.numbers
            names = list(self.inputs)
            if not is_classes(label) and label.dtype.kind in "biuf":
                mine = np.concatenate([mine, label.astype(np.float64)[:, None]], axis=1)
                names.append(one.label)
            known = [
                _matrix(table, [name], _spread(len(table[name]))).reshape(-1)
                for table in one.known
                for name in names
                if name in table and table[name].dtype.kind in "biuf"
            ]
            used = np.unique(np.concatenate(known)) if known else np.zeros(0)
            theirs = np.unique(codes(used[:, None], [part])[:, 0])
            coded = (
                codes(mine, [part] * mine.shape[1]) if mine.size else np.zeros((0, 0), np.uint64)
            )
            enough = [
                place
                for place in range(coded.shape[1])
                if len(np.unique(coded[:, place])) >= _DISTINCT * self.rows
            ]
            flat = coded[:, enough].reshape(-1)
            owner = np.repeat(np.arange(len(coded)), len(enough))
            kinds, first, counts = np.unique(flat, return_index=True, return_counts=True)
            taken = np.isin(kinds, theirs)
            shared = len(np.unique(owner[first[taken]]))
            alone = (counts == 1) & ~taken
            return kinds[alone], owner[first[alone]], theirs, shared

        made: tuple[Keys, NDArray[Any], Keys, int] = self._cached(("singles", part), make)
        return made

    def _sequences(self, block: Block) -> Iterator[Hit]:
        best: Hit | None = None
        offered = sequences(block.numbers, dict(block.words))
        for count, (what, column) in enumerate(offered):
            if count >= _MOST_SEQUENCES:
                break
            found = self.labels.found(column)
            if found is None:
                continue
            form, covered, bits = found
            rows = frozenset(range(covered))
            hit = Hit(
                form=f"the label {form}, {what}",
                rows=rows,
                tried=len(column),
                expected=0.0,
                certain=bits >= BITS and covered > MOST_SHARED * self.n,
                noted=True,
            )
            if best is None or covered > len(best.rows):
                best = hit
        if best is not None:
            yield best

    def _by_id(self, block: Block) -> Iterator[Hit]:
        """A column of the ids, and beside it one that tells the label of each."""
        one = self.secret
        label = one.columns[one.label]
        if one.id is None or one.id not in one.columns or not self.labels.classes:
            return
        columns = _as_text(block)
        if len(columns) < 2:
            return
        ids = one.columns[one.id].astype(str)
        place = {name: row for row, name in enumerate(ids.tolist())}
        answers = np.unique(label.astype(str), return_inverse=True)[1]
        # Labels that follow from the order of the ids, e.g. sorted ones, are the same in any table.
        says = rate(answers[np.argsort(one.columns[one.id], kind="stable")])
        for what, column in columns:
            found = [
                (row, place[name]) for row, name in enumerate(column.tolist()) if name in place
            ]
            rows = len({row for _, row in found})
            if rows < max(LEAST_IDS, MOST_SHARED * self.n) or rows * says < BITS:
                continue
            here, theirs = (np.array(part) for part in zip(*found, strict=True))
            for other, told in columns:
                if other != what and _tells(told[here], answers[theirs]):
                    yield Hit(
                        form=f"the label beside the ids, {other} beside {what}",
                        rows=frozenset(theirs.tolist()),
                        tried=len(column),
                        expected=0.0,
                        certain=True,
                        noted=True,
                    )
                    return


def _tells(told: NDArray[Any], answers: NDArray[Any]) -> bool:
    """Whether a column is another name of the answers: nearly all that the commonest one misses."""
    kinds, coded = np.unique(told, return_inverse=True)
    most = len(np.unique(answers))
    if len(kinds) > most:
        return False
    table = np.zeros((len(kinds), int(answers.max()) + 1))
    np.add.at(table, (coded, answers), 1)
    usual = len(answers) - int(np.bincount(answers).max())
    return usual >= 10 and len(answers) - table.max(1).sum() <= 0.02 * usual


def _as_text(block: Block) -> list[tuple[str, NDArray[Any]]]:
    rows, columns = block.numbers.shape
    if columns > 64:
        return []
    made: list[tuple[str, NDArray[Any]]] = [
        (f"column {name!r}", texts) for name, texts in block.words.items()
    ]
    for place in range(columns):
        numbers = block.numbers[:, place]
        if rows and np.array_equal(numbers, np.rint(numbers)) and np.abs(numbers).max() < 2**53:
            made.append((f"column {place + 1}", numbers.astype(np.int64).astype(str)))
    return made


def _chance(found: int, expected: float) -> float:
    """Of that many or more by accident."""
    if found == 0 or expected <= 0:
        return 0.0 if found else 1.0
    return poisson_above(found - 1, expected)


def _keyed(numbers: Numbers, kind: str, parts: tuple[Grid, ...]) -> Keys:
    made = codes(numbers, parts)
    return ordered(made) if kind == ORDERED else unordered(made)


def _spread(rows: int) -> NDArray[Any]:
    step = max(1, -(-rows // MOST_KNOWN))
    return np.arange(0, rows, step)


def _matrix(columns: Columns, names: Sequence[str], rows: NDArray[Any]) -> Numbers:
    if not names:
        return np.zeros((len(rows), 0))
    return np.concatenate(
        [columns[name][rows].reshape(len(rows), -1).astype(np.float64) for name in names], axis=1
    )
