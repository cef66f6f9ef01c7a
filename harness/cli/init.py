"""`harness init`: install the harness in a repository, or remove it."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.cli.data import HELD_OUT, VALIDATION, told
from harness.cli.data import document as split_document
from harness.cli.output import emit, environment, json_option
from harness.cli.person import require_person
from harness.clock import SystemClock
from harness.contract.artifacts import BY_NAME, INNER_PLAN
from harness.contract.installation import VENDORED
from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import enclosing_session
from harness.doctor.report import Report
from harness.domain.statuses import HooksMode
from harness.errors import HarnessError, RefusedError
from harness.files import atomic_write
from harness.install.file_changes import Conflict, FileChange
from harness.install.install import Installation, install
from harness.install.removal import Removal, remove
from harness.plans.data_split import DataSplit, SplitOptions, split_table
from harness.plans.scaffold import PLAN_FORM, filled_plan

_NEXT = "next: fill in {plan}, then `harness plan check {plan}` and `harness plan approve {plan}`"

_READY = (
    "next: set the tiers in {plan} and write train.py and predict.py (or let agents), then `harness"
    " plan check {plan}` and `harness plan approve {plan}`"
)


@click.command("init")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--dry-run", is_flag=True, help="Show every change; make none.")
@click.option("--remove", "take_out", is_flag=True, help="Remove the harness.")
@click.option(
    "--hooks",
    type=click.Choice(list(map(str, HooksMode))),
    default=None,
    help=(
        "project: hooks in .claude/ (default); plugin: the plugin's hooks, nothing is written"
        " outside .harness/; none: no hooks."
    ),
)
@click.option(
    "--allow",
    is_flag=True,
    help="Let Claude Code run the harness's tools, and verbs that decide nothing, unasked.",
)
@click.option(
    "--data",
    "table",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="A table to split as `harness data split` does; plan.md is filled in from it.",
)
@click.option("--label", default=None, help="With --data: the column to predict.")
@click.option("--group", default=None, help="With --data: rows with the same value stay together.")
@click.option("--time", default=None, help="With --data: the newest rows are held out.")
@json_option
def command(
    directory: Path,
    dry_run: bool,
    take_out: bool,
    hooks: str | None,
    allow: bool,
    table: Path | None,
    label: str | None,
    group: str | None,
    time: str | None,
    as_json: bool,
) -> None:
    """Make DIRECTORY a project with hooks, agents and slash commands; your own files stay.

    A second call changes nothing. A newer harness replaces the files that nobody edited and lists
    the edited ones. Exit 1 when a file was left as it is or a guard does not work afterwards. Must
    be run by a person.
    """
    # No terminal needed: init approves no plan and no score, and scripts set projects up.
    by = require_person("init", environment(), needs_terminal=False)
    if (table is None) != (label is None) or (table is None and (group or time)):
        raise click.UsageError("--data TABLE and --label COLUMN belong together.")
    if table is not None and (dry_run or take_out):
        raise click.UsageError("--data goes with neither --dry-run nor --remove.")
    if allow and take_out:
        raise click.UsageError("--allow and --remove exclude each other.")
    if take_out:
        _print_removal(
            remove(directory, environment(), by=by, dry_run=dry_run),
            dry_run=dry_run,
            as_json=as_json,
        )
    else:
        mode = None if hooks is None else HooksMode(hooks)
        if table is not None:
            _require_no_plan(directory, table, label)
        done = install(directory, mode, environment(), by=by, allow=allow, dry_run=dry_run)
        prepared = None
        if table is not None and label is not None:
            try:
                prepared = _prepare(done, table, label=label, group=group, time=time)
            except HarnessError as error:
                error.hint += " The project is made, its table is not split: call this again then."
                raise
        _print(done, prepared, dry_run=dry_run, as_json=as_json)


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    split: DataSplit
    plan: str
    """The plan's path, relative."""
    written: bool


def _require_no_plan(directory: Path, table: Path, label: str | None) -> None:
    for path in (directory / BY_NAME["plan"].path, directory / INNER_PLAN):
        # Without the table it was split before: then the next call goes on, or finds all done.
        if table.exists() and path.is_file() and path.read_bytes() != PLAN_FORM.encode():
            raise RefusedError(
                f"{path} exists: --data would write another plan.",
                hint=(
                    f"Split with `harness data split {table} --label {label}`, and put what it"
                    " prints there."
                ),
                code="plan_exists",
            )


