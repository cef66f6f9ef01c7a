"""Checks of the hooks' own files: there, readable, and as `harness init` wrote them."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.doctor.entries import Hook
from harness.doctor.feed import command_line
from harness.doctor.report import Check, dead, good, note
from harness.doctor.scene import Scene
from harness.files import sha256_file, walk_files

VENDORED = Path(".claude/hooks/harness")
MANIFEST = "MANIFEST.json"
INSTALL = "`harness init` installs the hooks again; run it in your own terminal."
_CODE = (".py", ".so", ".pyd", ".pyc")


def hook_files_present(scene: Scene) -> Check:
    """Whether every program of our entries, and every file of the library below them, is there."""
    wanted = {*_programs(scene), *_recorded(scene)}
    missing = sorted(path for path in wanted if not path.is_file())
    if missing:
        return dead(
            "hook_files_present",
            f"hook not found: {_listed(missing, scene)}. The guard cannot run; Python's own exit status 2 then looks like a "
            "denial of every call.",
            INSTALL,
        )
    if not wanted:
        return note("hook_files_present", "No hook of ours is installed in this project.")
    return good("hook_files_present", f"all {len(wanted)} files of the hooks are there")


def hook_files_readable(scene: Scene) -> Check:
    """Whether their mode lets the person who starts `claude` read them; root could read them anyway."""
    files = {path for path in {*_programs(scene), *_recorded(scene)} if path.exists()}
    closed = sorted(
        {*(path for path in files if not _may(path, stat.S_IRUSR, os.R_OK)), *_closed_folders(scene, files)}
    )
    if closed:
        return dead(
            "hook_files_readable",
            f"Not readable: {_listed(closed, scene)}.",
            f"`chmod u+rX` what is named, or: {INSTALL}",
        )
    return good("hook_files_readable", "the hooks' files are readable")


def hook_files_unchanged(scene: Scene) -> Check:
    """Whether each is what was installed, and no other code lies among them."""
    folder = scene.folder / VENDORED
    if not folder.is_dir():
        return note("hook_files_unchanged", "The hooks are not copies: git tells what changed in them.")
    manifest = read_manifest(folder)
    if manifest is None:
        return dead(
            "hook_files_unchanged",
            f"{folder / MANIFEST} is missing or damaged, so nobody can tell what was edited.",
            INSTALL,
        )
    changed = [folder / name for name, digest in manifest["files"].items() if _differs(folder / name, digest)]
    known = {folder / name for name in manifest["files"]}
    added = [path for path in walk_files(folder) if path.suffix in _CODE and path not in known]
    added = [path for path in added if "__pycache__" not in path.parts]
    faults = [f"edited: {_listed(sorted(changed), scene)}"] if changed else []
    faults += [f"not put there by the harness: {_listed(added, scene)}"] if added else []
    if faults:
        return dead(
            "hook_files_unchanged", f"The hooks are not those that were installed; {'; '.join(faults)}.", INSTALL
        )
    return good("hook_files_unchanged", f"all {len(known)} files are as they were installed")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of vendored hooks; None when it is missing or has no list of files with their hashes."""
    try:
        value = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    files = value.get("files") if isinstance(value, dict) else None
    named = isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())
    return value if named and files else None


def _recorded(scene: Scene) -> Iterator[Path]:
    folder = scene.folder / VENDORED
    manifest = read_manifest(folder)
    yield from (folder / name for name in manifest["files"]) if manifest else ()


def _programs(scene: Scene) -> Iterator[Path]:
    """The files that our entries start, of those whose path is whole."""
    for hook in scene.own():
        path = _program(hook, scene.folder)
        if path is not None:
            yield path


def _program(hook: Hook, folder: Path) -> Path | None:
    words = command_line(hook, folder) or []
    found = next((word for word in words if word.endswith(".py") and word.startswith("/")), None)
    return None if found is None or "${" in found else Path(found)


def _may(path: Path, bit: int, mode: int) -> bool:
    return bool(path.stat().st_mode & bit) and os.access(path, mode)


def _closed_folders(scene: Scene, files: set[Path]) -> Iterator[Path]:
    """Folders between the project and the files that may not be entered."""
    inside = {parent for path in files for parent in path.parents if parent.is_relative_to(scene.folder / ".claude")}
    yield from (folder for folder in inside if not _may(folder, stat.S_IXUSR, os.X_OK))


def _differs(path: Path, digest: str) -> bool:
    """Whether the file is there and is another; a missing one is named elsewhere."""
    try:
        return sha256_file(path) != digest
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _listed(paths: list[Path], scene: Scene) -> str:
    shown = [str(path.relative_to(scene.folder)) if path.is_relative_to(scene.folder) else str(path) for path in paths]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
