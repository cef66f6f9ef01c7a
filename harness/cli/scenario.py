"""`harness scenario record | new | check`: what a scripted model says, for tests and CI."""

import os
import sys
from pathlib import Path

import click

from harness.artifacts.content import write_below
from harness.cli.output import (
    CommandGroup,
    copy_option,
    emit,
    environment,
    json_option,
    project_option,
    tell,
)
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.contract.roles import ROLES
from harness.driver.recorded_scenario import of_loop, of_transcript
from harness.driver.scenario_check import (
    Checked,
    Reached,
    check_scenario,
    reached,
    unplayable,
)
from harness.driver.scenario_draft import smallest
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.project import Project, open_project

_NOT_YET = ("no_plan", "no_project", "ledger_missing", "facts_not_imported", "not_found")
_ROLES = [role.name for role in ROLES if role.step is not None]
_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_REPLACE = click.option("--replace", is_flag=True, help="Replace a FILE that is there.")


@click.group("scenario", cls=CommandGroup)
def command() -> None:
    """Sessions of agents in a file, which `harness run --scenario` plays without a model."""


@command.command("check")
@_FILE
@copy_option
@project_option
@json_option
def check(file: Path, copy: Path | None, project: Path, as_json: bool) -> None:
    """Say in one line each what is wrong with FILE, and run nothing; exit 2 when there is anything.

    In a project with an approved plan it is checked as the next thing that its loop plays, else as
    a fresh clone would play it.
    """
    checked = check_scenario(file, _so_far(project), copy)
    document = {
        "scenario": str(file),
        "valid": not checked.problems,
        "sessions": checked.sessions,
        "turns": checked.turns,
        "problems": [problem.plain() for problem in checked.problems],
        "notes": [note.plain() for note in checked.notes],
    }
    notes = [f"note: {note.line}" for note in checked.notes]
    if checked.problems:
        error = unplayable(checked)
        if as_json:
            plain = {"code": error.code, "message": error.message, "hint": error.hint}
            emit({**document, "error": plain}, as_json=True)
            sys.exit(error.exit_code)
        if notes:
            tell("\n".join(notes))
        raise error
    emit(document, *notes, _playable(file, checked), as_json=as_json)


def _playable(file: Path, checked: Checked) -> str:
    sessions, turns = checked.sessions, checked.turns
    return f"{file}: {sessions} sessions, {turns} turns; `harness run --scenario {file}` plays it."


def _so_far(start: Path) -> Reached:
    try:
        with open_project(start, environment(), read_only=True) as opened:
            return reached(opened)
    except (NotFoundError, RefusedError) as error:
        if error.code not in _NOT_YET:
            raise
        return Reached()


@command.command("new")
@_FILE
@_REPLACE
@project_option
@json_option
def new(file: Path, replace: bool, project: Path, as_json: bool) -> None:
    """Write the smallest scenario that this project plays to FILE: one experiment with the code as
    it stands, trained, evaluated, its result as measured, the gate asked.

    Must be run by a person.
    """
    require_person("scenario new", environment(), needs_terminal=False)
    with reading(project) as opened:
        _write(opened, file, smallest(opened.plan()), replace=replace)
    _said(file, project, as_json=as_json)


@command.command("record")
@_FILE
@click.option(
    "--from",
    "transcript",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="A transcript of Claude Code; default: the sessions that the loop of this tree led.",
)
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    default="model-builder",
    help="With --from: whose session it is.",
)
@_REPLACE
@project_option
@json_option
def record(
    file: Path,
    transcript: Path | None,
    role: str,
    replace: bool,
    project: Path,
    as_json: bool,
) -> None:
    """Write sessions that happened to FILE, as a scenario that says and does the same.

    Credentials are left out; the project's folder and the experiment's id become references. Must
    be run by a person.
    """
    require_person("scenario record", environment(), needs_terminal=False)
    with reading(project) as opened:
        if transcript is None:
            text = of_loop(opened)
        else:
            text = of_transcript(opened, transcript, (role, "1", "1"))
        _write(opened, file, text, replace=replace)
    _said(file, project, as_json=as_json)


def _write(project: Project, file: Path, text: str, *, replace: bool) -> None:
    path = Path(os.path.normpath(file.absolute()))
    root = project.layout.root
    if not path.is_relative_to(root):
        raise UsageError(
            f"{file} is outside the project {root}.",
            hint="Name a file of the project, e.g. ci/scenario.yaml: git carries it.",
            code="outside_project",
        )
    if path.exists() and not replace:
        raise UsageError(
            f"{file} is there already.",
            hint="Name another file, or add --replace.",
            code="file_exists",
        )
    write_below(root, path, text)


def _said(file: Path, start: Path, *, as_json: bool) -> None:
    """What was written, and what is wrong with it as a fresh clone would play it."""
    checked = check_scenario(file, Reached())
    document = {
        "written": str(file),
        "sessions": checked.sessions,
        "turns": checked.turns,
        "problems": [problem.plain() for problem in checked.problems],
    }
    lines = [f"wrote {file}: {checked.sessions} sessions, {checked.turns} turns"]
    lines += [f"  to mend: {problem.line}" for problem in checked.problems]
    lines += [f"next: `harness scenario check {file}`"]
    emit(document, *lines, as_json=as_json)
