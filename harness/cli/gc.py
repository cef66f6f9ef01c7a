"""`harness gc`: free disk space; the lineage stays intact."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller
from harness.cli.reading import reading
from harness.ledger.project import Project
from harness.runs.checkpoint_removal import RemovedCheckpoints, remove_unneeded


@click.command("gc")
@click.argument("experiments", nargs=-1, metavar="[EXP]...")
@click.option("--dry-run", is_flag=True, help="List what would be removed; change nothing.")
@project_option
@json_option
def command(experiments: tuple[str, ...], dry_run: bool, project: Path, as_json: bool) -> None:
    """Remove the checkpoints of EXP (default: all experiments) that nothing depends on.

    Each removal is recorded. Exit 1 when a checkpoint could not be removed.
    """
    opening = reading(project) if dry_run else changing(project)
    with opening as opened:
        done = remove_unneeded(
            opened, _named(opened, experiments), by=caller(environment()), dry_run=dry_run
        )
    document = {
        "dry_run": dry_run,
        "removed": done.removed,
        "kept": done.kept,
        "bytes": done.bytes,
    }
    emit(document, *_lines(done, dry_run=dry_run), as_json=as_json)
    sys.exit(1 if done.failed else 0)


def _named(project: Project, experiments: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(experiments)) or [
        experiment.id for experiment in project.ledger.experiments()
    ]


def _lines(done: RemovedCheckpoints, *, dry_run: bool) -> list[str]:
    verb = "would remove" if dry_run else "removed"
    return [
        *(f"kept {checkpoint['path']}: {checkpoint['why']}" for checkpoint in done.kept),
        *(
            f"{verb} {removed['path']}  {removed['bytes']:,} bytes  {removed['sha256'][:12]}"
            for removed in done.removed
        ),
        f"{verb} {len(done.removed)} checkpoints, {done.bytes:,} bytes; {len(done.kept)} kept",
    ]
