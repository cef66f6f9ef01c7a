"""Held-out data, and a hidden validation, leave the project at approval and lie in the vault from
then on."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from harness.artifacts.content import hash_file
from harness.artifacts.git import in_repository, tracks
from harness.artifacts.objects import ObjectDamagedError, copy_file
from harness.artifacts.vault_key import VaultKey, key_lost
from harness.clock import Clock, iso
from harness.errors import HarnessError, PlanError, RefusedError
from harness.files import (
    atomic_write,
    canonical_json,
    private_folder,
    sha256_bytes,
    sync_directory,
)

HELD_OUT = "held-out"
HIDDEN_VALIDATION = "hidden validation"


@dataclass(frozen=True)
class InVault:
    path: Path
    sha256: str
    """Under the vault's key: facts name it, and who guesses the labels must not find them by it."""


def unmovable(root: Path, relative: str, what: str = HELD_OUT) -> list[RefusedError]:
    """Why an agent could read the file at `relative` after the move: it is a link, git knows it, or
    a copy is in the project. Raises GitFailedError."""
    path = root / relative
    if path.is_symlink() or path.parent.resolve() != root / PurePosixPath(relative).parent:
        return [
            RefusedError(
                f"The {what} file {relative} is reached through a link: moving it would leave the"
                " original behind.",
                hint="Put the file itself there.",
                code="held_out_is_link",
            )
        ]
    refusals = []
    where = tracks(root, path) if in_repository(root) else None
    if where is not None:
        refusals.append(
            RefusedError(
                f"The {what} file {relative} is known to git: {_GIT[where]}.",
                hint=_HINT.format(what=what),
                code="held_out_tracked",
            )
        )
    try:
        require_no_copies(root, relative, path, what)
    except RefusedError as error:
        refusals.append(error)
    return refusals


def require_no_copies(root: Path, relative: str, at: Path, what: str = HELD_OUT) -> None:
    """Raises RefusedError when the project holds a copy of the secret file at `at`."""
    copies = equal_copies(root, at)
    if copies:
        raise RefusedError(
            f"Files with the same bytes as the {what} file {relative} are in the project:"
            f" {', '.join(copies)}.",
            hint="Remove them, then approve the plan again.",
            code="held_out_copied",
        )


_GIT = {
    "index": "it is tracked",
    "history": "it was committed once, so every clone can read it",
    "objects": "its bytes are in the repository's objects, so `git cat-file` can read them",
}
_HINT = (
    "Its rows must not be readable by agents: make a fresh {what} file that git never saw,"
    " or take this one out of the history (git filter-repo, then git gc --prune=now)."
)


def equal_copies(root: Path, path: Path) -> list[str]:
    """Other files below `root` with the same bytes, ignored ones and links' targets included."""
    # Only files of the same size are hashed: a project may hold terabytes.
    size, copies, expected = path.stat().st_size, [], None
    for candidate in _files(root):
        try:
            if candidate == path or candidate.stat().st_size != size:
                continue
            expected = expected or hash_file(path)
            if hash_file(candidate) == expected:
                copies.append(candidate.relative_to(root).as_posix())
        except (OSError, HarnessError):
            continue  # a dangling link or a file that nobody can read is no readable copy
    return copies


def require_not_replaced(
    root: Path, relative: str, vault: Path, *, key: VaultKey | None, what: str = HELD_OUT
) -> None:
    """Raises RefusedError when the vault holds other rows that came from `relative`: a file that
    came later is an agent's as likely as a person's, and an approval must not take it silently."""
    known = {note["sha256"] for note in notes_of(vault, relative)}
    if known and (key is None or key.of_file(root / relative) not in known):
        raise RefusedError(
            f"{relative} stands in the project, and the vault holds other {what} rows that came"
            " from there.",
            hint="Remove it, to go on with the rows of the vault. Rows that are meant to replace"
            " them need another path in the plan, so that everybody sees it.",
            code="held_out_replaced",
        )


