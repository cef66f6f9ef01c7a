"""Which checkpoints a run's rows tell of, and what stood there when the supervisor saw the row."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import Row
from harness.domain.records import Run
from harness.errors import UsageError
from harness.files import atomic_write, private_folder

_KEPT = ("path", "epoch", "final", "initial")
Shape = tuple[tuple[str, int, int, int], ...]
"""(name, inode, bytes, time of writing in ns) of each file: it differs once one was written."""


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
