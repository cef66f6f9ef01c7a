"""`harness data split`: draws held-out and validation rows from one table before any agent sees it.

What is secret is written into the vault first, then the train table, and the original moves last:
killed anywhere, the original is in the project and the next call draws the same again, or all is
done and the next call says so.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import combinations, count
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from harness.artifacts.content import read_bytes
from harness.artifacts.locate import Layout
from harness.artifacts.vault_key import vault_key
from harness.clock import Clock
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.files import atomic_write, lock, sha256_bytes
from harness.plans.drawing import (
    Codes,
    Draw,
    Rows,
    are_classes,
    codes_alike,
    draw,
    enough,
    joined,
)
from harness.plans.held_out import move_to_vault, notes_of, put_in_vault, unmovable
from harness.plans.review import as_one_error
from harness.plans.schema import HIDDEN, Data, HeldOut, inside_project
from harness.plans.splits import load_split
from harness.plans.starting_plan import block
from harness.plans.table_parts import Ids, part_files
from harness.plans.tables import FORMATS, MAX_BYTES, Table, read_table

_ID = "id"
"""Predict gets fresh ids under this name, so no input is called so."""
_NEW_IDS = ("row", "row_id", "row_number")
_NUMBERING = re.compile(r"row|row_id|row_number|row_\d+")


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    label: str
    held_out: float
    """A share of the rows, as is `validation`."""
    validation: float
    open_validation: bool
    """Whether training may read the labels of the validation rows."""
    stratify: bool | None
    """None: when the label holds classes and nothing else is asked for."""
    group: str | None
    time: str | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class DataSplit:
    """What was split, and what the plan says about it."""

    table: str
    """Where the original was, relative to the root."""
    original: Path
    """Where it is now."""
    data: dict[str, Any]
    """The plan's `data`."""
    rows: dict[str, int]
    how: str
    options: dict[str, Any]
    again: bool = False
    """Whether an earlier call did it."""

    def block(self) -> str:
        """The plan's lines."""
        return block(self.data)


def split_table(layout: Layout, table: Path, options: SplitOptions, clock: Clock) -> DataSplit:
    """Draw the parts of `table`, keep the secret ones and the original in the vault, and write the
    rest beside it. The same call again says what was done.

    Raises UsageError for a table, a column or options that give no split, RefusedError when an
    agent could read what is to be secret, or a file is in the way.
    """
    relative = _relative(layout.root, table)
    with lock(layout.root):
        if not os.path.lexists(layout.root / relative):
            return _done_before(layout, relative, options)
        if problems := unmovable(layout.root, relative, "table"):
            raise as_one_error(relative, problems)
        return _split(layout, relative, options, clock)


def check_split(layout: Layout, table: Path, options: SplitOptions) -> None:
    """Raises what `split_table` would raise, and writes nothing."""
    relative = _relative(layout.root, table)
    if not os.path.lexists(layout.root / relative):
        _done_before(layout, relative, options)
        return
    if problems := unmovable(layout.root, relative, "table"):
        raise as_one_error(relative, problems)
    _prepared(layout.root, relative, options)


def _relative(root: Path, table: Path) -> str:
    # Only the folders are resolved: a link as the table itself is refused by its own name.
    place = Path(os.path.abspath(table))
    place = place.parent.resolve() / place.name
    if not place.is_relative_to(root):
        raise UsageError(
            f"{table} is outside the project {root}.",
            hint="Copy the table into the project; keep the original where no agent reads.",
            code="table_outside",
        )
    relative = place.relative_to(root).as_posix()
    try:
        inside_project(relative)
    except ValueError as error:
        raise UsageError(
            f"{relative} is no path of a table: expected {error}.", hint="Move or rename it."
        ) from error
    if place.suffix not in FORMATS:
        raise UsageError(
            f"{relative} is no table: expected one of {', '.join(FORMATS)}.",
            hint="Convert it first.",
        )
    return relative


def _done_before(layout: Layout, relative: str, options: SplitOptions) -> DataSplit:
    notes = [note for note in notes_of(layout.originals, relative) if "split" in note]
    if not notes:
        raise NotFoundError(
            f"There is no table at {layout.root / relative}.",
            hint=_near(layout.root, relative),
            code="file_missing",
        )
    original = layout.originals / notes[-1]["file"]
    done = DataSplit(**notes[-1]["split"], original=original, again=True)
    if done.options != asdict(options):
        raise RefusedError(
            f"{relative} was split before, with other options: {_worded(done.options)}.",
            hint=(
                f"Use that split; or remove {done.data['train']}, copy {original} to {relative} and"
                " split it again."
            ),
            code="already_split",
        )
    return done


