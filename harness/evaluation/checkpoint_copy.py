"""The judge's own copy of a checkpoint: hashed while it is made, and known by its marks afterwards.

A large checkpoint is read once for an evaluation: blocks are shared with the source where the file
system can, and what is written is what is hashed.
"""

import os
from pathlib import Path

from harness.artifacts.content import folder_hash, hash_path, link_hash, open_regular
from harness.artifacts.looked import Seen, seen
from harness.artifacts.npz import BadFileError, hostile
from harness.artifacts.objects import copy_hashed
from harness.errors import UsageError
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable


def copy_checkpoint(source: Path, target: Path, *, root: Path, expected: str) -> Path:
    """A read-only copy of the file or folder `source` in the folder `target`, as `<hash><suffix>`.
    Raises Unscorable unless `source` is below `root` and holds regular files only."""
    # A link on the way there, or inside, could lead to labels that predict must not see.
    resolved = source.resolve()
    if not resolved.exists():
        raise Unscorable(problems.checkpoint_missing(source.name, "is not there any more"))
    if source.is_symlink() or not resolved.is_relative_to(root.resolve()):
        raise Unscorable(
            problems.checkpoint_missing(source.name, "is a link or lies outside the project")
        )
    copy = target / f"{expected}{resolved.suffix if resolved.is_file() else ''}"
    try:
        with hostile("cannot be copied"):
            # What is written to the copy is hashed, not the source: nobody can change it between
            # the check and its use.
            if resolved.is_dir():
                actual = _copy_folder(resolved, copy)
            else:
                actual = _copy_file(resolved, copy)
    except UsageError as error:
        why = f"cannot be copied: {error.message}"
        raise Unscorable(problems.checkpoint_missing(source.name, why)) from error
    except BadFileError as error:
        raise Unscorable(problems.checkpoint_missing(source.name, error.what)) from error
    if actual != expected:
        raise Unscorable(
            problems.checkpoint_changed("changed since its run ended", expected, actual)
        )
    return copy


def require_unchanged(copy: Path, expected: str) -> None:
    """Raises Unscorable when predict changed its checkpoint, as it can without a sandbox."""
    try:
        actual = "a link" if copy.is_symlink() else hash_path(copy)
    except (UsageError, OSError, ValueError, RuntimeError):
        actual = "nothing that can be read"
    if actual != expected:
        raise Unscorable(
            problems.checkpoint_changed("was changed by the predict command", expected, actual)
        )


def marks_of(copy: Path) -> dict[str, Seen]:
    """By what each file and folder of it is known, by its path: a program can set no file's time of
    change. Empty where it cannot be read."""
    try:
        found = {str(copy): seen(os.lstat(copy))}
        for folder, directories, names in os.walk(copy):
            for name in (*directories, *names):
                path = os.path.join(folder, name)
                found[path] = seen(os.lstat(path))
    except OSError:
        return {}
    return found


def _copy_folder(source: Path, target: Path) -> str:
    """Copy files, and links among them as links; returns the hash of what was written. Raises
    UsageError for a link that leads out of the folder: what it leads to is not what was
    recorded."""
    hashes: dict[str, str] = {}
    links = _copy_entries(source, target, "", hashes)
    for link in links:
        # Looked at in the copy, which nobody changes any more, and through all that it passes.
        if not (link.exists() and link.resolve().is_relative_to(target.resolve())):
            raise UsageError(
                f"{link.name} in it is a link that leads out of it, or nowhere.",
                hint="Link by relative paths within the checkpoint, or save regular files.",
            )
    return folder_hash(hashes)


def _copy_entries(source: Path, target: Path, below: str, hashes: dict[str, str]) -> list[Path]:
    """The links that were copied; `hashes` gets each file's, by its path from the top."""
    links = []
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            copy, name = target / entry.name, f"{below}{entry.name}"
            if entry.is_symlink():
                copy.symlink_to(os.readlink(entry.path))
                hashes[name] = link_hash(copy)
                links.append(copy)
            elif entry.is_dir(follow_symlinks=False):
                links += _copy_entries(Path(entry.path), copy, f"{name}/", hashes)
            else:
                hashes[name] = _copy_file(Path(entry.path), copy)
    return links


def _copy_file(source: Path, target: Path) -> str:
    with open_regular(source, follow=False) as reading:
        return copy_hashed(reading, target, mode=0o444)
