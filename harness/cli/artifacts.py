"""`harness artifacts push | pull`: checkpoints in a store that machines share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from harness.artifacts.content import content_hash, linked
from harness.artifacts.remote import RemoteStore
from harness.cli.output import CommandGroup, emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.errors import ConfigError, HarnessError, RefusedError
from harness.ledger.facts import Checkpoint
from harness.ledger.project import Project


@click.group("artifacts", cls=CommandGroup)
def command() -> None:
    """Share checkpoints: the store is `artifacts` in .harness/config.toml."""


@command.command("push")
@click.argument("experiments", nargs=-1, metavar="[EXP]...")
@project_option
@json_option
def push_command(experiments: tuple[str, ...], project: Path, as_json: bool) -> None:
    """Store the final checkpoints of EXP (default: all experiments) that are here.

    Each is named by its hash and stored once. Exit 1 when one could not be stored. Must be run by a
    person.
    """
    require_person("artifacts push", environment(), needs_terminal=False)
    rows = []
    with reading(project) as opened:
        store = _store(opened)
        for point in _final(opened, experiments):
            row = _row(point)
            if content_hash(opened.layout.root, point.path) is None:
                rows.append(row | {"pushed": False, "why": "it is not here"})
                continue
            try:
                sent = store.put(opened.layout.root / point.path, point.id)
            except RefusedError as error:
                rows.append(row | {"pushed": False, "why": error.message})
            else:
                rows.append(row | {"pushed": True, **sent._asdict()})
    document = {"store": store.url, "checkpoints": rows}
    emit(document, *(_pushed(row) for row in rows), as_json=as_json)
    sys.exit(1 if any(not row["pushed"] for row in rows) else 0)


@command.command("pull")
@click.argument("experiments", nargs=-1, required=True, metavar="EXP...")
@project_option
@json_option
def pull_command(experiments: tuple[str, ...], project: Path, as_json: bool) -> None:
    """Bring the final checkpoints of EXP into this tree, where their runs left them.

    Each is checked by its hash; what is there stays. Exit 1 when one could not be brought. Must be
    run by a person.
    """
    require_person("artifacts pull", environment(), needs_terminal=False)
    rows = []
    with reading(project) as opened:
        store = _store(opened)
        for point in _final(opened, experiments):
            try:
                rows.append(_row(point) | {"pulled": _pulled(opened, store, point), "why": ""})
            except HarnessError as error:
                rows.append(_row(point) | {"pulled": False, "why": error.message})
    lines = [
        f"{row['experiment']}/{row['run']}  {row['path']}  "
        f"{row['why'] or ('pulled' if row['pulled'] else 'was here')}"
        for row in rows
    ]
    emit({"store": store.url, "checkpoints": rows}, *lines, as_json=as_json)
    sys.exit(1 if any(row["why"] for row in rows) else 0)


def _pulled(project: Project, store: RemoteStore, point: Checkpoint) -> bool:
    """False when it is here already."""
    root, target = project.layout.root, project.layout.root / point.path
    below = project.layout.experiment(point.experiment)
    # The path comes with the facts, perhaps from another clone.
    inside = ".." not in Path(point.path).parts and target.is_relative_to(below)
    if not inside or linked(root, target.parent) is not None:
        raise RefusedError(
            f"{point.path} is no place in the folder of {point.experiment}.",
            hint="Find out which run recorded it: `harness experiment show`.",
            code="path_outside",
        )
    if target.exists() or target.is_symlink():
        if content_hash(root, point.path) == point.id:
            return False
        raise RefusedError(
            f"{point.path} is here with other bytes.",
            hint="Move it away, then pull again.",
            code="path_taken",
        )
    store.get(point.id, target)
    return True


def _store(project: Project) -> RemoteStore:
    url = project.settings.artifacts
    if url is None:
        raise ConfigError(
            "No store is set.",
            hint='Add `artifacts = "s3://bucket/prefix"`, or "file:///a/folder", to'
            " .harness/config.toml.",
            code="no_store",
        )
    return RemoteStore(url)


def _final(project: Project, experiments: tuple[str, ...]) -> Iterator[Checkpoint]:
    ledger = project.ledger
    names = [ledger.experiment(name).id for name in dict.fromkeys(experiments)]
    for name in names or [one.id for one in ledger.experiments()]:
        yield from (point for point in ledger.checkpoints(name) if point.final)


def _row(point: Checkpoint) -> dict[str, object]:
    return {
        "experiment": point.experiment,
        "run": point.run,
        "checkpoint": point.id,
        "path": point.path,
    }


def _pushed(row: dict[str, object]) -> str:
    name = f"{row['experiment']}/{row['run']}  {row['path']}"
    if not row["pushed"]:
        return f"{name}  not stored: {row['why']}"
    return f"{name}  {row['bytes']:,} bytes in {row['files']} files, {row['known']} were there"
