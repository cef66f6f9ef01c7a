"""What an open experiment still needs of its training: `harness try` goes on from there.

A training is not repeated because something else changed: weights are kept where the code that
trained them is as it was.
"""

import shlex
from collections.abc import Sequence
from enum import StrEnum

from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import read_text
from harness.artifacts.front_matter import read_yaml
from harness.artifacts.objects import ObjectDamagedError
from harness.artifacts.training_code import loaded_by_name, run_by, same_training
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.evaluation.predict_sources import changed_predict
from harness.evaluation.scores import counted_runs, started
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, plan_of, plan_seeds
from harness.runs.train_job import code_now


class Due(StrEnum):
    TRAIN = "train"
    """At least one seed has no completed run of this code and command."""
    TAKE = "take"
    """Only predict was changed: the same weights, with the code as it is now."""
    NOTHING = "nothing"


def command_of(project: Project, experiment: str) -> list[str] | None:
    """What its newest run was started with; before the first run what its config.yaml says. None:
    the plan's training.entry."""
    runs = project.ledger.runs(experiment)
    if runs:
        return list(started(runs)[-1].argv)
    path = project.layout.experiment(experiment, "config")
    try:
        said = read_yaml(read_text(path), where=path.name).data.get("command")
        return shlex.split(said) if isinstance(said, str) else None
    except (HarnessError, ValueError):
        return None  # it is not there, or the gate names it


def due(project: Project, experiment: str, argv: Sequence[str]) -> Due:
    """What its training needs before it can be evaluated."""
    record = project.ledger.experiment(experiment)
    approved = plan_of(project, record)
    runs = counted_runs(project.ledger.runs(experiment))
    if not _all_completed(runs, plan_seeds(approved, record)) or list(runs[-1].argv) != list(argv):
        return Due.TRAIN
    if runs[-1].data != data_hashes(approved):
        return Due.TRAIN
    now, objects = code_now(project, approved), project.layout.objects
    if now.hash == runs[-1].code:
        return Due.NOTHING
    predict = shlex.split(approved.content["oracle"]["predict"])
    try:
        before = load_snapshot(objects, runs[-1].code)
        same = same_training(before, now, argv, predict, objects)
        named = loaded_by_name(before, now, argv, objects) - run_by(now, predict, objects)
    except ObjectDamagedError:
        return Due.TRAIN
    if not same or named:
        return Due.TRAIN
    return Due.TAKE if changed_predict(project, experiment) else Due.NOTHING


def _all_completed(runs: Sequence[Run], seeds: Sequence[int]) -> bool:
    done = {run.seed for run in runs if run.status is RunStatus.COMPLETED}
    return done.issuperset(seeds)
