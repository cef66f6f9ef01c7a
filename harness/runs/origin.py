"""Whether a final checkpoint was made inside its run, and was no file that was there before.

Checked when the run is closed. A file that was moved or linked in is older than the run's folder:
its birth tells it, however its times were set. An exact copy is found by its bytes; one with a byte
changed is not. Where the file system keeps no birth, the time of writing stands in for it: then a
file that was moved in with a new time, or within two seconds of its writing, is not found.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from harness.artifacts.birth import birth_time
from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import hash_file
from harness.artifacts.objects import ObjectDamagedError
from harness.clock import parse_iso
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.records import Run
from harness.errors import HarnessError
from harness.files import walk_files
from harness.ledger.facts import CheckpointRecorded
from harness.ledger.project import Project

_SLACK_S = 2.0
"""What the coarsest file systems round times to, and by how much the ledger's clock and a file
system's may differ."""
_SMALLEST = 32
"""Bytes; less says too little to tell one file from another."""
_LEAST_EPOCHS = 3
"""Two that are the same may be the best epoch and its copy."""
_MOST_FILES = 200_000
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})


def origin_findings(
    project: Project,
    run: Run,
    final: CheckpointRecorded,
    began: float | None,
    ending: list[Finding],
) -> list[Finding]:
    """`checkpoint_out_of_window` or `checkpoint_known` for a checkpoint that the run did not make.

    `began` is the file system's time of the run's folder as it was made; None for one that an
    earlier process made. What an earlier run of the same seed left is its own: that training went
    on or was repeated.
    """
    first = project.ledger.first_with_checkpoint(final.checkpoint)
    if _own(project, run, final.checkpoint) or (
        first is not None and first.experiment != run.experiment
    ):
        return []  # the second is `checkpoint_copied`, which the gate finds
    since = _folder_made(project, run) if began is None else began
    path = project.layout.root / final.path
    files = [
        file for file in (walk_files(path) if path.is_dir() else [path]) if not file.is_symlink()
    ]
    name = f"{run.experiment}/{run.id}"
    data = {"run": name, "path": final.path}
    known = _known(project, run, files, since)
    if known is not None:
        return [
            Finding(
                "checkpoint_known",
                f"The final checkpoint of {name} has the bytes of {known}, which stood there before"
                " the run.",
                "Train, and save what came of it: weights that a run starts from are not its"
                " result.",
                {**data, "known": known},
            )
        ]
    old = _older(files, since)
    if old is not None and not any(finding.code == CLOCK_SET for finding in ending):
        return [
            Finding(
                "checkpoint_out_of_window",
                f"{project.layout.relative(old[0])} was there {old[1]:.3g} s before {name} began.",
                "Train, and save the checkpoint while it trains: a file that was moved, linked or"
                " copied in is no result.",
                data,
            )
        ]
    return []


def _folder_made(project: Project, run: Run) -> float:
    """When the run's folder was made. One that was put in its place may be older: the run was
    registered before its folder was made."""
    registered = parse_iso(run.registered_at).timestamp()
    born = birth_time(project.layout.run(run.experiment, run.id))
    return registered if born is None else max(born, registered - _SLACK_S)


def _older(files: Sequence[Path], since: float) -> tuple[Path, float] | None:
    """A file of the checkpoint that was there before `since`, and by how many seconds."""
    births = [birth_time(file) for file in files]
    known = [birth for birth in births if birth is not None]
    if len(known) == len(files):
        ages = [(file, since - birth) for file, birth in zip(files, known, strict=True)]
        old = [(file, age) for file, age in ages if age > 0]
        return max(old, key=lambda one: one[1]) if old else None
    written = {file: file.lstat().st_mtime for file in files}
    newest = max(written, key=lambda file: written[file])
    return (newest, since - written[newest]) if written[newest] < since - _SLACK_S else None


def untrained_findings(
    final: CheckpointRecorded, saved: Sequence[CheckpointRecorded], initial: Collection[str]
) -> list[Finding]:
    """`checkpoint_untrained` when the final checkpoint equals one that the run started from
    (`initial`: paths); the note `weights_unchanged` when all of three or more epochs are equal."""
    name = f"{final.experiment}/{final.run}"
    if any(fact.path in initial and fact.checkpoint == final.checkpoint for fact in saved):
        return [
            Finding(
                "checkpoint_untrained",
                f"The final checkpoint of {name} has the bytes of the weights that it started"
                " from.",
                "Find out why the training changes nothing (the optimizer's step, frozen layers),"
                " then train again.",
                {"run": name},
            )
        ]
    epochs = {fact.epoch for fact in saved}
    if len(epochs) < _LEAST_EPOCHS or {fact.checkpoint for fact in saved} != {final.checkpoint}:
        return []
    message = f"All {len(saved)} checkpoints of {name} ({len(epochs)} epochs) have the same bytes."
    return [
        Finding(
            "weights_unchanged",
            message,
            "Find out whether the training changes anything.",
            {"run": name},
        )
    ]


def _own(project: Project, run: Run, content: str) -> bool:
    seeds = {other.id: other.seed for other in project.ledger.runs(run.experiment)}
    checkpoints = project.ledger.checkpoints(run.experiment)
    makers = {checkpoint.run for checkpoint in checkpoints if checkpoint.id == content}
    return any(maker != run.id and seeds[maker] == run.seed for maker in makers)


def _known(project: Project, run: Run, files: list[Path], since: float) -> str | None:
    """A file with the bytes of the checkpoint's last file, when all of them existed before."""
    left: dict[str, int] = {}
    for file in files:
        if (size := file.lstat().st_size) >= _SMALLEST:
            left[hash_file(file)] = size
    if not left or run.data.get("train") in left:  # a memory of the training rows is a model, too
        return None
    last = None
    for name, digest in _before(project, run, set(left.values()), since):
        if left.pop(digest, None) is not None:
            last = name
        if not left:
            return last
    return None


def _before(
    project: Project, run: Run, sizes: set[int], since: float
) -> Iterator[tuple[str, str]]:
    """(name, SHA-256) of files of these sizes that existed when the run began."""
    with contextlib.suppress(ObjectDamagedError):  # the evaluation says so: code_unavailable
        yield from load_snapshot(project.layout.objects, run.code).files.items()
    for name in project.settings.known_checkpoints:
        top = project.layout.root / name
        for path in walk_files(top) if top.is_dir() else [top]:
            yield from _hashed(path, name, sizes, float("inf"))
    for path in _project_files(project, run):
        yield from _hashed(path, project.layout.relative(path), sizes, since)


def _hashed(path: Path, name: str, sizes: set[int], since: float) -> Iterator[tuple[str, str]]:
    try:
        status = path.lstat()
        # Not by its birth: the run may have written what it made over an older file. No program
        # can set ctime, so an older one proves that these bytes stood there before the run.
        if stat.S_ISREG(status.st_mode) and status.st_size in sizes and status.st_ctime < since:
            yield name, hash_file(path)
    except (OSError, HarnessError):
        return  # gone meanwhile, or nobody may read it


def _project_files(project: Project, run: Run) -> Iterator[Path]:
    """Of the project without its environments, and of other experiments; at most _MOST_FILES."""
    root, layout = project.layout.root, project.layout
    own, control = layout.experiment(run.experiment), layout.project("checklist").parent
    looked = 0
    for folder, directories, names in os.walk(root):
        here = Path(folder)
        directories[:] = sorted(
            name
            for name in directories
            if name not in _SKIPPED
            and here / name != own
            and (here != control.parent or here / name == control)
        )
        for name in sorted(names):
            looked += 1
            if looked > _MOST_FILES:
                return
            yield here / name
