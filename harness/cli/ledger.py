"""`harness ledger verify | rebuild | export | import`."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import (
    CommandGroup,
    emit,
    environment,
    json_option,
    project_option,
)
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.project import open_layout
from harness.ledger.travelling import (
    Ahead,
    facts_ahead,
    facts_left_out,
)
from harness.ledger.verify import verify
from harness.plans.rehearsal import take_in
from harness.rendering.derived import write_derived

FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)


@click.group("ledger", cls=CommandGroup)
def command() -> None:
    """Check, rebuild and exchange the append-only store of facts."""


@command.command("verify")
@project_option
@json_option
def verify_command(project: Path, as_json: bool) -> None:
    """Re-derive every hash; exit 1 and name the fact that was changed, moved or cut.

    Also names facts that git brought and the ledger lacks, those that a merge left out too.
    """
    layout = open_layout(project, environment())
    problems = verify(layout.ledger_db, layout.anchors, layout.facts_dir)
    waiting = [] if problems else _waiting(project)
    document = {
        "verified": not problems,
        "problems": [problem._asdict() for problem in problems],
        "waiting": [ahead._asdict() for ahead in waiting],
    }
    lines = [problem.message for problem in problems] or ["every fact is unchanged"]
    lines += [f"{ahead.words}: {ahead.way}" for ahead in waiting]
    emit(document, *lines, as_json=as_json)
    sys.exit(1 if problems else 0)


def _waiting(start: Path) -> list[Ahead]:
    with reading(start) as opened:
        ahead = facts_ahead(opened.ledger, opened.layout)
        return [*ahead, *facts_left_out(opened.ledger, opened.layout)]


@command.command("rebuild")
@project_option
@json_option
def rebuild_command(project: Path, as_json: bool) -> None:
    """Rebuild the state and every page from the facts."""
    with changing(project, deriving=True) as opened:
        opened.ledger.rebuild()
        written = write_derived(opened, everything=True)
    emit(
        {"written": [str(path) for path in written]},
        *(f"wrote {path}" for path in written),
        as_json=as_json,
    )


@command.command("export")
@FOLDER
@project_option
@json_option
def export_command(folder: Path | None, project: Path, as_json: bool) -> None:
    """Write the facts as text, one file per writer, to FOLDER (default: memory/facts)."""
    with changing(project, deriving=True) as opened:
        written = export_facts(opened.ledger, folder or opened.layout.facts_dir)
        target = folder or opened.layout.facts_dir
    lines = [f"wrote {path}" for path in written] or [f"nothing to write: {target} has every fact"]
    emit({"written": [str(path) for path in written]}, *lines, as_json=as_json)


@command.command("import")
@FOLDER
@project_option
@json_option
def import_command(folder: Path | None, project: Path, as_json: bool) -> None:
    """Import facts from FOLDER (default: memory/facts), e.g. after a clone.

    Must be run by a person.
    """
    require_person("ledger import", environment())
    with changing(project, restore=True) as opened:
        imported = import_facts(opened.ledger, folder or opened.layout.facts_dir)
        take_in(opened)
        write_derived(opened, everything=True)
    emit({"imported": imported}, f"imported {imported} facts", as_json=as_json)
