"""Does predict use its checkpoint? It answers rows again with other weights; its answers differ.

First with another seed's checkpoint, on the few rows that are repeated anyway; where the answers
stay, with copies whose weights no working model can ignore, on more rows. A call that fails or
gives invalid answers on other weights has used them. Not found: a predict that reads its weights
only to tell them from others.

Seeds that are evaluated together ask nothing twice: what one's weights answered, and repeated, in
processes of its own is what the other's probe compares with.

Another seed's weights may be the same but for noise. Both are read as data, as `perturbed` does:
npy, npz, safetensors, torch zip, text; nothing of them runs.
"""

import contextlib
import json
import re
import threading
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from harness.artifacts.content import hash_path, open_regular
from harness.artifacts.npz import Array, BadFileError, hostile, read_npy, read_npz
from harness.domain.findings import Finding
from harness.errors import HarnessError
from harness.evaluation import problems
from harness.evaluation.checkpoint_copy import copy_checkpoint
from harness.evaluation.perturbed import Change, perturbed
from harness.evaluation.predictions import differing
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.files import walk_files

MOST_ROWS = 1000
"""Of a split that are answered again with perturbed weights."""

Answer = Callable[[Path, str, Sequence[int]], Columns | None]
"""(checkpoint, its hash, rows) -> valid answers in the order of the rows, or None."""
NEAR = 1e-6
"""Of the largest number of an array: what seeds change in training is thousands of times that."""
_MOST_BYTES = 1 << 30
_MOST_TEXT = 16 << 20
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_STORAGE = re.compile(r"[^/]+/data/\d+\Z")
_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


ByRow = Mapping[str, Mapping[int, Any]]
"""Column -> row -> what was answered."""
Key = tuple[str, str]
"""The hashes of a checkpoint and of the code that answered with it."""


def more_rows(part: Sequence[int], order: Sequence[int]) -> list[int]:
    """`part`, and of all rows in `order` as many as are asked at most."""
    among = set(part)
    return sorted([*part, *(row for row in order if row not in among)][:MOST_ROWS])


class SeedAnswers:
    """What the seeds of one evaluation answered, for each other's probe; used by its threads."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._asked: dict[Key, int] = {}
        """How many are at it."""
        self._told: dict[Key, ByRow] = {}

    @contextlib.contextmanager
    def asking(self, key: Key) -> Iterator[Callable[[Columns, Collection[int]], None]]:
        """Meanwhile others wait for what is told, of some rows, by the call that this gives."""

        def tell(columns: Columns, rows: Collection[int]) -> None:
            self._told[key] = {
                name: {row: values[row] for row in rows} for name, values in columns.items()
            }

        with self._change:
            self._asked[key] = self._asked.get(key, 0) + 1
        try:
            yield tell
        finally:
            with self._change:
                self._asked[key] -= 1
                self._change.notify_all()

    def of(self, key: Key) -> ByRow | None:
        """None of what nobody asks for, and of what gave no answers."""
        with self._change:
            self._change.wait_for(lambda: key in self._told or not self._asked.get(key))
            return self._told.get(key)


@dataclass(frozen=True, kw_only=True)
class OtherCheckpoint:
    """Another seed's, of the same experiment, with other bytes."""

    seed: int
    path: Path
    sha256: str


