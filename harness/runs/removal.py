"""`harness gc`: takes checkpoints that nothing rests on off the disk. The record of each stays,
with its removal."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.artifacts.locate import Layout
from harness.errors import HarnessError
from harness.files import sync_directory, walk_files
from harness.ledger.facts import CheckpointRemoved
from harness.ledger.project import Project
from harness.runs.lock import try_supervising
from harness.runs.needed import Choice, choices, read_by_judges


@dataclass(frozen=True, kw_only=True)
class Removal:
    removed: list[dict[str, Any]] = field(default_factory=list)
    """experiment, run, path, bytes, sha256 each."""
    kept: list[dict[str, str]] = field(default_factory=list)
    """path, why each."""
    failed: list[str] = field(default_factory=list)
    """Paths among `kept` that should have gone."""

    @property
    def bytes(self) -> int:
        return sum(item["bytes"] for item in self.removed)


def remove_unneeded(
    project: Project, experiments: Iterable[str], *, by: str, dry_run: bool
) -> Removal:
    """Remove what `needed` does not keep of the experiments; with `dry_run` only say it.

    Each removal is a fact before it is done, so a killed call is finished by the next one. An
    experiment that is being trained is left alone, and cannot be trained meanwhile. Raises
    NotFoundError for an unknown experiment.
    """
    outcome, read = Removal(), read_by_judges(project)
    for name in [project.ledger.experiment(item).id for item in experiments]:
        with try_supervising(project.layout, name) as held:
            found = _choices(project, name, read)
            if held and not dry_run:
                _finish(project, name, outcome)
                _act(project, found, by, outcome, dry_run=False)
        if not held:
            found = []
            outcome.kept.append(
                {"path": _shown(project.layout, name), "why": "it is being trained"}
            )
        if dry_run:
            _act(project, found, by, outcome, dry_run=True)
        for choice in found:
            if choice.why is not None:
                outcome.kept.append(
                    {"path": project.layout.relative(choice.path), "why": choice.why}
                )
    return outcome


def _choices(project: Project, name: str, read: frozenset[str]) -> list[Choice]:
    experiment = project.ledger.experiment(name)
    return [
        item
        for run in project.ledger.runs(name)
        for item in choices(project, experiment, run, read)
    ]


def _shown(layout: Layout, name: str) -> str:
    return layout.relative(layout.experiment(name))


def _act(
    project: Project, found: list[Choice], by: str, outcome: Removal, *, dry_run: bool
) -> None:
    going: dict[Path, list[Choice]] = {}
    for choice in found:
        if choice.why is None:
            going.setdefault(choice.path, []).append(choice)
    for path, together in going.items():
        try:
            facts = [_fact(project.layout, choice, by) for choice in together]
            if not dry_run:
                _record(project, facts)
                _remove(path)
        except (HarnessError, OSError) as error:
            shown = project.layout.relative(path)
            outcome.kept.append({"path": shown, "why": f"it could not be removed: {error}"})
            outcome.failed.append(shown)
        else:
            outcome.removed.append(_plain(facts[0]))


def _fact(layout: Layout, choice: Choice, by: str) -> CheckpointRemoved:
    item, path = choice.checkpoint, choice.path
    files = [path] if path.is_file() else list(walk_files(path))
    return CheckpointRemoved(
        experiment=item.experiment,
        run=item.run,
        checkpoint=item.id,
        path=layout.relative(path),
        sha256=hash_path(path),
        bytes=sum(file.lstat().st_size for file in files),
        by=by,
    )


def _record(project: Project, facts: list[CheckpointRemoved]) -> None:
    """A removal that was recorded and not done is not recorded again."""
    for fact in facts:
        known = [old for old, _ in project.ledger.removed_checkpoints(fact.experiment)]
        if not any(
            (old.run, old.checkpoint, old.sha256) == (fact.run, fact.checkpoint, fact.sha256)
            for old in known
        ):
            project.ledger.append(fact)


def _remove(path: Path) -> None:
    """A folder goes by one rename first: half of a checkpoint never stands under its name."""
    if path.is_dir():
        path.rename(_aside(path))
        sync_directory(path.parent)
        shutil.rmtree(_aside(path))
    else:
        path.unlink()
    sync_directory(path.parent)


def _finish(project: Project, name: str, outcome: Removal) -> None:
    """Take away folders that a killed call had set aside."""
    for fact, _ in project.ledger.removed_checkpoints(name):
        aside = _aside(project.layout.root / fact.path)
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
            outcome.removed.append(_plain(fact))


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.removed")


def _plain(fact: CheckpointRemoved) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in ("experiment", "run", "path", "bytes", "sha256")}
