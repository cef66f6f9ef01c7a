"""Which recorded checkpoints have to stay on the disk, and why; `harness gc` removes the others."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.artifacts.content import content_hash, hash_file, linked, open_regular
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import read_rows
from harness.domain.models import ModelState
from harness.domain.records import Experiment, Run
from harness.domain.statuses import FINAL_RUNS, ExperimentStatus, RunStatus
from harness.errors import RefusedError, UsageError
from harness.ledger.facts import Checkpoint
from harness.ledger.project import Project
from harness.plans.approved import objective_of, plan_of

_MARKER, _POINTERS = "COMPLETE", ("latest", "best")
"""What the Checkpointer writes: the mark of a whole checkpoint, and files that name one."""
_LONGEST_NAME = 255
_NOT_SERVED = frozenset({ModelState.REJECTED, ModelState.RETIRED})


@dataclass(frozen=True, kw_only=True)
class Choice:
    checkpoint: Checkpoint
    path: Path
    """What goes with it: the checkpoint itself, or the Checkpointer's folder that holds it."""
    why: str | None
    """Why it stays; None when it goes."""


def read_by_judges(project: Project) -> frozenset[str]:
    """Content hashes that a verdict or an evaluation of any experiment or model read, and models
    that may be served."""
    ledger, found = project.ledger, set()
    for experiment in ledger.experiments():
        found |= {item.checkpoint for item in ledger.evaluations(experiment.id)}
        for verdict in ledger.verdicts(experiment.id):
            found |= {
                digest for name, digest in verdict.evidence.items() if name.endswith("/checkpoint")
            }
    for model in ledger.models():
        found |= {model.id} if model.state not in _NOT_SERVED else set()
        for evaluation in ledger.model_history(model.id).evaluations:
            found |= {evaluation.model, evaluation.against}
    return frozenset(found)


def choices(
    project: Project, experiment: Experiment, run: Run, read: frozenset[str]
) -> list[Choice]:
    """Of each checkpoint of the run that is recorded and there; `read` as `read_by_judges` gives
    it."""
    layout, found = project.layout, []
    recorded = project.ledger.checkpoints(experiment.id, run.id)
    for item in recorded:
        path = _unit(layout, item)
        why = (
            "it lies outside the run's checkpoints"
            if path is None
            else _needed(project, experiment, run, item, read)
        )
        found.append(Choice(checkpoint=item, path=path or layout.root / item.path, why=why))
    found = [item for item in found if item.path.exists()]
    if (
        any(item.why is None for item in found)
        and experiment.status is not ExperimentStatus.DISCARDED
    ):
        found = _with_best_and_newest(project, experiment, run, found)
    found = [_unless_changed(layout, item) for item in found]
    stay = [layout.root / item.checkpoint.path for item in found if item.why is not None]
    return [_unless_shared(item, stay) for item in found]


def _unit(layout: Layout, item: Checkpoint) -> Path | None:
    """None for a path that is not below the run's folder of checkpoints, or that a link leads to:
    training names paths as it likes, and its rows are no checkpoint."""
    folder, path = layout.run(item.experiment, item.run, "checkpoints"), layout.root / item.path
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
    project: Project, experiment: Experiment, run: Run, item: Checkpoint, read: frozenset[str]
) -> str | None:
    if run.status not in FINAL_RUNS:
        return "its run has not ended"
    if item.id in read:
        return "a verdict or an evaluation read it, or it is a model that may be served"
    if experiment.status is ExperimentStatus.DISCARDED:
        return None
    if item.final:
        return "it is the final one of its run"
    if run.status is not RunStatus.COMPLETED:
        return (
            f"its run is {run.status} and may go on with `harness train {experiment.id} --resume`"
        )
    metrics = project.layout.run(experiment.id, run.id, "metrics")
    with contextlib.suppress(UsageError):
        if hash_file(metrics) == run.files.get("metrics"):
            return None
    return "the run's rows, which say what is best, are not what they were at its end"


def _with_best_and_newest(
    project: Project, experiment: Experiment, run: Run, found: Sequence[Choice]
) -> list[Choice]:
    epochs = [item.checkpoint.epoch for item in found if item.checkpoint.epoch is not None]
    best = _best_epochs(project, experiment, run, set(epochs))
    folder = project.layout.run(experiment.id, run.id, "checkpoints")
    named = {
        folder / name for name in (_pointed(folder / pointer) for pointer in _POINTERS) if name
    }
    changed = []
    for item in found:
        epoch = item.checkpoint.epoch
        if item.why is None and (item is found[-1] or (epochs and epoch == max(epochs))):
            item = replace(item, why="it is the newest of its run")
        elif item.why is None and (epoch in best or item.path in named):
            item = replace(item, why="it is the best of its run")
        changed.append(item)
    return changed


def _best_epochs(project: Project, experiment: Experiment, run: Run, saved: set[int]) -> set[int]:
    """Of the saved epochs those with the best logged value of the plan's metric; none where no
    value was logged."""
    try:
        objective = objective_of(plan_of(project, experiment))
    except RefusedError:  # a training program has no plan
        return set()
    values: dict[int, float] = {}
    for row in read_rows(project.layout.run(experiment.id, run.id, "metrics")).effective:
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


def _unless_changed(layout: Layout, item: Choice) -> Choice:
    if item.why is None and content_hash(layout.root, item.checkpoint.path) != item.checkpoint.id:
        return replace(item, why="it is not what was recorded, which is evidence")
    return item


def _unless_shared(item: Choice, stay: Sequence[Path]) -> Choice:
    shared = any(path.is_relative_to(item.path) or item.path.is_relative_to(path) for path in stay)
    return (
        replace(item, why="it holds one that stays, or lies in it")
        if item.why is None and shared
        else item
    )