@dataclass(frozen=True, kw_only=True)
class WeightsProbe:
    checkpoint: Path
    """The verified copy that was predicted with."""
    other: OtherCheckpoint | None
    root: Path
    """The project: another checkpoint is taken from within it only."""
    work: Path
    """Fresh folders are made and removed below it."""
    part: Sequence[int]
    """A few rows."""
    wide: Sequence[int]
    """More of them."""
    first: Columns
    """The answers of all rows."""
    names: Sequence[str]
    """Of all rows."""
    answer: Answer
    known: Callable[[str], ByRow | None] = lambda _digest: None
    """What a checkpoint answered already: `part` and `wide` at least."""
    seed: int = 0
    others: tuple[OtherCheckpoint, ...] = ()
    """Those of all other seeds."""
    deterministic: bool = False
    """Whether the plan says that training draws nothing at random."""

    def findings(self) -> tuple[Finding, ...]:
        """Empty when some other weights give other answers; `weights_unused` when none do; the note
        `weights_not_probed` when too little could be changed to say so. And what `seeds_alike`
        says of seeds that gave the same model but for noise."""
        alike = {one.seed for one in self.others if self._near(one)}
        return (*self._of_weights(alike), *self._of_seeds(alike))

    def _near(self, other: OtherCheckpoint) -> bool:
        inside = other.path.resolve().is_relative_to(self.root.resolve())
        return inside and bool(near(self.checkpoint, other.path))

    def _of_seeds(self, alike: set[int]) -> tuple[Finding, ...]:
        seeds = sorted({self.seed, *alike})
        return (problems.seeds_alike(seeds, self.deterministic),) if alike else ()

    def _of_weights(self, alike: set[int]) -> tuple[Finding, ...]:
        """Adds to `alike` a seed whose weights answer with the same numbers."""
        tried: list[str] = []
        if self.other is not None and (used := self._by_seed(self.other, self.part)) is not None:
            if used:
                return ()
            # Classes may be the same by luck: of numbers so many are not.
            if _measured(self.first) and self._by_seed(self.other, self.wide) is False:
                alike.add(self.other.seed)
            tried.append(f"those of seed {self.other.seed}")
        opaque: set[str] = set()
        changed = False
        for change in Change:
            with self._folder() as folder:
                copy = perturbed(self.checkpoint, Path(folder).resolve() / "copy", change)
                opaque.update(copy.opaque)
                if not copy.changed:
                    continue
                digest = hash_path(copy.path)
                # Named as the true one is: a name tells nothing.
                path = copy.path.rename(copy.path.with_name(digest + self.checkpoint.suffix))
                if self._differs(path, digest, self.wide):
                    return ()
            changed = True
            tried.append(f"its own {change}")
        if changed and not opaque:
            return (problems.weights_unused(tried),)
        if self.other is not None and self._by_seed(self.other, self.wide):
            return ()  # on few rows two good models answer alike
        return (problems.weights_not_probed(tried, sorted(opaque)),)

    def _by_seed(self, other: OtherCheckpoint, rows: Sequence[int]) -> bool | None:
        """Whether its weights give other answers; None when they are not there any more."""
        if (known := self.known(other.sha256)) is not None:
            after = {name: [values[row] for row in rows] for name, values in known.items()}
            return self._apart(after, rows)
        with self._folder() as folder:
            try:
                copy = copy_checkpoint(
                    other.path, Path(folder).resolve(), root=self.root, expected=other.sha256
                )
            except Unscorable:
                return None
            return self._differs(copy, other.sha256, rows)

    def _folder(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory(dir=self.work, prefix="weights-", ignore_cleanup_errors=True)

    def _differs(self, checkpoint: Path, digest: str, rows: Sequence[int]) -> bool:
        return self._apart(self.answer(checkpoint, digest, rows), rows)

    def _apart(self, after: Columns | None, rows: Sequence[int]) -> bool:
        if after is None or set(after) != set(self.first):
            return True
        before = {name: [values[row] for row in rows] for name, values in self.first.items()}
        return bool(differing(before, after, [self.names[row] for row in rows]))


def _measured(answers: Columns) -> bool:
    return any(
        isinstance(value, float) and value != round(value, 3)
        for values in answers.values()
        for value in values
    )


def near(
    one: Path,
    other: Path,
) -> bool | None:
    """None when there is nothing in them that can be compared: files of another form."""
    if one.is_symlink() or other.is_symlink() or one.is_dir() != other.is_dir():
        return None
    names = [Path(path).relative_to(one) for path in walk_files(one)] if one.is_dir() else [Path()]
    pairs = [(one / name, other / name) for name in names]
    for read in (_arrays, _texts):
        told = []
        for first, second in pairs:
            a = _read(read, first)
            b = _read(read, second) if a else None
            if a and b:
                told.append(_alike(a, b))
        if told:
            return all(told)
    return None


def _read(
    read: object,
    path: Path,
) -> Mapping[str, Array] | None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        with hostile("is damaged"):
            return read(path)  # type: ignore[operator, no-any-return]
    except (BadFileError, HarnessError, OSError):
        return None


def _alike(
    one: Mapping[str, Array],
    other: Mapping[str, Array],
) -> bool:
    if {name: values.shape for name, values in one.items()} != {
        name: values.shape for name, values in other.items()
    }:
        return False
    # A number by itself may be the seed, or a count of steps.
    wide = [name for name, values in one.items() if values.size > 1] or list(one)
    return all(_close(one[name], other[name]) for name in wide)


def _close(
    one: Array,
    other: Array,
) -> bool:
    if one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    a, b = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return False
    a, b = a[finite], b[finite]
    scale = float(np.abs(a).max(initial=0.0))
    return float(np.abs(a - b).max(initial=0.0)) <= NEAR * scale


def _arrays(path: Path) -> dict[str, Array]:
    with open_regular(path, follow=False) as stream:
        head, size = stream.read(8), path.stat().st_size
        stream.seek(0)
        if head.startswith(b"\x93NUMPY"):
            return _numbers({"": read_npy(stream, size=size, most_bytes=_MOST_BYTES)})
        if not head.startswith(b"PK\x03\x04"):
            return _safetensors(stream.read(), int.from_bytes(head, "little"))
        with zipfile.ZipFile(stream) as archive:
            members = [one for one in archive.infolist() if _STORAGE.match(one.filename)]
            if sum(member.file_size for member in members) > _MOST_BYTES:
                return {}
            # Without the folder, which has the file's name. Single precision, as nearly all
            # weights are: doubles differ in their low halves.
            storages = {
                one.filename.partition("/")[2]: _singles(archive.read(one)) for one in members
            }
        if storages:
            return storages
        stream.seek(0)
        return _numbers(read_npz(stream, most_bytes=_MOST_BYTES))


def _singles(data: bytes) -> Array:
    return np.frombuffer(data[: len(data) // 4 * 4], "<f4")


def _numbers(
    arrays: Mapping[str, Array],
) -> dict[str, Array]:
    return {
        name: values
        for name, values in arrays.items()
        if values.size and values.dtype.kind in "biuf"
    }


def _safetensors(
    data: bytes,
    length: int,
) -> dict[str, Array]:
    if not 2 <= length <= len(data) - 8:
        return {}
    found: dict[str, Array] = {}
    for name, tensor in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (int(place) + 8 + length for place in tensor["data_offsets"])
            found[name] = np.frombuffer(data[begin:end], _TYPES.get(tensor["dtype"], "u1"))
    return found


def _texts(path: Path) -> dict[str, Array]:
    with open_regular(path, follow=False) as stream:
        text = stream.read(_MOST_TEXT + 1).decode("utf-8")
    if len(text) > _MOST_TEXT or "\0" in text:
        return {}
    numbers = [float(found) for found in _NUMBER.findall(text)]
    # The words between them are part of the name: other words are another model.
    return {_NUMBER.sub("#", text): np.array(numbers)} if numbers else {}