def move_to_vault(
    root: Path,
    relative: str,
    vault: Path,
    clock: Clock,
    *,
    key: VaultKey,
    reviewed: str | None = None,
    **more: Any,
) -> InVault:
    """Move a file that is not `unmovable`; it is known by its keyed hash from then on, and its note
    in the vault says `more`. Raises RefusedError (data_changed) for another one than `reviewed`,
    by its plain hash."""
    # Copy, sync, verify, note, unlink; the approval is recorded after it. Killed anywhere, the next
    # approval goes on: the file is still in the project, or the note says which one in the vault it
    # is.
    source = root / relative
    plain = hash_file(source)
    if reviewed not in (None, plain):
        raise not_as_reviewed(relative)
    sha256 = key.of(plain)
    private_folder(vault)
    target = vault / f"{sha256}{source.suffix}"
    if not target.is_file():
        copy_file(source, vault, plain, suffix=source.suffix).replace(target)
        sync_directory(vault)
    key.check(target, sha256)
    _write_note(vault, relative, target, sha256, clock, more)
    source.unlink()
    sync_directory(source.parent)
    return InVault(target, sha256)


def not_as_reviewed(path: str) -> RefusedError:
    return RefusedError(
        f"{path} is not what it was a moment ago, when it was looked at.",
        hint="End what writes there, then approve again.",
        code="data_changed",
    )


def put_in_vault(
    data: bytes, relative: str, vault: Path, clock: Clock, *, key: VaultKey
) -> InVault:
    """A file that was never in the project; the vault finds it as if it came from `relative`."""
    private_folder(vault)
    sha256 = key.of(sha256_bytes(data))
    target = vault / f"{sha256}{PurePosixPath(relative).suffix}"
    atomic_write(target, data, mode=0o444)
    _write_note(vault, relative, target, sha256, clock, {})
    return InVault(target, sha256)


def _write_note(
    vault: Path, relative: str, file: Path, sha256: str, clock: Clock, more: dict[str, Any]
) -> None:
    note = {"path": relative, "sha256": sha256, "file": file.name, "at": iso(clock.now())}
    atomic_write(vault / f"{sha256}.json", canonical_json(note | more))


def notes_of(vault: Path, relative: str | None = None) -> list[dict[str, Any]]:
    """The notes of this part of the vault that can be read, of all files or of those that came from
    `relative`; oldest first."""
    notes = [note for note in _notes(vault)[0] if relative in (None, note["path"])]
    return sorted(notes, key=lambda note: str(note["at"]))


def find_in_vault(
    relative: str, vault: Path, *, key: VaultKey | None, approved: list[str], what: str = HELD_OUT
) -> InVault:
    """The vault's file that came from `relative`; `approved` are the hashes of approvals, oldest
    first. Raises PlanError when there is none, ObjectDamagedError when it was changed, or nobody
    can say, without the vault's key."""
    readable, damaged_notes = _notes(vault)
    notes = [note for note in readable if note["path"] == relative]
    # A file that no approval names comes first: its approval was killed after the move.
    pending = sorted(
        (note for note in notes if note["sha256"] not in approved), key=lambda note: note["at"]
    )
    known = [note for sha256 in approved for note in notes if note["sha256"] == sha256]
    if not pending and not known:
        if damaged_notes:
            listed = ", ".join(str(path) for path in damaged_notes)
            raise ObjectDamagedError(
                f"Nobody can say which file of the vault came from {relative}, damaged: {listed}.",
                hint=(
                    f"Restore the state directory from a backup, or put the {what} file in place"
                    " again."
                ),
            )
        raise PlanError(
            f"The {what} file {relative} does not exist, and the vault holds none that came from"
            " there.",
            hint=(
                "Put the file in place, or correct data.held_out.path."
                if what == HELD_OUT
                else "Put the file in place, or name a file in data.validation."
            ),
        )
    note = (pending or known)[-1]
    path = vault / note["file"]
    if key is None:
        raise key_lost(path)
    key.check(path, note["sha256"])
    return InVault(path, note["sha256"])


def _notes(vault: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """The notes that can be read, and the paths of those that cannot."""
    notes, bad = [], []
    for path in sorted(vault.glob("*.json")) if vault.is_dir() else []:
        try:
            note = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            note = None
        if isinstance(note, dict) and {"path", "sha256", "file", "at"} <= set(note):
            notes.append(note)
        else:
            bad.append(path)
    return notes, bad


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            yield Path(folder) / name
