"""The plan's tables, checked against each other, and the split that the harness makes when the plan has none."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from harness.artifacts.hashes import hash_file
from harness.artifacts.plan import HeldOut, Plan
from harness.artifacts.tables import Table, read_table, write_table
from harness.domain.findings import Finding
from harness.errors import NotFoundError, PlanError, RefusedError, UsageError

VALIDATION_SHARE = 0.2
_LEAST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Split:
    """One table that takes part: where, and what it holds."""

    path: str
    """Relative to the project's root."""
    table: Table


def load_split(root: Path, relative: str, field: str, columns: HeldOut, *, ids: bool, at: Path | None = None) -> Split:
    """Read and check a table: the plan's input and label columns, finite numbers, and (with `ids`) ids that differ.

    `at` is where the file lies when it is no longer at `relative`. Raises PlanError naming field, file and column.
    """
    path = at or root / relative
    try:
        table = read_table(path)
        for name in (*columns.inputs, columns.label, *((columns.id,) if ids else ())):
            _check_column(table, name, relative)
        if ids and len(np.unique(table.columns[columns.id])) < table.n:
            raise UsageError(f"{relative}: the ids in column {columns.id!r} repeat.", mend="Give each row its own.")
    except NotFoundError as error:
        raise PlanError(
            f"{field}: {relative} does not exist.", mend=f"Put the file in place, or correct {field}."
        ) from error
    except UsageError as error:
        raise PlanError(f"{field}: {error.message}", mend=error.mend) from error
    if table.n == 0:
        raise PlanError(f"{field}: {relative} has no rows.", mend="Use a file with rows.")
    return Split(path=relative, table=table)


def _check_column(table: Table, name: str, relative: str) -> None:
    column = table.column(name, where=relative)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise UsageError(
            f"{relative}: column {name!r} holds {int((~np.isfinite(column)).sum())} values that are not finite.",
            mend="Replace or remove these rows.",
        )


def described(split: Split, root: Path, columns: HeldOut) -> dict[str, Any]:
    """A split of the project as PlanApproved.splits has it."""
    return {
        "path": split.path,
        "sha256": hash_file(root / split.path),
        "rows": split.table.n,
        "inputs": list(columns.inputs),
        "label": columns.label,
        "id": columns.id,
    }


def split_paths(plan: Plan) -> tuple[str, str]:
    """(train, validation), relative to the root: the plan's own, or the two files that `make_split` writes."""
    data = plan.data
    if data.validation is not None:
        return data.train, data.validation
    whole = PurePosixPath(data.train)
    return tuple(str(whole.with_name(f"{whole.stem}.{part}{whole.suffix}")) for part in ("train", "validation"))  # type: ignore[return-value]


def make_split(root: Path, plan: Plan) -> None:
    """Cut the plan's train table in two files beside it, by a permutation that follows from its hash alone.

    Files that are there already and hold the same are left; Raises RefusedError when they hold something else.
    """
    whole = load_split(root, plan.data.train, "data.train", plan.data.held_out, ids=True)
    if whole.table.n < _LEAST_ROWS:
        raise PlanError(
            f"data.train: {whole.path} has {whole.table.n} rows; to split it at least {_LEAST_ROWS} are needed.",
            mend="Name a file in data.validation.",
        )
    seed = int(hash_file(root / whole.path)[:16], 16)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(whole.table.n)
    cut = round(whole.table.n * VALIDATION_SHARE)
    for relative, rows in zip(split_paths(plan), (np.sort(order[cut:]), np.sort(order[:cut])), strict=True):
        columns = {name: column[rows] for name, column in whole.table.columns.items()}
        _write_same(root / relative, columns, relative)


def _write_same(path: Path, columns: dict[str, Any], relative: str) -> None:
    if path.exists():
        table = read_table(path)
        same = set(table.columns) == set(columns) and all(
            np.array_equal(table.columns[name], column) for name, column in columns.items()
        )
        if same:
            return
        raise RefusedError(
            f"{relative} exists and is not the split that the harness makes of the train table.",
            mend="Remove or rename it, or name a file in data.validation.",
            code="split_exists",
        )
    write_table(path, columns)


def overlap_warnings(splits: dict[str, Split], columns: HeldOut) -> list[Finding]:
    """Rows whose inputs occur in two splits: they make a score look better than it is."""
    rows = {name: _row_keys(split.table, columns) for name, split in splits.items()}
    findings = []
    for first, second in (("train", "validation"), ("train", "held_out"), ("validation", "held_out")):
        shared = rows.get(first, set()) & rows.get(second, set())
        if shared:
            findings.append(
                Finding(
                    "splits_overlap",
                    f"{len(shared)} different input rows are both in {first} and in {second}.",
                    f"Remove them from {first}, or explain in the plan's text why they repeat.",
                    {"first": first, "second": second, "rows": len(shared)},
                )
            )
    return findings


def _row_keys(table: Table, columns: HeldOut) -> set[bytes]:
    arrays = [np.ascontiguousarray(table.columns[name]) for name in columns.inputs]
    return {b"\0".join(array[row].tobytes() for array in arrays) for row in range(table.n)}
