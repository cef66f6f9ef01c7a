"""Which checkpoints a run's rows tell of, what stood there when the supervisor saw the row, and its
hash, so that a later change is seen, and that what a dead supervisor left can be told from what
was put there since.

Hashed in a thread: neither rows nor limits wait for a large file, and the training is not held up.
"""

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.artifacts.content import hash_path
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import Row
from harness.domain.records import Run
from harness.errors import UsageError
from harness.files import atomic_write, private_folder, walk_files
from harness.ledger.facts import CheckpointRecorded
from harness.ledger.project import Project

_KEPT = ("path", "epoch", "final", "initial")
Shape = tuple[tuple[str, int, int, int], ...]
"""(name, inode, bytes, time of writing in ns) of each file: it differs once one was written."""
MOST_FILES = 2_000
"""Of which a look takes the shape, of all new checkpoints together."""
_MOST_FACTS = 20
"""Recorded at one look; of a path that is told again and again, only the newest is."""
_WRONG = (UsageError, OSError, ValueError, RuntimeError)
"""What a hostile name or folder raises; `close_run` says what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Telling:
    number: int
    """Which of the run's checkpoint rows, from 1, those of earlier attempts included."""
    name: str
    """The path that the row gives, relative to the run's folder."""
    row: Row


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the supervisor knows of a path's newest telling."""

    number: int
    sha256: str | None
    """Content hash; None when it was not hashed before it was told again, written or closed."""
    shape: Shape | None
    """None where it was not looked at: told to an earlier supervisor, or a folder of many files."""


def note_end(layout: Layout, run: Run) -> None:
    """Keep, out of the run's reach, that the supervisor saw the end row of this attempt: one that
    is added after its death completes nothing."""
    private_folder(layout.ends)
    atomic_write(layout.ends / run.token, str(run.attempt), durable=False, mode=0o600)


def end_noted(layout: Layout, run: Run) -> bool:
    try:
        return (layout.ends / run.token).read_text("ascii") == str(run.attempt)
    except (OSError, ValueError):
        return False


class Tellings:
    """Fed with the checkpoint rows of a run, those of earlier attempts first."""

    def __init__(self) -> None:
        self.count = 0
        self.newest: dict[str, Telling] = {}
        """The newest of each name, in the order of the rows."""

    def take(self, row: Row) -> Telling:
        self.count += 1
        name = str(row.get("path"))
        # Only what is asked for later: a run may tell of a checkpoint with every row.
        kept = {key: row[key] for key in _KEPT if key in row}
        self.newest.pop(name, None)  # so that a path reported again moves to the end
        told = self.newest[name] = Telling(number=self.count, name=name, row=kept)
        return told


def final(latest: dict[str, Telling]) -> Telling | None:
    """The one that evaluations use: the last that was told as final, else the last."""
    told = list(latest.values())
    finals = [telling for telling in told if telling.row.get("final") is True] or told
    return finals[-1] if finals else None


def place_of(folder: Path, name: str) -> Path:
    """Where a checkpoint lies. Names are hostile: raises UsageError, ValueError, RuntimeError or
    OSError."""
    if "\ufffd" in name:  # the row reader puts it in place of what no fact can hold
        raise UsageError(
            f"{name} is no name that can be recorded: parts of it are no text.",
            hint="Name checkpoints in plain text.",
        )
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
        raise UsageError(
            f"{name} lies outside the run's folder.", hint="Save it below log.checkpoint_dir."
        )
    return path


def epoch_of(row: Row) -> int | None:
    # The ledger's columns hold 64 bits; a reported epoch can be any JSON number.
    value = row.get("epoch")
    return value if isinstance(value, int) and abs(value) < 2**53 else None


def shape_of(path: Path, *, most: int) -> Shape | None:
    """None for more than `most` files. Raises OSError."""
    if not path.is_dir():
        return (_shape(path, ""),)
    found: list[tuple[str, int, int, int]] = []
    for folder, directories, names in os.walk(path):
        if len(found) + len(directories) + len(names) > most:
            return None
        here = Path(folder)
        links = [name for name in directories if (here / name).is_symlink()]
        found += [
            _shape(here / name, (here / name).relative_to(path).as_posix())
            for name in (*names, *links)
        ]
    return tuple(sorted(found))


def _shape(path: Path, name: str) -> tuple[str, int, int, int]:
    status = path.lstat()
    return name, status.st_ino, status.st_size, status.st_mtime_ns


class _GivenUpError(Exception):
    """The file is told again, or the run has ended: its hash is not wanted any more."""


@dataclass(frozen=True, kw_only=True)
class _Job:
    telling: Telling
    shape: Shape | None


