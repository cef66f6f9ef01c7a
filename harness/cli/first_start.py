"""`harness init --data`: what it asks, and the plan and programs that it begins a project with."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.cli.data import HELD_OUT, VALIDATION, told
from harness.cli.first_metric import fitting_metrics, metric_named, require_as_planned, require_fit
from harness.cli.output import environment, tell
from harness.cli.person import stdin_is_terminal
from harness.clock import SystemClock
from harness.contract.artifacts import BY_NAME, INNER_PLAN
from harness.domain.statuses import HooksMode
from harness.errors import RefusedError, UsageError
from harness.evaluation.trivial import first_tiers, rounded, trivial_score
from harness.files import atomic_write
from harness.install.install import Installation
from harness.install.repository import Program, programs, split_files, tables
from harness.install.starter import NAMES, NUMPY, Starter, library_of, missing
from harness.install.target import InstallTarget
from harness.plans.data_split import DataSplit, SplitOptions, check_split, split_table
from harness.plans.scaffold import PLAN_FORM
from harness.plans.starting_plan import FirstPlan, first_plan, proposed_metric
from harness.plans.tables import Table, read_table
from harness.runs.environment import ask_python
from harness.sandbox.select import choose
from harness.settings import load_settings, require_interpreter

_LABELS = ("label", "labels", "target", "y", "class")
_IDS = ("id", "row", "row_id", "index")
_SHOWN = 12
Ask = Callable[[str, str], str]
"""(question, default) -> what a person typed, or the default for Enter."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a person said, or was asked for."""

    table: Path | None
    """None: the repository's own split is taken."""
    label: str
    metric: str | None
    group: str | None
    time: str | None
    folder: str = "."
    """In the folder that was named, the one that becomes the project: an example's."""


@dataclass(kw_only=True)
class Start:
    """What was made."""

    plan: str
    """Its path, relative."""
    written: bool
    metric: str
    split: DataSplit | None = None
    data: dict[str, Any] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    """Written as a start."""
    notes: list[str] = field(default_factory=list)
    approved: bool = False
    """Whether an example's plan, which is the package's, counts already."""

    def document(self) -> dict[str, Any]:
        names = ("plan", "written", "metric", "data", "programs", "notes", "approved")
        return {name: getattr(self, name) for name in names}

    def lines(self) -> list[str]:
        """For people."""
        held_out = self.data["held_out"]["path"]
        own = f"your own split: train {self.data['train']}, held-out {held_out}"
        lines = [own] if self.split is None else told(self.split)
        lines.append(f"{'filled in' if self.written else 'left as it is:'} {self.plan}")
        if self.programs:
            names = " and ".join(self.programs)
            lines.append(f"wrote {names}: a start for this table, yours to change")
        if self.approved:
            lines.append(f"approved {self.plan}: it is the example's own")
        return [*lines, *self.notes]


def asker(*, as_json: bool) -> Ask | None:
    """How a person at the terminal is asked; None where nobody sits at both of its ends."""
    if as_json or not stdin_is_terminal() or not sys.stderr.isatty():
        return None

    def ask(question: str, default: str) -> str:
        tell(f"{question} [{default}]")
        typed = sys.stdin.readline()
        if not typed:
            raise UsageError("Nothing was typed.", hint="Give the options: `harness init --help`.")
        return typed.strip() or default

    return ask


def gather(
    root: Path,
    table: Path | None,
    label: str | None,
    metric: str | None,
    group: str | None,
    time: str | None,
    ask: Ask | None,
) -> Given:
    """What is missing is found in the folder, or asked. Raises UsageError with what there is."""
    split = split_files(root, None if table is None else _relative(root, table))
    where = table
    if split is not None and group is None and time is None:
        where = None
    elif table is None:
        split, where = None, root / _table(tables(root), ask)
    known = root / split.train if split is not None and where is None else where
    assert known is not None
    # Without the file it was split before: then the split says what it was.
    content = read_table(known) if known.is_file() else None
    label = label or _label(content, known, ask)
    if metric is None and content is not None and ask is not None and label in content.columns:
        fit = list(islice(fitting_metrics(content.columns[label]), _SHOWN + 1))
        shown = [*fit[:_SHOWN], *(["..."] if len(fit) > _SHOWN else [])]
        metric = ask(f"Metric ({', '.join(shown)})", fit[0])
    metric = None if metric is None else metric_named(metric)
    if content is not None and label in content.columns:
        require_fit(metric, content.columns[label], f"column {label!r} of {known}")
    return Given(table=where, label=label, metric=metric, group=group, time=time)


