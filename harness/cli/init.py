"""`harness init`: install the harness in a repository, or remove it."""

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.data import document as split_document
from harness.cli.first_example import approve_example, example_given
from harness.cli.first_start import (
    Start,
    asker,
    begin,
    gather,
    require_data,
    require_no_plan,
)
from harness.cli.output import emit, environment, json_option
from harness.cli.person import require_person
from harness.cli.plan import small_told
from harness.contract.installation import VENDORED
from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import enclosing_session
from harness.doctor.report import Report
from harness.domain.statuses import HooksMode
from harness.errors import HarnessError
from harness.install.file_changes import Conflict, FileChange
from harness.install.install import Installation, install
from harness.install.removal import Removal, remove
from harness.install.target import place_of
from harness.plans.approval import check_plan
from harness.plans.review import as_one_error

_NEXT = "next: fill in {plan}, then `harness plan check {plan}` and `harness plan approve {plan}`"

_READY = (
    'next: read {plan}, then `harness plan approve{named}`; then `harness try "first"` (or'
    " `harness experiment new --hypothesis TEXT`) runs an experiment to its gate"
)


_TRY = 'next: {there}`harness try "first"`'


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
    help="A table to split as `harness data split` does; plan.md and, where there are none, a train"
    " and a predict program are written for it.",
)
@click.option("--label", default=None, help="The column to predict; asked for on a terminal.")
@click.option("--metric", default=None, help="E.g. roc_auc; by default what fits the label.")
@click.option(
    "--example",
    default=None,
    help="Copy this small repository into an empty folder, ready to try.",
)
@click.option("--group", default=None, help="With --data: rows with the same value stay together.")
@click.option("--time", default=None, help="With --data: the newest rows are held out.")
@click.option("--verbose", "-v", is_flag=True, help="Name every file that was written.")
@json_option
def command(
    directory: Path,
    dry_run: bool,
    take_out: bool,
    hooks: str | None,
    allow: bool,
    table: Path | None,
    label: str | None,
    metric: str | None,
    group: str | None,
    time: str | None,
    example: str | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Make DIRECTORY a project with hooks, agents and slash commands; your own files stay.

    A second call changes nothing. A newer harness replaces the files that nobody edited and lists
    the edited ones. Exit 1 when a file was left as it is or a guard does not work afterwards. Must
    be run by a person.
    """
    # No terminal needed, for scripts set projects up: init decides about no score, and approves no
    # plan but an example's own, in a folder that holds nothing else.
    by = require_person("init", environment(), needs_terminal=False)
    asked = any(one is not None for one in (table, label, metric, group, time))
    if (asked or example is not None) and (dry_run or take_out):
        raise click.UsageError("--data and --example go with neither --dry-run nor --remove.")
    if asked and example is not None:
        raise click.UsageError("--example has its own table: leave the other options out.")
    if allow and take_out:
        raise click.UsageError("--allow and --remove exclude each other.")
    if take_out:
        _print_removal(
            remove(directory, environment(), by=by, dry_run=dry_run),
            dry_run=dry_run,
            as_json=as_json,
        )
        return
    mode, ask = None if hooks is None else HooksMode(hooks), asker(as_json=as_json)
    given = None
    if example is not None:
        place_of(directory, mode, environment())  # it refuses before anything is copied
        given = example_given(example, directory.resolve())
        directory = directory / given.folder
    elif asked:
        given = gather(directory.resolve(), table, label, metric, group, time, ask)
        require_no_plan(directory, given)
        require_data(place_of(directory, mode, environment()), given)
    done = install(directory, mode, environment(), by=by, allow=allow, dry_run=dry_run)
    start = None
    if given is not None:
        try:
            start = begin(done, given, ask)
        except HarnessError as error:
            error.hint += " The project is made: call this again then, and it goes on."
            raise
    if example is not None and start is not None and start.written:
        start.approved = approve_example(done, start, by=by)
    _print(done, start, dry_run=dry_run, verbose=verbose, as_json=as_json)


def _print(
    done: Installation, start: Start | None, *, dry_run: bool, verbose: bool, as_json: bool
) -> None:
    place = done.place
    report = None
    if place.mode is HooksMode.PROJECT and not dry_run:
        report = run_doctor(
            place.root, environment(), start_cli=False, session=enclosing_session()
        )
    problem = None if start is None else _problem(done, start)
    document = {
        "project": str(place.layout.root),
        "root": str(place.root),
        "hooks": place.mode,
        "interpreter": done.interpreter,
        "rejected": [{"interpreter": path, "why": why} for path, why in done.rejected],
        **_files(done.changes, done.conflicts, done.notes, dry_run=dry_run),
        "doctor": None if report is None else report.document(),
        "split": None if start is None or start.split is None else split_document(start.split),
        "start": None if start is None else start.document(),
    }
    if problem is not None and as_json:
        raise problem
    ready = problem is None
    written = _change_lines(done.changes, dry_run=dry_run, verbose=verbose)
    lines = _lines(done, written, report, start, dry_run=dry_run, ready=ready)
    emit(document, *lines, as_json=as_json)
    if problem is not None:
        raise problem
    sys.exit(1 if done.conflicts or (report is not None and report.broken) else 0)


def _problem(done: Installation, start: Start) -> HarnessError | None:
    """What `harness plan check` would refuse of the plan that was just written; what it would note
    of few rows is noted."""
    if not start.written or start.approved:
        return None
    root = done.place.layout.root
    checked = check_plan(root, root / start.plan, environment(), by_person=True)
    start.notes += [f"note: {one.message} {one.hint}" for one in small_told(checked)]
    return as_one_error(start.plan, checked.problems) if checked.problems else None


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
    done: Installation,
    written: list[str],
    report: Report | None,
    start: Start | None,
    *,
    dry_run: bool,
    ready: bool,
) -> list[str]:
    lines = written or ["nothing to do: the project is up to date"]
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
    if start is not None:
        named = "" if start.plan == "plan.md" else f" {start.plan}"
        then = _READY.format(plan=start.plan, named=named)
        if start.approved:
            root = done.place.layout.root
            here = root == Path.cwd()
            there = "" if here else f"`cd {shlex.quote(str(root))}`, then "
            then = _TRY.format(there=there)
        return [*lines, *start.lines(), *([then] if ready else [])]
    plan = next((change.path for change in done.changes if change.path.endswith("plan.md")), None)
    return [*lines, _NEXT.format(plan=plan)] if plan else lines


def _change_lines(
    changes: Sequence[FileChange], *, dry_run: bool, verbose: bool = False
) -> list[str]:
    """One line a kind of file; with `verbose` one a file, with a dry run the whole diff."""
    if dry_run:
        return [change.text() for change in changes]
    if verbose:
        return [f"{_DONE[change.action]} {change.path}" for change in changes]
    kinds = Counter((_DONE[change.action], _kind(change.path)) for change in changes)
    return [
        f"{done} {kind.format(n=count, s='s' * (count != 1))}"
        for (done, kind), count in kinds.items()
    ]


def _kind(path: str) -> str:
    """What many files are to a person; its own path for each of the others."""
    return next((words for below, words in _KINDS.items() if path.startswith(below)), path)


_KINDS = {
    VENDORED: f"{{n}} file{{s}} below {VENDORED}",
    ".claude/agents/": "{n} agent{s} below .claude/agents",
    ".claude/commands/": "{n} slash command{s} below .claude/commands",
}
_DONE = {"create": "wrote", "change": "changed", "delete": "removed"}


def _conflict_lines(conflicts: Sequence[Conflict]) -> list[str]:
    return [f"left as it is: {conflict.message}\n  {conflict.hint}" for conflict in conflicts]
