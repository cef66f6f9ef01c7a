"""Gathers what one run left: files, rows, checkpoints."""

import math
import os
import shlex
import stat
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import content_hash, linked, read_text
from harness.artifacts.held_rows import Metrics
from harness.artifacts.locate import Layout
from harness.artifacts.looked import is_looking, remembered
from harness.artifacts.metrics_file import Row, place
from harness.artifacts.metrics_notes import MetricsNotes, TimesOfRows
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

_MOST_WRITERS = 100


def run_evidence(project: Project, run: Run, counted: Sequence[Run]) -> RunEvidence:
    """`counted`: the experiment's runs that count."""
    layout = project.layout
    metrics, of_rows = read_evidence(
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
        **(of_rows or {}),
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


def _judged_rows(path: Path) -> dict[str, Any] | None:
    """For looking the file's hash is enough: nothing is judged by the rows then."""
    return None if is_looking() else _of_rows(path)


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


def _of_rows(path: Path) -> dict[str, Any]:
    notes, times, cadence, written = MetricsNotes(), TimesOfRows(), Cadence(), _Writers()

    def look(row: Row) -> None:
        for one in (notes, times, cadence, written):
            one.look(row)

    metrics = Metrics(path, look=look)
    for row in metrics.effective():
        notes.take(row)
        cadence.take(row)
    return {
        "row_runs": frozenset(written.runs),
        "row_tokens": frozenset(written.tokens),
        "epochs": written.epochs,
        "without_checkpoint": cadence.longest(),
        "starts": written.starts,
        "times": times.times(),
        "notes": tuple(notes.of(metrics)),
    }


class _Writers:
    """Which runs wrote the rows, and with which tokens."""

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.tokens: set[str] = set()
        self.starts = self.epochs = 0

    def look(self, row: Row) -> None:
        event = row.get("event")
        self.epochs += event == "epoch"
        if len(self.runs) < _MOST_WRITERS:
            self.runs.add(str(row.get("run", "")))
        if event in ("start", "attempt"):
            self.starts += 1
            if len(self.tokens) < _MOST_WRITERS:
                self.tokens.add(sha256_bytes(str(row.get("token")).encode()))


class Cadence:
    """The stretches of logged epochs between two checkpoints."""

    # A checkpoint is of the epoch that its row names, else of the epoch row before it; weights from
    # before the training are none. All rows count here: a resume does not undo what was saved.

    def __init__(self) -> None:
        self._saved = array("d")
        self._latest: float | None = None
        self._first = self._last = array("d")
        """Of the logged epochs before each saved one, and after the last; NaN: none."""
        self._sorted = False

    def look(self, row: Row) -> None:
        """Each row of the file."""
        if row.get("event") == "epoch":
            self._latest = place(row)
        elif row.get("event") == "checkpoint" and row.get("initial") is not True:
            named = row.get("epoch")
            epoch = named if isinstance(named, int | float) else self._latest
            if epoch is not None and abs(epoch) < 2**63:
                self._saved.append(epoch)

    def take(self, row: Row) -> None:
        """After all looks each row that holds."""
        self._sort()
        at = place(row) if row.get("event") == "epoch" else None
        if at is None:
            return
        index = bisect_left(self._saved, at)
        if index < len(self._saved) and self._saved[index] == at:
            return
        # min and max leave a NaN that stands second.
        self._first[index] = min(at, self._first[index])
        self._last[index] = max(at, self._last[index])

    def longest(self) -> tuple[float, float] | None:
        """(first, last) of the longest of them, the earliest of equal ones; None without any."""
        self._sort()
        longest: tuple[float, float] | None = None
        for first, last in zip(self._first, self._last, strict=True):
            if first <= last and (longest is None or last - first > longest[1] - longest[0]):
                longest = first, last
        return None if longest is None else (_whole(longest[0]), _whole(longest[1]))

    def _sort(self) -> None:
        if self._sorted:
            return
        self._saved, self._sorted = array("d", sorted(set(self._saved))), True
        self._first = array("d", [math.nan]) * (len(self._saved) + 1)
        self._last = array("d", self._first)


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


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
