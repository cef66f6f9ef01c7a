"""The plan's tables, and the split that the harness makes when the plan has none."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts.content import hash_file
from harness.errors import NotFoundError, PlanError, RefusedError, UsageError
from harness.plans.drawing import Draw, Rows, codes_alike, draw, enough, with_copies
from harness.plans.parse import Plan
from harness.plans.schema import Data
from harness.plans.tables import Table, read_table, write_table

VALIDATION_SHARE = 0.2
_LEAST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class SplitTable:
    """One table that takes part: where, and what it holds."""

    path: str
    """Relative to the project's root."""
    table: Table
    sha256: str | None = None
    """Of the file before it was read; None for what is in no file yet, or in the vault."""


def load_split(
    root: Path, relative: str, field: str, data: Data, *, ids: bool, at: Path | None = None
) -> SplitTable:
    """Read and check a table: the plan's columns, finite numbers, and (with `ids`) distinct ids.

    `at` is where the file lies when it is no longer at `relative`. Raises one PlanError for all
    that is wrong with the table.
    """
    place = at or root / relative
    try:
        # Before: what is exchanged while it is read has another one.
        sha256 = hash_file(place) if place == root / relative else None
        table = read_table(place)
    except NotFoundError as error:
        raise PlanError(
            f"{field}: {relative} does not exist.",
            hint=f"Put the file in place, or correct {field}.",
        ) from error
    except UsageError as error:
        raise PlanError(f"{field}: {error.message}", hint=error.hint) from error
    if table.n == 0:
        raise PlanError(f"{field}: {relative} has no rows.", hint="Use a file with rows.")
    wrong = list(_wrong_columns(table, relative, data, ids=ids))
    if wrong:
        messages = " ".join(error.message for error in wrong)
        hints = " ".join(dict.fromkeys(error.hint for error in wrong))
        raise PlanError(f"{field}: {messages}", hint=hints)
    return SplitTable(path=relative, table=table, sha256=sha256)


def _wrong_columns(table: Table, relative: str, data: Data, *, ids: bool) -> Iterator[UsageError]:
    columns = data.held_out
    group = () if data.group is None else (data.group,)
    for name in dict.fromkeys(
        (*columns.inputs, columns.label, *group, *((columns.id,) if ids else ()))
    ):
        try:
            column = table.column(name, where=relative)
        except UsageError as error:
            yield error
            continue
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            yield UsageError(
                f"{relative}: column {name!r} holds {int((~np.isfinite(column)).sum())} values that"
                " are not finite.",
                hint="Replace or remove these rows.",
            )
        if name == data.group and column.ndim != 1:
            yield UsageError(
                f"{relative}: the group column {name!r} has the shape {column.shape}.",
                hint="Name a column with one value a row in data.group.",
            )
        if ids and name == columns.id and len(np.unique(column)) < table.n:
            yield UsageError(
                f"{relative}: the ids in column {name!r} repeat.", hint="Give each row its own."
            )


def described(split: SplitTable, data: Data, sha256: str) -> dict[str, Any]:
    """A split as PlanApproved.splits has it, but for where its file is."""
    columns = data.held_out
    described = {
        "sha256": sha256,
        "rows": split.table.n,
        "inputs": list(columns.inputs),
        "label": columns.label,
        "id": columns.id,
    }
    return described if data.group is None else {**described, "group": data.group}


def split_paths(plan: Plan) -> tuple[str, str]:
    """(train, validation), relative to the root: the plan's own, or those of `make_split`. A hidden
    validation is moved to the vault from there."""
    data = plan.data
    if data.validation is None:
        return data.part("train"), data.part("validation")
    return data.train, data.part("validation") if plan.hidden_validation else data.validation


def secret_paths(plan: Plan) -> dict[str, str]:
    """Split -> where its file lies before it moves to the vault, of those that do."""
    hidden = {"validation": split_paths(plan)[1]} if plan.hidden_validation else {}
    return {**hidden, "held_out": plan.data.held_out.path}


def make_split(root: Path, plan: Plan) -> None:
    """Write those of the two files of `planned_split` that do not exist."""
    whole = load_split(root, plan.data.train, "data.train", plan.data, ids=True)
    for relative, columns in planned_split(root, plan, whole).items():
        if not (root / relative).exists():
            write_table(root / relative, columns)


def planned_split(root: Path, plan: Plan, whole: SplitTable) -> dict[str, dict[str, Any]]:
    """Path -> columns of the two parts of the plan's train table `whole`. Raises PlanError for too
    few rows, RefusedError when an existing file is another split."""
    if whole.table.n < _LEAST_ROWS:
        raise PlanError(
            f"data.train: {whole.path} has {whole.table.n} rows; to split it at least {_LEAST_ROWS}"
            " are needed.",
            hint="Name a file in data.validation.",
        )
    # From the table's hash alone: the same split in every clone, and nobody can choose a kind one.
    seed = int(hash_file(root / whole.path)[:16], 16)
    parts = zip(split_paths(plan), _drawn(plan, whole.table, seed), strict=True)
    tables = {
        path: {name: column[rows] for name, column in whole.table.columns.items()}
        for path, rows in parts
    }
    for relative, columns in tables.items():
        if (root / relative).exists():
            _require_same(root / relative, columns, relative)
    return tables


def _drawn(plan: Plan, table: Table, seed: int) -> tuple[Rows, Rows]:
    """(train, validation); each keeps the order of the table, which may be one of time."""
    group = plan.data.group
    if group is not None:
        wanted = Draw(
            shares={"validation": VALIDATION_SHARE},
            seed=seed,
            stratify=False,
            label=table.columns[plan.data.held_out.label],
            group=table.columns[group],
        )
        try:
            parts = draw(wanted)
        except UsageError as error:
            raise PlanError(
                f"data.train: {error.message}", hint="Name a file in data.validation."
            ) from error
        return parts["train"], parts["validation"]
    order = np.random.Generator(np.random.PCG64(seed)).permutation(table.n)
    of = np.zeros(table.n, dtype=np.int64)
    of[order[: round(table.n * VALIDATION_SHARE)]] = 1
    alike = codes_alike(table.columns, plan.data.held_out.inputs)
    if alike is not None and enough(alike, VALIDATION_SHARE):
        of = with_copies(of, alike)
    return np.flatnonzero(of == 0), np.flatnonzero(of == 1)


def _require_same(path: Path, columns: dict[str, Any], relative: str) -> None:
    table = read_table(path)
    same = set(table.columns) == set(columns) and all(
        np.array_equal(table.columns[name], column) for name, column in columns.items()
    )
    if not same:
        raise RefusedError(
            f"{relative} exists and is not the split that the harness makes of the train table.",
            hint="Remove or rename it, or name a file in data.validation.",
            code="split_exists",
        )
