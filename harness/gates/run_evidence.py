"""Gathers what one run left: files, rows, checkpoints."""

import os
import shlex
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import content_hash, linked, read_text
from harness.artifacts.locate import Layout
from harness.artifacts.looked import is_looking, remembered
from harness.artifacts.metrics_file import Metrics, Row, place, read_rows
from harness.artifacts.metrics_notes import notes_of, row_times
from harness.artifacts.next_ideas import Idea, ideas
from harness.artifacts.objects import ObjectDamagedError
from harness.artifacts.training_code import same_training
from harness.artifacts.training_status import read_status
from harness.domain.records import Run
from harness.errors import HarnessError
from harness.evaluation.scores import counted_runs
from harness.files import sha256_bytes, sha256_file
from harness.gates.evidence import CheckpointEvidence, FileEvidence, RunEvidence
from harness.gates.findings import finding
from harness.ledger.facts import Checkpoint
from harness.ledger.project import Project
from harness.plans.approved import plan_of


def run_evidence(project: Project, run: Run, counted: Sequence[Run]) -> RunEvidence:
    """`counted`: the experiment's runs that count."""
    layout = project.layout
    metrics, rows = read_evidence(
        layout, "metrics", layout.run(run.experiment, run.id, "metrics"), _judged_rows
    )
    status, reported = read_evidence(
        layout, "status", layout.run(run.experiment, run.id, "status"), read_status
    )
    evaluation, _ = read_evidence(
        layout, "evaluation", layout.run(run.experiment, run.id, "evaluation"), read_text
    )
    recorded = project.ledger.checkpoints(run.experiment, run.id)
    removed = {
        fact.checkpoint: at
        for fact, at in project.ledger.removed_checkpoints(run.experiment)
        if fact.run == run.id
    }
    return RunEvidence(
        run=run,
        metrics=metrics,
        status=status,
        evaluation=evaluation,
        **_of_rows(rows),
        status_run=reported.run if reported else None,
        status_state=reported.status if reported else None,
        checkpoints=tuple(
            CheckpointEvidence(
                checkpoint=checkpoint,
                actual=(
                    actual := content_hash(layout.root, checkpoint.path)
                    if checkpoint.final
                    else checkpoint.id
                ),
                earlier=_earlier(project, checkpoint, counted),
                removed=removed.get(checkpoint.id) if actual is None else None,
            )
            for checkpoint in recorded
        ),
        origins=tuple(_origin(project, *name.split("/")) for name in run.taken_from),
    )


def _judged_rows(path: Path) -> Metrics | None:
    """For looking the file's hash is enough: nothing is judged by the rows then."""
    return None if is_looking() else read_rows(path)


def _origin(project: Project, experiment: str, run: str) -> RunEvidence:
    counted = counted_runs(project.ledger.runs(experiment))
    return run_evidence(project, project.ledger.run(experiment, run), counted)


def _earlier(project: Project, checkpoint: Checkpoint, counted: Sequence[Run]) -> str | None:
    """The run that left these bytes first, unless it may have."""
    own = project.ledger.run(checkpoint.experiment, checkpoint.run)
    if own.taken_from:
        return None  # it says whose they are
    holders = project.ledger.with_checkpoint(checkpoint.id)
    first = holders[0]
    if (first.experiment, first.run) == (own.experiment, own.id):
        return None
    # All of the experiment that was first: where training draws nothing, its seeds are alike.
    theirs = [
        project.ledger.run(one.experiment, one.run)
        for one in holders
        if one.experiment == first.experiment
        and (one.experiment, one.run) != (own.experiment, own.id)
    ]
    if any(_may_be_equal(project, run, own, counted) for run in theirs):
        return None
    return f"{first.experiment}/{first.run}"


def _may_be_equal(project: Project, theirs: Run, own: Run, counted: Sequence[Run]) -> bool:
    # Another seed's run that counts is the finding `seed_ignored`. A run of another experiment that
    # trains by the same code, command and data with the same seed is expected to leave the same
    # bytes, whatever predict does with them.
    if theirs.experiment == own.experiment:
        return theirs.seed == own.seed or theirs.id in {run.id for run in counted}
    if (theirs.argv, theirs.data, theirs.seed) != (own.argv, own.data, own.seed):
        return False
    if theirs.code == own.code:
        return True
    plan = plan_of(project, project.ledger.experiment(own.experiment))
    predict = shlex.split(plan.content["oracle"]["predict"])
    objects = project.layout.objects
    try:
        first, second = (load_snapshot(objects, run.code) for run in (theirs, own))
        return same_training(first, second, own.argv, predict, objects)
    except ObjectDamagedError:
        return False