def _near(root: Path, relative: str) -> str:
    """What leads on, where no table is."""
    if re.match(r"\w+:/", relative):
        return "Fetch it into the project first."
    folder = root / PurePosixPath(relative).parent
    names = sorted(one.name for one in folder.glob("*") if one.suffix in FORMATS)
    if not names:
        return "Check the path."
    near = get_close_matches(PurePosixPath(relative).name, names, n=1)
    there = PurePosixPath(relative).parent / (near or names)[0]
    return f"Did you mean {there}?" if near else f"Check the path; a table is {there}."


def _worded(options: Mapping[str, Any]) -> str:
    given = {name: value for name, value in options.items() if value not in (None, False)}
    return ", ".join(f"{name} {value}" for name, value in given.items())


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    data: Data
    how: str
    rows: dict[str, int]
    files: Mapping[str, bytes]
    """Part -> its content."""
    written: Mapping[str, bytes]
    """Path -> content of the parts that stay in the project."""


def _prepared(root: Path, relative: str, options: SplitOptions) -> _Prepared:
    content = read_bytes(root / relative, limit=MAX_BYTES)
    seed = int(sha256_bytes(content)[:16], 16) ^ options.seed
    table = read_table(root / relative)
    data, ids = _described(relative, table, options, seed)
    # Checked as approval would: what is wrong later is wrong in the vault, where nobody mends it.
    load_split(root, relative, "The table", data, ids=ids is None)
    parts, how = _drawn(table, data, options, seed)
    files = part_files(root / relative, content, parts, ids)
    written = {data.train: files["train"]}
    if options.open_validation:
        written[str(data.validation)] = files["validation"]
    free = {data.held_out.path: None, data.part("validation"): None}
    _require_free(root, {**free, **written})
    rows = {name: len(rows) for name, rows in parts.items()}
    return _Prepared(data=data, how=how, rows=rows, files=files, written=written)


def _split(layout: Layout, relative: str, options: SplitOptions, clock: Clock) -> DataSplit:
    root = layout.root
    made = _prepared(root, relative, options)
    data, files, hidden = made.data, made.files, made.data.part("validation")
    key = vault_key(layout.vault)
    put_in_vault(files["held_out"], data.held_out.path, layout.held_out, clock, key=key)
    if not options.open_validation:
        put_in_vault(files["validation"], hidden, layout.validation, clock, key=key)
    for path, part in made.written.items():
        atomic_write(root / path, part)
    done: dict[str, Any] = {
        "table": relative,
        "data": data.model_dump(mode="json", exclude_none=True),
        "rows": made.rows,
        "how": made.how,
        "options": asdict(options),
    }
    moved = move_to_vault(root, relative, layout.originals, clock, key=key, split=done)
    return DataSplit(**done, original=moved.path)


def _described(
    relative: str, table: Table, options: SplitOptions, seed: int
) -> tuple[Data, Ids | None]:
    """The plan's `data`, and the column of ids when the table has none of its own."""
    for name in (options.label, options.group, options.time):
        if name is not None:
            table.column(name, where=relative)
    own = table.columns.get(_ID)
    ids = None
    if own is None or own.ndim != 1 or len(np.unique(own)) < table.n or options.label == _ID:
        name = next(name for name in _free_names() if name not in table.columns)
        # Not the row's number: where a table is sorted, its order says something of the label.
        ids = name, np.random.Generator(np.random.PCG64(seed)).permutation(table.n)
    path = PurePosixPath(relative)
    places = {
        part: path.with_name(f"{path.stem}.{part}{path.suffix}").as_posix()
        for part in ("train", "validation", "held_out")
    }
    no_input = {options.label, options.group, options.time, _ID, *_numbering(table)}
    try:
        data = Data(
            train=places["train"],
            validation=places["validation"] if options.open_validation else HIDDEN,
            held_out=HeldOut(
                path=places["held_out"],
                inputs=tuple(name for name in table.columns if name not in no_input),
                label=options.label,
                id=_ID if ids is None else ids[0],
            ),
            group=options.group,
        )
    except ValidationError as error:
        raise UsageError(
            f"{relative} cannot be split: {error.errors()[0]['msg']}.",
            hint="It needs a label, at least one other column, and columns with names.",
        ) from error
    return data, ids


def _numbering(table: Table) -> list[str]:
    """What a split before this one, or somebody else, numbered the rows with: no property."""
    return [
        name
        for name, values in table.columns.items()
        if _NUMBERING.fullmatch(name)
        and values.ndim == 1
        and values.dtype.kind in "iu"
        and len(np.unique(values)) == table.n
    ]


