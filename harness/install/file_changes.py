"""The changes of an installation to a repository's files: shown, or made."""

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import RefusedError, UsageError
from harness.files import atomic_write

_SHOWN_LINES = 12


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file, relative to the root. None is a file that is not there."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "change"

    def text(self) -> str:
        """The change as a diff; of a long new or deleted file only its length."""
        before, after = _lines(self.before), _lines(self.after)
        whole = before or after
        if self.action != "change" and len(whole) > _SHOWN_LINES:
            return f"{self.action} {self.path} ({len(whole)} lines)"
        lines = difflib.unified_diff(before, after, self.path, self.path, lineterm="")
        return "\n".join([f"{self.action} {self.path}", *(line for line in list(lines)[2:])])


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A file that is edited or not ours: it stays as it is, and the report names it."""

    path: str
    message: str
    hint: str


def current(root: Path, path: str) -> bytes | None:
    """The bytes, or None. Raises RefusedError for a folder, a pipe and a link that leads out."""
    place = root / path
    inside(root, path)
    if place.exists() and not place.is_file():
        raise RefusedError(
            f"{place} is {'a folder' if place.is_dir() else 'no ordinary file'}; expected a file.",
            hint="Move it away, then run `harness init` again.",
            code="path_taken",
        )
    return place.read_bytes() if place.exists() else None


def inside(root: Path, path: str) -> Path:
    """The real place of `path`. Raises RefusedError when it is outside `root`, or when a file or a
    dangling link stands where a folder must be."""
    place = root / path
    # From the top: the first link that leads out is named, not a path behind it.
    for above in (*list(place.parents)[::-1], place):
        if above.is_relative_to(root) and not above.resolve().is_relative_to(root):
            raise RefusedError(
                f"{above} is a link that leads out of the project, to {above.resolve()}.",
                hint="Put a real file or folder in its place, then run `harness init` again.",
                code="link_in_place",
            )
        if (
            above != place
            and above.is_relative_to(root)
            and os.path.lexists(above)
            and not above.is_dir()
        ):
            raise RefusedError(
                f"{above} is a {'file' if above.exists() else 'dangling link'}; expected a folder.",
                hint="Move it away, then run `harness init` again.",
                code="path_taken",
            )
    return place.resolve()


def make(root: Path, changes: Sequence[FileChange]) -> None:
    """Make the changes in order; each file is replaced atomically and keeps its permissions.

    Raises UsageError (not_writable) at the first that cannot be written.
    """
    for change in changes:
        place = inside(root, change.path)
        try:
            _make(place, change)
        except OSError as error:
            raise UsageError(
                f"{place} cannot be written: {error.strerror or error}.",
                hint=(
                    "Correct that, then run the same command again: it continues where it stopped."
                ),
                code="not_writable",
            ) from error


def _make(place: Path, change: FileChange) -> None:
    if change.after is None:
        place.unlink(missing_ok=True)
        return
    mode = place.stat().st_mode & 0o777 if place.is_file() else 0o644
    atomic_write(place, change.after, mode=mode)


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else data.decode("utf-8", "replace").splitlines()