@dataclass(frozen=True, kw_only=True)
class _Hashed:
    job: _Job
    sha256: str
    bytes: int


class CheckpointWatch:
    """Of one attempt. All but the hashing is called by the supervisor's own thread."""

    def __init__(self, project: Project, run: Run) -> None:
        self._project, self._run = project, run
        self._folder = project.layout.run(run.experiment, run.id)
        self._tellings = Tellings()
        self._known: dict[str, tuple[int, str]] | None = None
        self._seen: dict[str, Seen] = {}
        self._newest: dict[str, _Job] = {}
        self._due: dict[str, _Job] = {}
        self._hashed: dict[str, _Hashed] = {}
        self._changed = threading.Condition()
        self._over = False
        self._thread: threading.Thread | None = None

    def take(self, rows: Sequence[Row]) -> None:
        """Note what new rows tell of, and record what was hashed since the last call."""
        told = {telling.name: telling for telling in self._numbered(rows)}
        left = MOST_FILES
        for name, telling in told.items():
            shape = self._shape(name, left)
            left -= len(shape or ())
            self._put(_Job(telling=telling, shape=shape))
        if any(row.get("event") == "end" for row in rows):
            note_end(self._project.layout, self._run)
        self._record()

    def end(self) -> dict[str, Seen]:
        """After the run's processes have ended: stop hashing; what is known of each path."""
        with self._changed:
            self._over = True
            self._due.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._record(most=None)
        return dict(self._seen)

    # The supervisor's side

    def take_earlier(self, rows: Iterable[Row]) -> None:
        """The rows of earlier attempts, before any others."""
        if self._known is None:
            self._known = self._project.ledger.tellings(self._run.experiment, self._run.id)
        for telling in self._numbered(rows):
            number, sha256 = self._known.get(self._path(telling.name), (0, None))
            same = number == telling.number
            self._seen[telling.name] = Seen(
                number=telling.number, sha256=sha256 if same else None, shape=None
            )

    def _numbered(self, rows: Iterable[Row]) -> list[Telling]:
        told = [row for row in rows if row.get("event") == "checkpoint"]
        return [self._tellings.take(row) for row in told]

    def _path(self, name: str) -> str:
        return PurePosixPath(self._project.layout.relative(self._folder), name).as_posix()

    def _shape(self, name: str, most: int) -> Shape | None:
        try:
            return shape_of(place_of(self._folder, name), most=most) if most > 0 else None
        except _WRONG:
            return None

    def _put(self, job: _Job) -> None:
        name = job.telling.name
        self._seen[name] = Seen(number=job.telling.number, sha256=None, shape=job.shape)
        with self._changed:
            self._newest[name] = job
            self._hashed.pop(name, None)
            self._due.pop(name, None)  # the order is that of the newest telling
            self._due[name] = job
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)
            self._thread.start()

    def _record(self, *, most: int | None = _MOST_FACTS) -> None:
        with self._changed:
            done = [self._hashed.pop(name) for name in list(self._hashed)[:most]]
        for hashed in done:
            telling = hashed.job.telling
            self._seen[telling.name] = Seen(
                number=telling.number, sha256=hashed.sha256, shape=hashed.job.shape
            )
            self._project.ledger.append(
                CheckpointRecorded(
                    experiment=self._run.experiment,
                    run=self._run.id,
                    checkpoint=hashed.sha256,
                    path=self._path(telling.name),
                    bytes=hashed.bytes,
                    epoch=epoch_of(telling.row),
                    final=False,
                    told=telling.number,
                )
            )

    # The thread's side

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                hashed = self._hash(job)
            except (_GivenUpError, *_WRONG):
                continue
            with self._changed:
                if hashed is not None and self._wanted(job):
                    self._hashed[job.telling.name] = hashed

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._due and not self._over:
                self._changed.wait()
            return None if self._over else self._due.pop(next(iter(self._due)))

    def _wanted(self, job: _Job) -> bool:
        return not self._over and self._newest[job.telling.name] is job

    def _hash(self, job: _Job) -> _Hashed | None:
        """None when it was written since its row was seen: either the training tells of it again,
        or that is a change."""

        def go_on() -> None:
            if not self._wanted(job):
                raise _GivenUpError

        path = place_of(self._folder, job.telling.name)
        sha256 = hash_path(path, at_block=go_on)
        if job.shape is not None and shape_of(path, most=len(job.shape) + 1) != job.shape:
            return None
        return _Hashed(job=job, sha256=sha256, bytes=size_of(path))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return (
        path.stat().st_size
        if path.is_file()
        else sum(file.lstat().st_size for file in walk_files(path))
    )