def _relative(root: Path, path: Path) -> str:
    place = path.absolute()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else str(path)


def _table(found: Sequence[str], ask: Ask | None) -> str:
    if ask is not None and found:
        return ask(f"Table with all rows ({_some(found)})", found[0])
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"--data TABLE is missing; in this folder are {_some(found) or 'no tables'}.",
        hint="Name the one that holds all rows: csv, npz, jsonl or parquet.",
        code="table_missing",
    )


def _label(content: Table | None, table: Path, ask: Ask | None) -> str:
    columns = [] if content is None else list(content.columns)
    usual = [name for name in columns if name.lower() in _LABELS]
    if ask is not None and columns:
        return ask(f"Column to predict ({_some(columns)})", (usual or columns[-1:])[0])
    raise UsageError(
        f"--label COLUMN is missing; {table} has {_some(columns) or 'no columns that are known'}.",
        hint="Name the column to predict.",
        code="label_missing",
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def begin(done: Installation, given: Given, ask: Ask | None) -> Start:
    """Split the table, or take the repository's own split; write the plan where the form is, or
    would be, and the programs where there are none."""
    layout = done.place.layout
    # Asked before the table moves: an interpreter that fails leaves it where it was.
    library = _library(layout) if _has_none(layout.root) else None
    start = _with_data(layout, given, _place(done))
    if not start.written:
        return start
    label = start.data["held_out"]["label"]
    table = read_table(layout.root / start.data["train"])
    metric = given.metric or proposed_metric(table.column(label, where=given.label))
    start.metric = metric
    trivial = trivial_score(metric, table.columns[label])
    entry, predict = "python train.py", "python predict.py"
    if library is None:
        entry, predict = _programs(layout.root, start, ask)
    else:
        start.programs = _write_starters(layout.root, start, table, *library)
    text = first_plan(
        FirstPlan(
            folder=layout.root.name,
            table=start.split.table if start.split is not None else start.data["train"],
            data=start.data,
            metric=metric,
            tiers=first_tiers(metric, trivial),
            trivial=None if trivial is None else rounded(metric, trivial),
            entry=entry,
            predict=predict,
        )
    )
    atomic_write(layout.root / start.plan, text)
    return start


def _place(done: Installation) -> tuple[str, bool]:
    """Where the plan is, or will be, and whether it is still to be written."""
    layout, name = done.place.layout, BY_NAME["plan"].path
    there = [path for path in (name, INNER_PLAN) if (layout.root / path).is_file()]
    path = there[0] if there else (name if done.place.mode is HooksMode.PROJECT else INNER_PLAN)
    return path, not there or (layout.root / path).read_bytes() == PLAN_FORM.encode()


def _with_data(layout: Layout, given: Given, place: tuple[str, bool]) -> Start:
    plan, written = place
    start = Start(plan=plan, written=written, metric=given.metric or "")
    if given.table is None:
        start.data = _own_split(layout.root, given.label)
        return start
    start.split = split_table(layout, given.table, _options(given), SystemClock())
    start.data = start.split.data
    return start


def _options(given: Given) -> SplitOptions:
    return SplitOptions(
        label=given.label,
        held_out=HELD_OUT,
        validation=VALIDATION,
        open_validation=False,
        stratify=None,
        group=given.group,
        time=given.time,
        seed=0,
    )


def require_data(place: InstallTarget, given: Given) -> None:
    """Raises what the split will refuse, while nothing is made yet."""
    if given.table is None:
        _own_split(place.layout.root, given.label)
    else:
        check_split(place.layout, given.table, _options(given))


def _own_split(root: Path, label: str) -> dict[str, Any]:
    """The plan's `data` of the repository's own tables. Raises UsageError for tables that do not
    fit together."""
    split = split_files(root)
    assert split is not None  # it was there when the label was asked for
    parts = [split.train, *filter(None, [split.validation]), split.held_out]
    read = {name: read_table(root / name) for name in parts}
    for name, table in read.items():
        table.column(label, where=name)
    shared = [
        name
        for name in read[split.train].columns
        if all(name in table.columns for table in read.values())
    ]
    # Rows of a part need a name; those of train only where the harness splits it.
    named = [read[name] for name in parts if name != split.train or split.validation is None]
    ids = [name for name in shared if name != label and all(_is_id(one, name) for one in named)]
    ids.sort(key=lambda name: (name.lower() not in _IDS, not name.lower().endswith("id")))
    if not ids:
        raise UsageError(
            f"{split.held_out} has no column whose value is another one in each row, by which its"
            " rows can be told apart.",
            hint="Add one to each of the tables, e.g. `row`; or name one table with --data TABLE"
            " --label COLUMN, and the harness splits it.",
            code="id_missing",
        )
    inputs = [name for name in shared if name not in (label, ids[0])]
    held_out = {"path": split.held_out, "inputs": inputs, "label": label, "id": ids[0]}
    validation = {} if split.validation is None else {"validation": split.validation}
    return {"train": split.train, **validation, "held_out": held_out}


def _is_id(table: Table, name: str) -> bool:
    column = table.columns[name]
    return (
        column.ndim == 1 and column.dtype.kind in "iuSUO" and len(set(column.tolist())) == table.n
    )


def _has_none(root: Path) -> bool:
    """Whether neither a train nor a predict program is there."""
    return not programs(root, "train") and not programs(root, "predict") and missing(root)


def _programs(root: Path, start: Start, ask: Ask | None) -> tuple[str, str]:
    """The plan's training.entry and oracle.predict."""
    train, predict = programs(root, "train"), programs(root, "predict")
    entry = _one_of(train, "train", "train.py", "training.entry", start, ask)
    return entry, _one_of(predict, "predict", "predict.py", "oracle.predict", start, ask)


def _one_of(
    found: Sequence[Program],
    verb: str,
    name: str,
    key: str,
    start: Start,
    ask: Ask | None,
) -> str:
    commands = [one.command for one in found]
    if not commands:
        start.notes.append(f"no {name} is here: write one, or change {key} in {start.plan}")
        return f"python {name}"
    chosen = commands[0]
    if len(commands) > 1 and ask is not None:
        chosen = ask(f"Program to {verb} ({_some(commands)})", chosen)
    elif len(commands) > 1:
        others = _some(commands[1:])
        start.notes.append(f"{key} is `{chosen}`; it may be {others}: change it in {start.plan}")
    silent = next((not one.logs for one in found if one.command == chosen), False)
    if silent and verb == "train":
        start.notes.append(
            f"`{chosen}` does not call the run logger yet: five lines, see docs/guide.md, section 3"
        )
    return chosen


def _library(layout: Layout) -> tuple[str | None, str]:
    """What the programs are written with, and the interpreter that has it, or lacks all."""
    interpreter = require_interpreter(load_settings(layout.root, environment()))
    packages = ask_python(interpreter, choose(None, required=False))["packages"]
    return library_of(packages), interpreter


def _write_starters(
    root: Path, start: Start, table: Table, library: str | None, interpreter: str
) -> list[str]:
    if library is None:
        start.notes.append(
            f"{interpreter} has neither scikit-learn nor numpy: install one (`{interpreter} -m pip"
            " install numpy`), or set `interpreter` in .harness/config.toml"
        )
    made = Starter(data=start.data, table=table, metric=start.metric, library=library or NUMPY)
    for name, text in made.texts().items():
        atomic_write(root / name, text)
    start.notes += made.told()
    return list(NAMES)


def require_no_plan(directory: Path, given: Given) -> None:
    for path in (directory / BY_NAME["plan"].path, directory / INNER_PLAN):
        # Without the table it was split before: then the next call goes on, or finds all done.
        there = given.table is None or given.table.exists()
        if there and path.is_file() and path.read_bytes() != PLAN_FORM.encode():
            hint = "Change that one; or rename it, and call this again."
            if given.table is not None:
                hint = (
                    f"Split with `harness data split {given.table} --label {given.label}`, and put"
                    " what it prints there."
                )
            raise RefusedError(
                f"{path} exists: --data would write another plan.", hint=hint, code="plan_exists"
            )
        if path.is_file() and path.read_bytes() != PLAN_FORM.encode():
            require_as_planned(directory, path, metric=given.metric, label=given.label)