def _prepare(
    done: Installation, table: Path, *, label: str, group: str | None, time: str | None
) -> _Prepared:
    """Split the table and write the plan where the form is, or would be."""
    layout = done.place.layout
    options = SplitOptions(
        label=label,
        held_out=HELD_OUT,
        validation=VALIDATION,
        open_validation=False,
        stratify=None,
        group=group,
        time=time,
        seed=0,
    )
    split = split_table(layout, table, options, SystemClock())
    name = BY_NAME["plan"].path
    form = PLAN_FORM.encode()
    there = [path for path in (name, INNER_PLAN) if (layout.root / path).is_file()]
    path = there[0] if there else (name if done.place.mode is HooksMode.PROJECT else INNER_PLAN)
    written = not there or (layout.root / path).read_bytes() == form
    if written:
        atomic_write(layout.root / path, filled_plan(layout.root, split))
    return _Prepared(split=split, plan=path, written=written)


def _print(
    done: Installation, prepared: _Prepared | None, *, dry_run: bool, as_json: bool
) -> None:
    place = done.place
    report = None
    if place.mode is HooksMode.PROJECT and not dry_run:
        report = run_doctor(
            place.root, environment(), start_cli=False, session=enclosing_session()
        )
    document = {
        "project": str(place.layout.root),
        "root": str(place.root),
        "hooks": place.mode,
        "interpreter": done.interpreter,
        "rejected": [{"interpreter": path, "why": why} for path, why in done.rejected],
        **_files(done.changes, done.conflicts, done.notes, dry_run=dry_run),
        "doctor": None if report is None else report.document(),
        "split": None if prepared is None else split_document(prepared.split),
    }
    emit(document, *_lines(done, report, prepared, dry_run=dry_run), as_json=as_json)
    sys.exit(1 if done.conflicts or (report is not None and report.broken) else 0)


def _print_removal(done: Removal, *, dry_run: bool, as_json: bool) -> None:
    document = {
        "project": str(done.place.layout.root),
        "root": str(done.place.root),
        **_files(done.changes, done.conflicts, done.notes, dry_run=dry_run),
    }
    lines = [
        *_change_lines(done.changes, dry_run=dry_run),
        *_conflict_lines(done.conflicts),
        *done.notes,
    ]
    lines.append(
        "nothing was changed" if dry_run else f"removed the harness from {done.place.root}"
    )
    emit(document, *lines, as_json=as_json)
    sys.exit(1 if done.conflicts else 0)


def _files(
    changes: Sequence[FileChange],
    conflicts: Sequence[Conflict],
    notes: Sequence[str],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "changes": [{"path": change.path, "action": change.action} for change in changes],
        "conflicts": [
            {"path": conflict.path, "message": conflict.message, "hint": conflict.hint}
            for conflict in conflicts
        ],
        "notes": list(notes),
    }


def _lines(
    done: Installation, report: Report | None, prepared: _Prepared | None, *, dry_run: bool
) -> list[str]:
    lines = _change_lines(done.changes, dry_run=dry_run) or [
        "nothing to do: the project is up to date"
    ]
    lines += [
        f"rejected {path}: it {why}" for path, why in done.rejected if why != "does not exist"
    ]
    lines += [f"{done.interpreter} runs the hooks"] if done.interpreter else []
    lines += [*_conflict_lines(done.conflicts), *done.notes]
    if dry_run:
        return [*lines, "nothing was changed"]
    if report is not None:
        lines += (
            report.lines()
            if report.broken
            else ["all guards work (`harness doctor` also starts the CLI once)"]
        )
    if done.place.mode is HooksMode.PLUGIN:
        lines.append(
            "the plugin provides the hooks; they work here once it is installed in Claude Code"
        )
    if prepared is not None:
        written = "filled in" if prepared.written else "left as it is:"
        return [
            *lines,
            *told(prepared.split),
            f"{written} {prepared.plan}",
            _READY.format(plan=prepared.plan),
        ]
    plan = next((change.path for change in done.changes if change.path.endswith("plan.md")), None)
    return [*lines, _NEXT.format(plan=plan)] if plan else lines


def _change_lines(changes: Sequence[FileChange], *, dry_run: bool) -> list[str]:
    """One line per file, one for all vendored files; with a dry run the whole diff."""
    if dry_run:
        return [change.text() for change in changes]
    vendored = [change for change in changes if change.path.startswith(VENDORED)]
    lines = [f"{_DONE[one.action]} {one.path}" for one in changes if one not in vendored]
    counts = Counter(_DONE[change.action] for change in vendored)
    return [
        *lines,
        *(
            f"{done} {count} file{'s' * (count != 1)} below {VENDORED}"
            for done, count in counts.items()
        ),
    ]


_DONE = {"create": "wrote", "change": "changed", "delete": "removed"}


def _conflict_lines(conflicts: Sequence[Conflict]) -> list[str]:
    return [f"left as it is: {conflict.message}\n  {conflict.hint}" for conflict in conflicts]
