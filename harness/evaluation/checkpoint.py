"""The copy of a checkpoint that predict reads: named by its hash, verified, and never reached
through a link."""

import os
import shutil
from pathlib import Path

from harness.artifacts.content import hash_path, open_regular
from harness.errors import UsageError
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable


def copy_checkpoint(source: Path, target: Path, *, root: Path, expected: str) -> Path:
    """A read-only copy of the file or folder `source` in the folder `target`, as `<hash><suffix>`.

    A link on the way there, or inside, could lead to rows or labels that predict must not see; so
    `source` must be below `root` with links resolved, and hold regular files only. Raises
    Unscorable.
    """
    resolved = source.resolve()
    if not resolved.exists():
        raise Unscorable(problems.checkpoint_missing(source.name, "is not there any more"))
    if source.is_symlink() or not resolved.is_relative_to(root.resolve()):
        raise Unscorable(
            problems.checkpoint_missing(source.name, "is a link or lies outside the project")
        )
    copy = target / f"{expected}{resolved.suffix if resolved.is_file() else ''}"
    try:
        if resolved.is_dir():
            _copy_folder(resolved, copy)
        else:
            _copy_file(resolved, copy)
        actual = hash_path(copy)
    except UsageError as error:
        raise Unscorable(
            problems.checkpoint_missing(source.name, f"cannot be copied: {error.message}")
        ) from error
    if actual != expected:
        raise Unscorable(
            problems.checkpoint_changed("changed since its run ended", expected, actual)
        )
    return copy


def require_unchanged(copy: Path, expected: str) -> None:
    """Raises Unscorable when predict changed its checkpoint, which only a sandbox of kind none lets
    it."""
    try:
        actual = "a link" if copy.is_symlink() else hash_path(copy)
    except UsageError:
        actual = "nothing that can be read"
    if actual != expected:
        raise Unscorable(
            problems.checkpoint_changed("was changed by the predict command", expected, actual)
        )


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink():
                raise UsageError(f"{entry.name} in it is a link.", hint="Save regular files.")
            copy = _copy_folder if entry.is_dir(follow_symlinks=False) else _copy_file
            copy(Path(entry.path), target / entry.name)


def _copy_file(source: Path, target: Path) -> None:
    with open_regular(source, follow=False) as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, 1 << 20)
    target.chmod(0o444)