def _of_rows(metrics: Metrics | None) -> dict[str, Any]:
    if metrics is None:
        return {}
    starts = [row for row in metrics.rows if row.get("event") in ("start", "attempt")]
    return {
        "row_runs": frozenset(str(row.get("run", "")) for row in metrics.rows),
        "row_tokens": frozenset(sha256_bytes(str(row.get("token")).encode()) for row in starts),
        "epochs": sum(row.get("event") == "epoch" for row in metrics.rows),
        "without_checkpoint": longest_gap(metrics.rows, metrics.effective),
        "starts": len(starts),
        "times": row_times(metrics.rows),
        "notes": tuple(notes_of(metrics)),
    }


def longest_gap(rows: Iterable[Row], effective: Iterable[Row]) -> tuple[float, float] | None:
    """(first, last) of the longest stretch of logged epochs without a checkpoint, if any."""
    # A checkpoint is of the epoch that its row names, else of the epoch row before it; weights from
    # before the training are none. All rows count here: a resume does not undo what was saved.
    saved, latest = set(), None
    for row in rows:
        if row.get("event") == "epoch":
            latest = place(row)
        elif row.get("event") == "checkpoint" and row.get("initial") is not True:
            named = row.get("epoch")
            epoch = named if isinstance(named, int | float) else latest
            if epoch is not None:
                saved.add(epoch)
    longest: tuple[float, float] | None = None
    first: float | None = None
    logged = {
        at for row in effective if row.get("event") == "epoch" and (at := place(row)) is not None
    }
    for epoch in sorted(logged | saved):
        if epoch in saved:
            first = None
            continue
        first = epoch if first is None else first
        if longest is None or epoch - first > longest[1] - longest[0]:
            longest = first, epoch
    return longest


Parsed = TypeVar("Parsed")


def read_evidence(
    layout: Layout, name: str, path: Path, parse: Callable[[Path], Parsed]
) -> tuple[FileEvidence, Parsed | None]:
    """The file as evidence, and what `parse` made of it, if anything."""
    # A link's target can change unnoticed, and opening a pipe would wait for a writer.
    shown = layout.relative(path)
    link = linked(layout.root, path)
    if link is not None:
        problem = finding(
            "artifact_linked",
            f"{layout.relative(link)} is a symbolic link, so {shown} is no evidence.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(problem,)), None
    try:
        status = os.lstat(path)
    except OSError:
        return FileEvidence(name=name, path=shown, sha256=None), None
    if not stat.S_ISREG(status.st_mode):
        problem = finding(
            "artifact_unreadable",
            f"{shown} is not a regular file.",
            "Put a regular file in its place.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(problem,)), None
    return _regular(name, shown, path, parse, status.st_size)


def _regular(
    name: str, shown: str, path: Path, parse: Callable[[Path], Parsed], size: int
) -> tuple[FileEvidence, Parsed | None]:
    try:
        digest = remembered(f"hash {path}", [path], lambda: sha256_file(path))
        if not size:
            problem = finding("artifact_empty", f"{shown} is empty.")
            return FileEvidence(name=name, path=shown, sha256=digest, problems=(problem,)), None
        return FileEvidence(name=name, path=shown, sha256=digest), parse(path)
    except OSError as error:
        problem = finding(
            "artifact_unreadable",
            f"{shown} cannot be read: {error.strerror}.",
            "Check its permissions.",
        )
        return FileEvidence(name=name, path=shown, sha256=None, problems=(problem,)), None
    except HarnessError as error:
        problem = finding("artifact_unreadable", f"{shown}: {error.message}", error.hint)
        return FileEvidence(name=name, path=shown, sha256=digest, problems=(problem,)), None


def next_ideas(root: Path, path: Path) -> list[Idea]:
    """The ideas of the file; none when it is absent, a link, or cannot be read."""
    if linked(root, path) is not None:
        return []
    try:
        return ideas(read_text(path))
    except HarnessError:
        return []


def next_idea(root: Path, path: Path) -> str | None:
    """The first of them: shown, never judged."""
    listed = next_ideas(root, path)
    return listed[0].text if listed else None
