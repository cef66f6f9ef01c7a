"""`harness gc`: removes the recorded checkpoints that nothing needs. Their records stay."""

import contextlib
import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.artifacts.content import content_hash, hash_file, hash_path, linked, open_regular
from harness.artifacts.held_rows import Metrics
from harness.artifacts.locate import Layout
from harness.domain.models import ModelState
from harness.domain.records import Experiment, Run
from harness.domain.statuses import FINAL_RUNS, ExperimentStatus, RunStatus
from harness.errors import HarnessError, RefusedError, UsageError
from harness.files import sync_directory, walk_files
from harness.ledger.facts import Checkpoint, CheckpointRemoved
from harness.ledger.project import Project
from harness.plans.approved import objective_of, plan_of
from harness.runs.lock import try_supervising

_MARKER, _POINTERS = "COMPLETE", ("latest", "best")
"""What the Checkpointer writes: the mark of a whole checkpoint, and files that name one."""
_LONGEST_NAME = 255
_NOT_SERVED = frozenset({ModelState.REJECTED, ModelState.RETIRED})


@dataclass(frozen=True, kw_only=True)
class RemovedCheckpoints:
    removed: list[dict[str, Any]] = field(default_factory=list)
    """experiment, run, path, bytes, sha256 each."""
    kept: list[dict[str, str]] = field(default_factory=list)
    """path, why each."""
    failed: list[str] = field(default_factory=list)
    """Paths among `kept` that should have gone."""

    @property
    def bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.removed)

    def keep(self, path: str, why: str) -> None:
        self.kept.append({"path": path, "why": why})


@dataclass(frozen=True, kw_only=True)
class Choice:
    checkpoint: Checkpoint
    path: Path
    """What is removed: the checkpoint itself, or the folder of the Checkpointer around it."""
    why: str | None
    """Why it stays; None when it is removed."""


def remove_unneeded(
    project: Project, experiments: Iterable[str], *, by: str, dry_run: bool
) -> RemovedCheckpoints:
    """Remove the checkpoints of the experiments that nothing needs; with `dry_run` only list them.
    An experiment that is being trained is left alone. Raises NotFoundError."""
    outcome, read = RemovedCheckpoints(), read_by_judges(project)
    layout = project.layout
    for name in [project.ledger.experiment(experiment).id for experiment in experiments]:
        with try_supervising(layout, name) as held:
            if not held:
                outcome.keep(layout.relative(layout.experiment(name)), "it is being trained")
                continue
            choices = _choices(project, name, read)
            if not dry_run:
                _finish_killed(project, name, outcome)
            _remove_chosen(project, choices, by, outcome, dry_run=dry_run)
        for choice in choices:
            if choice.why is not None:
                outcome.keep(layout.relative(choice.path), choice.why)
    return outcome


def _remove_chosen(
    project: Project,
    choices: list[Choice],
    by: str,
    outcome: RemovedCheckpoints,
    *,
    dry_run: bool,
) -> None:
    by_path: dict[Path, list[Choice]] = {}
    for choice in choices:
        if choice.why is None:
            by_path.setdefault(choice.path, []).append(choice)
    for path, together in by_path.items():
        try:
            facts = [_fact(project.layout, choice, by) for choice in together]
            if not dry_run:
                # In this order: a killed call is finished by the next one, from the fact.
                _record(project, facts)
                _remove(path)
        except (HarnessError, OSError) as error:
            shown = project.layout.relative(path)
            outcome.keep(shown, f"it could not be removed: {error}")
            outcome.failed.append(shown)
        else:
            outcome.removed.append(_plain(facts[0]))


def _fact(layout: Layout, choice: Choice, by: str) -> CheckpointRemoved:
    checkpoint, path = choice.checkpoint, choice.path
    files = [path] if path.is_file() else list(walk_files(path))
    return CheckpointRemoved(
        experiment=checkpoint.experiment,
        run=checkpoint.run,
        checkpoint=checkpoint.id,
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
    if path.is_dir():
        # One rename first: after a kill, half of a checkpoint never stands under its name.
        path.rename(_aside(path))
        sync_directory(path.parent)
        shutil.rmtree(_aside(path))
    else:
        path.unlink()
    sync_directory(path.parent)


def _finish_killed(project: Project, name: str, outcome: RemovedCheckpoints) -> None:
    """Remove the folders that a killed call had set aside."""
    for fact, _ in project.ledger.removed_checkpoints(name):
        aside = _aside(project.layout.root / fact.path)
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
            outcome.removed.append(_plain(fact))


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.removed")


def _plain(fact: CheckpointRemoved) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in ("experiment", "run", "path", "bytes", "sha256")}


# Which checkpoints stay


def read_by_judges(project: Project) -> frozenset[str]:
    """Content hashes that any verdict or evaluation read, and models that may be served."""
    ledger, hashes = project.ledger, set()
    for experiment in ledger.experiments():
        hashes |= {evaluation.checkpoint for evaluation in ledger.evaluations(experiment.id)}
        for verdict in ledger.verdicts(experiment.id):
            hashes |= {
                digest for name, digest in verdict.evidence.items() if name.endswith("/checkpoint")
            }
    for model in ledger.models():
        hashes |= {model.id} if model.state not in _NOT_SERVED else set()
        for evaluation in ledger.model_history(model.id).evaluations:
            hashes |= {evaluation.model, evaluation.against}
    return frozenset(hashes)