def _free_names() -> Iterator[str]:
    yield from _NEW_IDS
    yield from (f"{_NEW_IDS[0]}_{number}" for number in count(2))


def _drawn(
    table: Table, data: Data, options: SplitOptions, seed: int
) -> tuple[dict[str, Rows], str]:
    """(part -> rows, how they were drawn)."""
    label = table.columns[options.label]
    if len(np.unique(label)) < 2:
        raise UsageError(
            f"{options.label} has one value in all rows: there is nothing to predict.",
            hint="Name another column.",
        )
    classes = are_classes(label)
    if options.stratify and (options.time is not None or not classes):
        why = "a split by time has no classes" if classes else f"{options.label} holds no classes"
        raise UsageError(f"--stratify: {why}.", hint="Leave it out.")
    stratify = options.time is None and (classes if options.stratify is None else options.stratify)
    equal = codes_alike(table.columns, data.held_out.inputs)
    group = None if options.group is None else table.columns[options.group]
    parts = draw(
        Draw(
            shares={"held_out": options.held_out, "validation": options.validation},
            seed=seed,
            stratify=stratify,
            label=label,
            alike=equal if equal is not None and _enough(equal, options) else None,
            group=group if group is None or equal is None else _whole(group, equal),
            time=None if options.time is None else table.columns[options.time],
        )
    )
    how = [_chosen(options, stratify=stratify)]
    if options.time is not None and group is not None:
        _require_whole(group, parts, options)
    if equal is not None:
        how.append(_copies(equal, parts))
    how += [f"without {name}, which numbers rows" for name in _numbering(table)]
    return parts, ", ".join(how)


def _chosen(options: SplitOptions, *, stratify: bool) -> str:
    whole = "" if options.group is None else f"whole groups of {options.group}"
    if options.time is not None:
        return f"by {options.time}, the newest rows held out" + (f", {whole}" if whole else "")
    by_class = f"stratified by {options.label}" if stratify else "at random"
    if whole:
        return whole + (f", {by_class}" if stratify else "")
    return by_class


def _enough(equal: Codes, options: SplitOptions) -> bool:
    shares = (options.held_out, options.validation, 1 - options.held_out - options.validation)
    return enough(equal, min(shares))


def _whole(groups: NDArray[Any], equal: Codes) -> NDArray[Any]:
    """Groups with equal rows as one; as they are where that would leave less than half."""
    whole = joined(groups, equal)
    return whole if 2 * len(np.unique(whole)) >= len(np.unique(groups)) else groups


def _copies(equal: Codes, parts: Mapping[str, Rows]) -> str:
    """What became of rows with equal inputs."""
    held = [set(equal[rows].tolist()) for rows in parts.values()]
    apart = {code for one, other in combinations(held, 2) for code in one & other}
    copies = len(equal) - len(np.unique(equal))
    if not apart:
        return f"rows with equal inputs in one part ({copies} are copies)"
    rows = int(np.isin(equal, sorted(apart)).sum())
    return f"{rows} rows with equal inputs in several parts ({len(np.unique(equal))} rows differ)"


def _require_whole(groups: NDArray[Any], parts: Mapping[str, Rows], options: SplitOptions) -> None:
    """Raises UsageError when the cuts in time go through groups: whole groups would bring old rows
    into held-out or new ones into train, and which rows to drop for both only a person knows."""
    names = [set(groups[rows].tolist()) for rows in parts.values()]
    cut = len({name for one, other in combinations(names, 2) for name in one & other})
    if cut:
        group, time = options.group, options.time
        raise UsageError(
            f"--group and --time: {cut} groups of {group} have rows on both sides of a cut in"
            f" {time}. Kept whole, they would bring old rows into held-out, or newer ones into"
            " train.",
            hint=f"Give --time alone where the same {group} come again when the model is used, or"
            f" --group alone where new ones come. For both, first drop the rows of each {group}"
            " on one side of the cut.",
            code="groups_cut_by_time",
        )


def _require_free(root: Path, parts: Mapping[str, bytes | None]) -> None:
    """Raises RefusedError when another file is where a part will be; None: any file."""
    for path, part in parts.items():
        place = root / path
        if os.path.lexists(place) and (part is None or not _same(place, part)):
            raise RefusedError(
                f"{path} is in the way: the split needs this place.",
                hint="Remove or rename it.",
                code="part_in_the_way",
            )


def _same(place: Path, part: bytes) -> bool:
    regular = place.is_file() and not place.is_symlink()
    return regular and place.stat().st_size == len(part) and place.read_bytes() == part
