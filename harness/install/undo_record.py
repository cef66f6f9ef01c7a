"""Originals of the files that an installation wrote, kept so that removal restores every byte."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ConfigError
from harness.files import atomic_write, pretty_json, private_folder, sha256_bytes

_RECORD = "record.json"


@dataclass(kw_only=True)
class UndoEntry:
    before: str | None
    """SHA-256 of the original, kept beside the record; None if there was none."""
    written: list[str]
    """SHA-256 of every version that we wrote, newest last."""


@dataclass(kw_only=True)
class Undo:
    """The record of one root (each worktree has its own); saved before any file is written."""

    folder: Path
    files: dict[str, UndoEntry] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    """Folders that did not exist, relative to the root."""

    def remember(
        self, path: str, before: bytes | None, after: bytes, *, base: bytes | None
    ) -> None:
        """Record that `path` gets `after`. `base` is `before` without our entries."""
        # If somebody else wrote there since we did, `base` is the new original: the old one would
        # undo their edit too.
        entry = self.files.get(path)
        digest = None if before is None else sha256_bytes(before)
        if entry is None or (digest not in entry.written and digest != entry.before):
            entry = UndoEntry(before=self._keep(base), written=[])
            self.files[path] = entry
        if (now := sha256_bytes(after)) not in entry.written:
            entry.written.append(now)

    def wrote(self, path: str, data: bytes) -> bool:
        """Whether we wrote `data` at `path`."""
        return path in self.files and sha256_bytes(data) in self.files[path].written

    def original(self, path: str) -> bytes | None:
        """The bytes at `path` before us. Raises ConfigError when the copy is damaged or missing."""
        digest = self.files[path].before
        if digest is None:
            return None
        copy = self.folder / digest
        data = copy.read_bytes() if copy.is_file() else b""
        if sha256_bytes(data) != digest:
            raise ConfigError(
                f"The copy of {path} at {copy} is damaged or missing.",
                hint=f"Remove the harness's entries from {path} by hand, or restore it from git.",
                code="undo_damaged",
            )
        return data

    def save(self) -> None:
        document = {
            "files": {
                path: {"before": entry.before, "written": entry.written}
                for path, entry in self.files.items()
            },
            "folders": self.folders,
        }
        private_folder(self.folder)
        atomic_write(self.folder / _RECORD, pretty_json(document), mode=0o600)

    def paths(self) -> list[Path]:
        """Every file of the record."""
        kept = [
            self.folder / entry.before for entry in self.files.values() if entry.before is not None
        ]
        return [self.folder / _RECORD, *kept]

    def forget(self) -> None:
        """Remove the record, once everything is put back."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _keep(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        digest = sha256_bytes(data)
        if not (self.folder / digest).exists():
            private_folder(self.folder)
            atomic_write(self.folder / digest, data, mode=0o600)
        return digest


def undo_of(state: Path, root: Path) -> Undo:
    """The record of the installation at `root`, or an empty one. Raises ConfigError if damaged."""
    folder = state / "undo" / sha256_bytes(str(root).encode("utf-8", "surrogateescape"))[:16]
    path = folder / _RECORD
    if not path.is_file():
        return Undo(folder=folder)
    try:
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
        files = {
            str(name): UndoEntry(before=entry["before"], written=list(entry["written"]))
            for name, entry in value["files"].items()
        }
        return Undo(folder=folder, files=files, folders=[str(name) for name in value["folders"]])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path}, the record of the files before the installation, is damaged: {error}.",
            hint="Move it away; then `harness init --remove` removes our entries and files.",
            code="undo_damaged",
        ) from error
