"""The rows of a split: read once, verified by hash, and handed out without labels, shuffled and
renamed for each predict, so that neither an id nor a position tells which row it was."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.vault_key import VaultKey, key_of
from harness.errors import UsageError
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable
from harness.files import canonical_json, sha256_file
from harness.ledger.facts.plan import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import secret
from harness.plans.tables import read_table, write_table

ID = "id"
Column = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A data file and the hash that the approved plan knows it by."""

    path: Path
    sha256: str
    key: VaultKey | None = None
    """The vault's, where the hash is keyed: of a secret split."""


@dataclass(frozen=True, kw_only=True)
class SplitRows:
    inputs: dict[str, Column]
    """Each of shape (n, ...)."""
    labels: Column
    """Shape (n,)."""
    names: tuple[str, ...]
    """The source's ids, or row numbers from 0: how findings name rows."""
    form: str
    """Suffix of the source: .npz, .csv or .jsonl; inputs are handed out in the same form."""
    groups: NDArray[np.int64] | None = None
    """Which group a row belongs to, from 0; None where each row stands for itself."""

    @property
    def n(self) -> int:
        return len(self.names)

    def inputs_hash(self) -> str:
        """Of the inputs in source order without ids: the same for every shuffle."""
        return columns_hash(self.inputs)

    def labels_hash(self) -> str:
        return columns_hash({"label": self.labels})


def table_of(project: Project, approved: ApprovedPlan, split: str) -> TableFile:
    """The vault's copy where there is one: an agent cannot reach it."""
    entry = approved.splits[split]
    path = (
        project.layout.state / entry["vault"]
        if "vault" in entry
        else project.layout.root / entry["path"]
    )
    key = key_of(project.layout.vault, path) if secret(approved, split) else None
    return TableFile(path=path, sha256=entry["sha256"], key=key)


def read_verified(file: TableFile, which: str) -> dict[str, Column]:
    """The columns of a data file. Raises Unscorable."""
    try:
        actual = sha256_file(file.path)
        actual = actual if file.key is None else file.key.of(actual)
        if actual != file.sha256:
            raise Unscorable(problems.table_changed(which, file.path.name, file.sha256, actual))
        return dict(read_table(file.path).columns)
    except OSError as error:
        raise Unscorable(
            problems.table_unusable(which, f"{file.path.name}: {error.strerror}.")
        ) from error
    except UsageError as error:
        raise Unscorable(problems.table_unusable(which, error.message)) from error


def load_rows(
    file: TableFile,
    *,
    which: str,
    inputs: Sequence[str],
    label: str,
    id_column: str | None,
    group: str | None = None,
) -> SplitRows:
    """The split in `file`; without `inputs` every column but label, id and group is one. Raises
    Unscorable."""
    columns = read_verified(file, which)
    labels = require(columns, label, which)
    chosen = list(inputs) or [name for name in columns if name not in {label, id_column, group}]
    if label in chosen or ID in chosen:
        bad = label if label in chosen else ID
        why = f"the column {bad!r} is an input, but it is the label or the name of the fresh ids."
        raise Unscorable(problems.table_unusable(which, why))
    if labels.ndim != 1 or not len(labels):
        why = (
            f"the label {label!r} has the shape {labels.shape}; expected one value a row, at least"
            " one row."
        )
        raise Unscorable(problems.table_unusable(which, why))
    ids = columns.get(id_column) if id_column else None
    names = [str(value) for value in (ids.tolist() if ids is not None else range(len(labels)))]
    return SplitRows(
        inputs={name: canonical(require(columns, name, which)) for name in chosen},
        labels=labels,
        names=tuple(names),
        form=file.path.suffix.lower(),
        groups=group_codes(columns, group, which),
    )


def canonical(values: Column) -> Column:
    """The same values, each in one form: zero has no sign, what is no number no content, true is
    one. What else bytes could say of a row reaches no predict."""
    kind = values.dtype.kind
    if kind == "b":
        return np.not_equal(values.view(np.uint8), 0, dtype=bool)
    if kind != "f":
        return values
    if values.dtype.itemsize > np.dtype(np.float64).itemsize:
        values = values.astype(np.float64)  # has bytes that no number needs
    plain = values.copy()
    plain[values == 0], plain[np.isnan(values)] = 0, np.nan
    return plain


def group_codes(
    columns: dict[str, Column], group: str | None, which: str
) -> NDArray[np.int64] | None:
    """A number from 0 for each row, the same for rows of one group. Raises Unscorable."""
    if group is None:
        return None
    values = require(columns, group, which)
    if values.ndim != 1:
        why = f"the group {group!r} has the shape {values.shape}; expected one value a row."
        raise Unscorable(problems.table_unusable(which, why))
    names = values if values.dtype.kind in "biufSU" else values.astype(str)
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def require(columns: dict[str, Column], name: str, which: str) -> Column:
    if name not in columns:
        why = f"they have no column {name!r}, only {', '.join(sorted(columns))}."
        raise Unscorable(problems.table_unusable(which, why))
    return columns[name]


def shuffled(indices: Sequence[int], seed: str) -> list[int]:
    """`indices` in an order that only `seed` knows."""
    generator = np.random.default_rng(_words(seed))
    return [int(index) for index in generator.permutation(np.asarray(indices, dtype=np.int64))]


def subset(n: int, seed: str) -> list[int]:
    """A tenth of n rows, at least 10 where there are, chosen by `seed`."""
    size = min(n, max(10, -(-n // 10)))
    return sorted(
        int(index)
        for index in np.random.default_rng(_words(seed)).choice(n, size=size, replace=False)
    )


def fresh_ids(indices: Sequence[int], seed: str) -> list[str]:
    """A name for each row that says nothing about it."""
    # Keyed: without the seed nobody can compute the id of row n. A letter first, so that no csv
    # reader takes it for a number.
    key = hashlib.sha256(seed.encode("utf-8")).digest()
    return [
        "r" + hashlib.blake2b(str(index).encode(), key=key, digest_size=10).hexdigest()
        for index in indices
    ]


def hand_out(rows: SplitRows, target: Path, order: Sequence[int], ids: Sequence[str]) -> Path:
    """Write rows `order` under `ids`, without labels, into the folder `target`."""
    path = target / f"inputs{rows.form}"
    chosen = np.asarray(order, dtype=np.int64)
    write_table(
        path,
        {ID: np.asarray(ids), **{name: values[chosen] for name, values in rows.inputs.items()}},
    )
    path.chmod(0o444)
    return path


def columns_hash(columns: dict[str, Column]) -> str:
    """SHA-256 over name, type, shape and content of each column, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(columns):
        values = columns[name]
        if values.dtype.kind == "O":
            header, content = ["object", len(values)], canonical_json(values.tolist())
        else:
            # One byte order and layout, so that a hash does not depend on the machine or the file.
            ordered = np.ascontiguousarray(
                values.astype(values.dtype.newbyteorder("<"), copy=False)
            )
            header, content = [ordered.dtype.str, *values.shape], ordered.tobytes()
        digest.update(canonical_json([name, header, len(content)]))
        digest.update(content)
    return digest.hexdigest()


def _words(seed: str) -> list[int]:
    digest = hashlib.sha256(seed.encode("utf-8")).digest()
    return [int.from_bytes(digest[start : start + 4], "big") for start in range(0, 32, 4)]