def _choices(project: Project, name: str, read: frozenset[str]) -> list[Choice]:
    experiment, runs = project.ledger.experiment(name), project.ledger.runs(name)
    return [choice for run in runs for choice in _of_run(project, experiment, run, read)]


def _of_run(
    project: Project, experiment: Experiment, run: Run, read: frozenset[str]
) -> list[Choice]:
    """One of each checkpoint of the run that is recorded and exists."""
    layout, choices = project.layout, []
    told = project.ledger.tellings(experiment.id, run.id)
    for checkpoint in project.ledger.checkpoints(experiment.id, run.id):
        if told.get(checkpoint.path, (0, checkpoint.id))[1] != checkpoint.id:
            continue  # written over by the training, which told of what lies there now
        why: str | None = "it lies outside the run's checkpoints"
        path = _unit(layout, checkpoint)
        if path is not None:
            why = _needed(project, experiment, run, checkpoint, read)
        path = path or layout.root / checkpoint.path
        if path.exists():
            choices.append(Choice(checkpoint=checkpoint, path=path, why=why))
    goes = any(choice.why is None for choice in choices)
    if goes and experiment.status is not ExperimentStatus.DISCARDED:
        choices = _with_best_and_newest(project, experiment, run, choices)
    choices = [_unless_changed(layout, choice) for choice in choices]
    stay = [layout.root / choice.checkpoint.path for choice in choices if choice.why is not None]
    return [_unless_shared(choice, stay) for choice in choices]


def _unit(layout: Layout, checkpoint: Checkpoint) -> Path | None:
    """What is removed with the checkpoint; None where nothing may be."""
    # Training names paths as it likes: only what lies below the run's folder of checkpoints, and is
    # reached without a link, may go. The folder itself holds more than one checkpoint.
    folder = layout.run(checkpoint.experiment, checkpoint.run, "checkpoints")
    path = layout.root / checkpoint.path
    if (
        ".." in path.parts
        or path == folder
        or not path.is_relative_to(folder)
        or linked(layout.root, path)
    ):
        return None
    whole = path.parent.parent == folder and (path.parent / _MARKER).is_file()
    return path.parent if whole else path


def _needed(
    project: Project,
    experiment: Experiment,
    run: Run,
    checkpoint: Checkpoint,
    read: frozenset[str],
) -> str | None:
    if run.status not in FINAL_RUNS:
        return "its run has not ended"
    if checkpoint.id in read:
        return "a verdict or an evaluation read it, or it is a model that may be served"
    if experiment.status is ExperimentStatus.DISCARDED:
        return None
    if checkpoint.final:
        return "it is the final one of its run"
    if run.status is not RunStatus.COMPLETED:
        return (
            f"its run is {run.status} and may go on with `harness train {experiment.id} --resume`"
        )
    metrics = project.layout.run(experiment.id, run.id, "metrics")
    with contextlib.suppress(UsageError):
        if hash_file(metrics) == run.files.get("metrics"):
            return None
    return "the run's rows, which say what is best, changed since its end"


def _with_best_and_newest(
    project: Project, experiment: Experiment, run: Run, choices: Sequence[Choice]
) -> list[Choice]:
    saved = [choice.checkpoint.epoch for choice in choices]
    epochs = [epoch for epoch in saved if epoch is not None]
    best = _best_epochs(project, experiment, run, set(epochs))
    folder = project.layout.run(experiment.id, run.id, "checkpoints")
    names = (_pointed(folder / pointer) for pointer in _POINTERS)
    pointed = {folder / name for name in names if name}
    changed = []
    for choice in choices:
        epoch = choice.checkpoint.epoch
        if choice.why is None and (choice is choices[-1] or (epochs and epoch == max(epochs))):
            choice = replace(choice, why="it is the newest of its run")
        elif choice.why is None and (epoch in best or choice.path in pointed):
            choice = replace(choice, why="it is the best of its run")
        changed.append(choice)
    return changed


def _best_epochs(project: Project, experiment: Experiment, run: Run, saved: set[int]) -> set[int]:
    """The saved epochs with the best logged value of the plan's metric."""
    try:
        objective = objective_of(plan_of(project, experiment))
    except RefusedError:  # a training program has no plan
        return set()
    values: dict[int, float] = {}
    path = project.layout.run(experiment.id, run.id, "metrics")
    for row in Metrics(path).effective():
        metrics, epoch = row.get("metrics"), row.get("epoch")
        value = metrics.get(objective.metric) if isinstance(metrics, dict) else None
        if epoch in saved and isinstance(value, int | float) and math.isfinite(value):
            values[int(epoch)] = objective.gain(float(value), 0.0)
    return {epoch for epoch, value in values.items() if value == max(values.values())}


def _pointed(pointer: Path) -> str:
    try:
        with open_regular(pointer, follow=False) as stream:
            return stream.read(_LONGEST_NAME).decode("utf-8", "replace").strip()
    except UsageError:
        return ""


def _unless_changed(layout: Layout, choice: Choice) -> Choice:
    checkpoint = choice.checkpoint
    if choice.why is None and content_hash(layout.root, checkpoint.path) != checkpoint.id:
        return replace(choice, why="it is not what was recorded, which is evidence")
    return choice


def _unless_shared(choice: Choice, stay: Sequence[Path]) -> Choice:
    shared = any(
        path.is_relative_to(choice.path) or choice.path.is_relative_to(path) for path in stay
    )
    if choice.why is None and shared:
        return replace(choice, why="it holds one that stays, or lies in it")
    return choice
