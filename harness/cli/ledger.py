"""`harness ledger verify | rebuild | export | import`."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import click

from harness.artifacts.locate import Layout
from harness.artifacts.moved import move_experiments
from harness.cli.changing import changing
from harness.cli.output import (
    CommandGroup,
    WholeNumber,
    emit,
    environment,
    json_option,
    project_option,
)
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.domain.ids import is_experiment_id
from harness.domain.team_ledger import url_problem
from harness.errors import UsageError
from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.merging import merge_facts, renamings
from harness.ledger.migrate import grants, migrate
from harness.ledger.origins import newest_facts
from harness.ledger.project import approve_config, open_layout
from harness.ledger.travelling import (
    Ahead,
    facts_ahead,
    facts_left_out,
)
from harness.ledger.verify import verify
from harness.plans.rehearsal import take_in
from harness.rendering.derived import write_derived
from harness.settings import name_ledger

FILE = "file"
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
    problems = verify(layout.ledger, layout.anchors, layout.facts_dir)
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


@command.command("migrate")
@click.argument("to")
@project_option
@json_option
def migrate_command(to: str, project: Path, as_json: bool) -> None:
    """Move the facts to TO: postgresql://HOST/DATABASE, or `file`, the state directory.

    Verifies both sides, then names the new place in config.toml. Goes on where it was cut; refuses
    a place that holds other facts. Must be run by a person.
    """
    require_person("ledger migrate", environment())
    url = None if to == FILE else to
    if url is not None and (what := url_problem(url)) is not None:
        raise UsageError(
            f"TO names no server: {what}.",
            hint="E.g. `harness ledger migrate postgresql://db.example/harness`, or `file`.",
            code="ledger_url",
        )
    with changing(project, deriving=True) as opened:
        root, layout = opened.settings.root, opened.layout
        target = Layout(replace(opened.settings, ledger=url)).ledger
        approved = layout.approved_config
        known = layout.project("config_toml").read_bytes()
        same = approved.is_file() and approved.read_bytes() == known

        def switch() -> None:
            config = name_ledger(root, url)
            if same:
                approve_config(layout, config)

        copied = migrate(opened.ledger, target, clock=opened.clock, switch=switch)
    with changing(project, deriving=True, again=True) as opened:
        write_derived(opened, everything=True)
    document = {"ledger": str(target), "copied": copied, "verified": True}
    emit(
        document,
        f"{target} holds every fact, {copied} copied now; both were verified",
        "config.toml names it: commit that file",
        as_json=as_json,
    )


@command.command("grants")
@click.option("--append", metavar="ROLE", help="A role that reads and adds facts.")
@click.option("--read", metavar="ROLE", help="A role that only reads.")
@project_option
@json_option
def grants_command(append: str | None, read: str | None, project: Path, as_json: bool) -> None:
    """Print the SQL that lets roles use the team's ledger; its owner runs it with psql.

    No role can change or remove a fact.
    """
    for role in filter(None, (append, read)):
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", role):
            raise UsageError(
                f"{role!r} names no role.",
                hint="Use small letters, digits and '_', as PostgreSQL does without quotes.",
            )
    place = open_layout(project, environment()).ledger
    if isinstance(place, Path):
        raise UsageError(
            f"The ledger is the file {place}; roles are of a server.",
            hint="`harness ledger migrate postgresql://HOST/DATABASE` moves it to one.",
        )
    lines = grants(place.schema, append=append, read=read)
    emit({"sql": lines}, *lines, as_json=as_json)


@command.command("merge")
@FOLDER
@project_option
@json_option
def merge_command(folder: Path | None, project: Path, as_json: bool) -> None:
    """Import facts from FOLDER (default: memory/facts); an id of ours that they have changes.

    References, words and folders get the new names; a decision records them. Goes on where it was
    cut. Must be run by a person.
    """
    by = require_person("ledger merge", environment())
    with changing(project, restore=True) as opened:
        layout = opened.layout
        merged = merge_facts(
            opened.ledger,
            folder or layout.facts_dir,
            by=by,
            taken=lambda name: is_experiment_id(name) and layout.experiment(name).exists(),
        )
        # From the facts: a merge that was cut after them is finished by the next one.
        here = {one.id for one in opened.here(opened.ledger.experiments())}
        moved = move_experiments(layout, renamings(opened.ledger), here)
        take_in(opened)
        write_derived(opened, everything=True)
    emit(
        {"imported": merged.imported, "renamed": merged.names, "moved": moved},
        f"imported {merged.imported} facts",
        *(f"{old} is now {new}" for old, new in merged.names.items()),
        *(f"{folder} has its new name" for folder in moved),
        as_json=as_json,
    )


@command.command("log")
@click.option("--last", type=WholeNumber(min=1), default=20, show_default=True)
@project_option
@json_option
def log_command(last: int, project: Path, as_json: bool) -> None:
    """The newest facts: when, what kind, and who added each, on which host, in what role."""
    with reading(project) as opened:
        rows = newest_facts(opened.ledger, last)
    lines = [f"{row.at}  {row.kind:<20} {row.origin or '-'}" for row in rows]
    emit({"facts": [row._asdict() for row in rows]}, *lines, as_json=as_json)


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
