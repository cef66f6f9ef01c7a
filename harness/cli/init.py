"""`harness init`: install the harness in a repository, or remove it."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.output import emit, environment, json_option
from harness.cli.person import require_person
from harness.contract.installation import VENDORED
from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import enclosing_session
from harness.doctor.report import Report
from harness.domain.statuses import HooksMode
from harness.install.file_changes import Conflict, FileChange
from harness.install.install import Installation, install
from harness.install.removal import Removal, remove

_NEXT = "next: fill in {plan}, then `harness plan check {plan}` and `harness plan approve {plan}`"


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
@json_option
def command(
    directory: Path, dry_run: bool, take_out: bool, hooks: str | None, as_json: bool
) -> None:
    """Make DIRECTORY a project with hooks, agents and slash commands; your own files stay.

    A second call changes nothing. A newer harness replaces the files that nobody edited and lists
    the edited ones. Exit 1 when a file was left as it is or a guard does not work afterwards. Must
    be run by a person.
    """
    # No terminal needed: init approves no plan and no score, and scripts set projects up.
    by = require_person("init", environment(), needs_terminal=False)
    if take_out:
        _print_removal(
            remove(directory, environment(), by=by, dry_run=dry_run),
            dry_run=dry_run,
            as_json=as_json,
        )
    else:
        mode = None if hooks is None else HooksMode(hooks)
        _print(
            install(directory, mode, environment(), by=by, dry_run=dry_run),
            dry_run=dry_run,
            as_json=as_json,
        )


def _print(done: Installation, *, dry_run: bool, as_json: bool) -> None:
    place = done.place
    report = None
    if place.mode is HooksMode.PROJECT and not dry_run:
        report = run_doctor(place.root, environment(), start_cli=False, session=enclosing_session())
    document = {
        "project": str(place.layout.root),
        "root": str(place.root),
        "hooks": place.mode,
        "interpreter": done.interpreter,
        "rejected": [{"interpreter": path, "why": why} for path, why in done.rejected],
        **_files(done.changes, done.conflicts, done.notes, dry_run=dry_run),
        "doctor": None if report is None else report.document(),
    }
    emit(document, *_lines(done, report, dry_run=dry_run), as_json=as_json)
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


def _lines(done: Installation, report: Report | None, *, dry_run: bool) -> list[str]:
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
