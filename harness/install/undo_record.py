"""What stood where an installation wrote: kept in the state directory, so that it can be taken out
byte for byte."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ConfigError
from harness.files import atomic_write, pretty_json, sha256_bytes

_RECORD = "record.json"


@dataclass(kw_only=True)
class UndoEntry:
    before: str | None
    """SHA-256 of the bytes that were there, kept beside the record; None when nothing was."""
    written: list[str]
    """SHA-256 of everything that we wrote there since, newest last."""


@dataclass(kw_only=True)
class Undo:
    """The record of one root; several worktrees of a project have one each. Saved before any file
    is written."""

    folder: Path
    files: dict[str, UndoEntry] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    """Folders that did not exist, relative to the root."""

    def remember(
        self, path: str, before: bytes | None, after: bytes, *, base: bytes | None
    ) -> None:
        """That `after` is going to stand at `path`. `base` is `before` without anything of ours:
        what is put back when somebody else wrote there since we did, or when nothing is known."""
        entry = self.files.get(path)
        digest = None if before is None else sha256_bytes(before)
        if entry is None or (digest not in entry.written and digest != entry.before):
            entry = UndoEntry(before=self._keep(base), written=[])
            self.files[path] = entry
        if (now := sha256_bytes(after)) not in entry.written:
            entry.written.append(now)

    def wrote(self, path: str, data: bytes) -> bool:
        """Whether `data` is something that we put at `path`."""
        return path in self.files and sha256_bytes(data) in self.files[path].written

    def original(self, path: str) -> bytes | None:
        """The bytes that were at `path` before us. Raises ConfigError when the copy is damaged or
        gone."""
        digest = self.files[path].before
        if digest is None:
            return None
        copy = self.folder / digest
        data = copy.read_bytes() if copy.is_file() else b""
        if sha256_bytes(data) != digest:
            raise ConfigError(
                f"The copy of {path} at {copy} is damaged or gone.",
                hint=f"Take the harness's entries out of {path} by hand, or restore it from git.",
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
            atomic_write(self.folder / digest, data, mode=0o600)
        return digest


def undo_of(state: Path, root: Path) -> Undo:
    """The record of the installation at `root`, empty when there is none. Raises ConfigError when
    it is damaged."""
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
            f"{path}, which says what stood in the repository before the harness, is damaged:"
            f" {error}.",
            hint=(
                "Move it away; `harness init --remove` then takes the harness's own entries and"
                " files out."
            ),
            code="undo_damaged",
        ) from error
