"""Checks of the hooks' own files: there, readable, and as `harness init` wrote them."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.contract.installation import MANIFEST, VENDORED
from harness.doctor.entries import Hook
from harness.doctor.feed import command_line
from harness.doctor.report import INSTALL, Check, dead, good, note
from harness.doctor.scene import Scene
from harness.guard.hooks.place import read_json
from harness.guard.hooks.self_check import library_digest, vendored_files
from harness.rendering.vendored import LIBRARY, policy_digest

_DELETE = (
    "Delete {} (or move your edit away), then run `harness init` in your own terminal: it keeps"
    " what was edited."
)


def hook_files_present(scene: Scene) -> Check:
    """Whether every program of our entries, and every file of the library below them, is there."""
    wanted = dict.fromkeys((*_programs(scene), *_recorded(scene)))
    missing = [path for path in wanted if not os.path.isfile(path)]
    if missing:
        return dead(
            "hook_files_present",
            f"hook not found: {_listed(missing, scene)}. The guard cannot run; Python's own exit"
            " status 2 looks like a denial of every call.",
            INSTALL,
        )
    if not wanted:
        return note("hook_files_present", "No hook of ours is installed in this project.")
    return good("hook_files_present", f"all {len(wanted)} files of the hooks are there")


def hook_files_readable(scene: Scene) -> Check:
    """Whether their mode lets the person who starts `claude` read them; root could read them
    anyway."""
    files = {path for path in {*_programs(scene), *_recorded(scene)} if os.path.exists(path)}
    closed = sorted(
        {
            *(path for path in files if not _may(path, stat.S_IRUSR, os.R_OK)),
            *_closed_folders(scene, files),
        }
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
    if scene.hooks_folder != folder:
        return note(
            "hook_files_unchanged", "The hooks are not copies: git tells what changed in them."
        )
    found = vendored_files(str(folder))
    if found is None:
        where = folder / MANIFEST
        said = f"{where} is missing or damaged, so nobody can tell whether the hooks were edited."
        return dead("hook_files_unchanged", said, INSTALL)
    says = (("edited", "edited"), ("strange", "not put there by the harness"))
    faults = [
        f"{words}: {_listed([folder / name for name in found[kind]], scene)}"
        for kind, words in says
        if found[kind]
    ]
    if faults:
        said = f"The hooks are not those that were installed; {'; '.join(faults)}."
        return dead(
            "hook_files_unchanged", said, _hint(scene, (*found["edited"], *found["strange"]))
        )
    return good("hook_files_unchanged", "the hooks are as they were installed")


def hook_files_current(scene: Scene) -> Check:
    """Whether the copied rules are those of this harness: another version may judge otherwise than
    the gates do."""
    library = scene.folder / VENDORED / LIBRARY
    if scene.hooks_folder != scene.folder / VENDORED:
        return note("hook_files_current", "The hooks are not copies: they are this harness's own.")
    try:
        same = library_digest(str(library)) == policy_digest()
    except OSError as error:
        return dead("hook_files_current", f"The hooks' library cannot be read: {error}.", INSTALL)
    if same:
        return good("hook_files_current", "the hooks have this harness's rules")
    found = vendored_files(str(scene.hooks_folder)) or {"edited": []}
    said = f"The rules in {library} are another version's than this harness's."
    return dead(
        "hook_files_current",
        said,
        _hint(scene, [name for name in found["edited"] if name.startswith(LIBRARY)]),
    )


def _hint(scene: Scene, names: Sequence[str]) -> str:
    """`harness init` leaves a vendored file alone that is not as it was written, so it has to go
    first."""
    return (
        _DELETE.format(_listed([scene.folder / VENDORED / name for name in names], scene))
        if names
        else INSTALL
    )


def _recorded(scene: Scene) -> Iterator[Path]:
    folder = scene.folder / VENDORED
    manifest, _ = read_json(str(folder / MANIFEST))
    files = manifest.get("files") if isinstance(manifest, dict) else None
    yield from (folder / name for name in files) if isinstance(files, dict) else ()


def _programs(scene: Scene) -> Iterator[Path]:
    """The files that our entries start, of those whose path is whole."""
    for hook in scene.own():
        path = _program(hook, scene)
        if path is not None:
            yield path


def _program(hook: Hook, scene: Scene) -> Path | None:
    words = command_line(hook, scene) or []
    found = next((word for word in words if word.endswith(".py") and word.startswith("/")), None)
    return None if found is None or "${" in found else Path(found)


def _may(path: Path, bit: int, mode: int) -> bool:
    try:
        return bool(path.stat().st_mode & bit) and os.access(path, mode)
    except OSError:
        return False


def _closed_folders(scene: Scene, files: set[Path]) -> Iterator[Path]:
    """Folders between the project and the files that may not be entered."""
    inside = {
        parent
        for path in files
        for parent in path.parents
        if parent.is_relative_to(scene.folder / ".claude")
    }
    yield from (folder for folder in inside if not _may(folder, stat.S_IXUSR, os.X_OK))


def _listed(paths: list[Path], scene: Scene) -> str:
    shown = [
        str(path.relative_to(scene.folder)) if path.is_relative_to(scene.folder) else str(path)
        for path in paths
    ]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
