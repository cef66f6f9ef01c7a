"""Checkpoints on disk: one folder each, complete or absent. Needs no torch.

    checkpoints/epoch-0009/            model.pt  training.pt  COMPLETE
    checkpoints/latest, best           the name of a folder, replaced by rename

COMPLETE is written last, after the files are on the disk, and holds their sizes and SHA-256. A
folder without it, or with other bytes, is not a checkpoint.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import RunError
from harness.files import (
    atomic_write,
    pretty_json,
    remove_leftovers,
    sha256_file,
    sync_directory,
)

MARKER = "COMPLETE"
LATEST, BEST = "latest", "best"
_PARTIAL = ".partial"
_OURS = re.compile(r"epoch-\d+(-step-\d+)?(\.partial|\.old)?")
Writers = Mapping[str, Callable[[Path], None]]
"""File name -> function that writes it at a path."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """One complete checkpoint."""

    folder: Path
    epoch: int
    step: int
    done: bool
    """Whether the epoch was over."""
    value: float | None
    """The plan's metric; None when not given or not finite."""
    kept: bool
    """Due by the cadence, so never removed."""
    files: Mapping[str, Mapping[str, Any]]

    @property
    def order(self) -> tuple[int, bool, int]:
        return self.epoch, self.done, self.step

    def problem(self) -> str | None:
        """What is wrong with its bytes; None when they are as written."""
        for name, expected in self.files.items():
            path = self.folder / name
            if not path.is_file() or path.is_symlink() or path.stat().st_size != expected["bytes"]:
                return f"{name} is missing or incomplete"
            if sha256_file(path) != expected["sha256"]:
                return f"{name} has other bytes than were saved"
        return None


class CheckpointStore:
    """The checkpoints below `root`; one process writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def complete(self) -> list[Saved]:
        """Checkpoints with a readable marker, oldest first."""
        checkpoints = []
        for marker in self.root.glob(f"*/{MARKER}"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                checkpoints.append(_read(marker))
        return sorted(checkpoints, key=lambda saved: saved.order)

    def save(self, name: str, writers: Writers, *, described: Mapping[str, Any]) -> Saved:
        """Write one checkpoint and point `latest` at it. On any error older checkpoints and the
        pointer are unchanged. Raises RunError (checkpoint_not_saved)."""
        target, building = self.root / name, self.root / f"{name}{_PARTIAL}"
        try:
            _remove(building)
            building.mkdir(parents=True)
            for file, write in writers.items():
                write(building / file)
                _sync(building / file)
            files = {file: _size_and_hash(building / file) for file in writers}
            atomic_write(building / MARKER, pretty_json({**described, "files": files}))
            # The same epoch again: the old one is set aside, and removed only after the new one is
            # in place. After a kill in between, `sweep` brings back the one that is complete.
            if target.exists():
                _remove(self._aside(target))
                target.rename(self._aside(target))
            building.rename(target)
            sync_directory(self.root)
            self.point(LATEST, name)
            _remove(self._aside(target))
        except (OSError, RuntimeError) as error:
            # RuntimeError: torch's writer raises it on a full disk.
            with contextlib.suppress(OSError):
                _remove(building)
            raise RunError(
                f"The checkpoint {name} could not be saved: {_reason(error)}; {_free(self.root)}"
                " are free. Earlier checkpoints are unchanged.",
                hint="Free disk space, then resume with `harness train EXP --resume`.",
                code="checkpoint_not_saved",
            ) from error
        except BaseException:
            _remove(building)
            raise
        return _read(target / MARKER)

    def point(self, pointer: str, name: str) -> None:
        atomic_write(self.root / pointer, f"{name}\n")

    def sweep(self) -> list[str]:
        """Remove what a killed save left; the names of the folders that were no checkpoint."""
        if not self.root.is_dir():
            return []
        remove_leftovers([self.root / LATEST, self.root / BEST])
        incomplete = []
        for folder in sorted(self.root.glob("epoch-*")):
            if not _OURS.fullmatch(folder.name) or not folder.is_dir() or folder.is_symlink():
                continue
            if folder.name.endswith(_PARTIAL):
                _remove(folder)
                incomplete.append(folder.name.removesuffix(_PARTIAL))
            elif folder.name.endswith(".old"):
                self._settle(folder)
            elif not (folder / MARKER).is_file():
                # Renamed, not removed: its files may be all that is left of the training.
                aside = next(path for path in _numbered(folder) if not path.exists())
                folder.rename(aside)
                incomplete.append(folder.name)
        return incomplete

    def remove(self, saved: Saved) -> None:
        # The marker first: what a kill leaves behind is then no checkpoint.
        (saved.folder / MARKER).unlink(missing_ok=True)
        saved.folder.rename(gone := saved.folder.with_name(f"{saved.folder.name}{_PARTIAL}"))
        _remove(gone)

    def _settle(self, old: Path) -> None:
        """Bring back what a killed save had set aside, unless the new one is complete."""
        target = old.with_name(old.name.removesuffix(".old"))
        if (target / MARKER).is_file() or not (old / MARKER).is_file():
            _remove(old)
        else:
            old.rename(target)

    @staticmethod
    def _aside(target: Path) -> Path:
        return target.with_name(f"{target.name}.old")


def _read(marker: Path) -> Saved:
    described = json.loads(marker.read_text("utf-8"))
    names = ("epoch", "step", "done", "value", "kept", "files")
    return Saved(folder=marker.parent, **{name: described[name] for name in names})


def _size_and_hash(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_file(path)}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _numbered(folder: Path) -> Iterator[Path]:
    return (folder.with_name(f"{folder.name}.incomplete-{number}") for number in range(1, 10_000))


def _reason(error: OSError | RuntimeError) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return (text or str(error).strip().splitlines()[0])[:200]


def _free(folder: Path) -> str:
    while not folder.exists():
        folder = folder.parent
    return f"{shutil.disk_usage(folder).free / 1e6:.1f} MB"
