"""Checks of the hooks' own files and of `.harness/policy.json`, by which every hook decides."""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.contract.installation import MANIFEST, VENDORED
from harness.doctor.hook_entries import Hook
from harness.doctor.report import INSTALL, DoctorCheck, broken, doctor_check, good, note
from harness.doctor.start_hooks import command_line
from harness.doctor.subject import DoctorSubject
from harness.errors import HarnessError
from harness.guard.hooks.projects import Projects, read_json
from harness.guard.hooks.self_check import library_digest, vendored_files
from harness.guard.policy.snapshot import differs
from harness.ledger.project import open_project
from harness.rendering.policy_snapshot import other_state, policy_snapshot
from harness.rendering.vendored_hooks import LIBRARY, policy_digest

_DELETE = (
    "Delete {} (or move your edit away), then run `harness init` in your own terminal: it keeps"
    " what was edited."
)


@doctor_check
def hook_files_present(subject: DoctorSubject) -> DoctorCheck:
    """Whether every program of our entries and every file of their library exists."""
    wanted = dict.fromkeys((*_programs(subject), *_recorded(subject)))
    missing = [path for path in wanted if not os.path.isfile(path)]
    if missing:
        return broken(
            f"hook not found: {_listed(missing, subject)}. The guard cannot run; Python's own exit"
            " status 2 looks like a denial of every call.",
            INSTALL,
        )
    if not wanted:
        return note("No harness hook is installed in this project.")
    return good(f"all {len(wanted)} files of the hooks are there")


@doctor_check
def hook_files_readable(subject: DoctorSubject) -> DoctorCheck:
    """Whether their modes let the person who starts `claude` read them, even if we are root."""
    files = {path for path in {*_programs(subject), *_recorded(subject)} if os.path.exists(path)}
    closed = sorted(
        {
            *(path for path in files if not _may(path, stat.S_IRUSR, os.R_OK)),
            *_closed_folders(subject, files),
        }
    )
    if closed:
        return broken(
            f"Not readable: {_listed(closed, subject)}.",
            f"`chmod u+rX` what is named, or: {INSTALL}",
        )
    return good("the hooks' files are readable")


@doctor_check
def hook_files_unchanged(subject: DoctorSubject) -> DoctorCheck:
    """Whether each is as installed, and no other code lies among them."""
    folder = subject.folder / VENDORED
    if subject.hooks_folder != folder:
        return note("The hooks are not copies; git shows what changed in them.")
    differing = vendored_files(str(folder))
    if differing is None:
        where = folder / MANIFEST
        message = f"{where} is missing or damaged, so it is unknown whether the hooks were edited."
        return broken(message, INSTALL)
    says = (("edited", "edited"), ("strange", "not installed by the harness"))
    faults = [
        f"{words}: {_listed([folder / name for name in differing[kind]], subject)}"
        for kind, words in says
        if differing[kind]
    ]
    if faults:
        message = f"The hooks differ from what was installed: {'; '.join(faults)}."
        return broken(
            message,
            _hint(subject, (*differing["edited"], *differing["strange"])),
        )
    return good("the hooks are as they were installed")


@doctor_check
def hook_files_current(subject: DoctorSubject) -> DoctorCheck:
    """Whether the copied rules are those of this harness, by which the gates judge."""
    library = subject.folder / VENDORED / LIBRARY
    if subject.hooks_folder != subject.folder / VENDORED:
        return note("The hooks are not copies; they are this harness's own.")
    try:
        same = library_digest(str(library)) == policy_digest()
    except OSError as error:
        return broken(f"The hooks' library cannot be read: {error}.", INSTALL)
    if same:
        return good("the hooks have this harness's rules")
    differing = vendored_files(str(subject.hooks_folder)) or {"edited": []}
    message = f"The rules in {library} are from another version of the harness."
    return broken(
        message,
        _hint(subject, [name for name in differing["edited"] if name.startswith(LIBRARY)]),
    )


def _hint(subject: DoctorSubject, names: Sequence[str]) -> str:
    # `harness init` keeps an edited file, so a person must delete it first.
    return (
        _DELETE.format(_listed([subject.folder / VENDORED / name for name in names], subject))
        if names
        else INSTALL
    )


def _recorded(subject: DoctorSubject) -> Iterator[Path]:
    folder = subject.folder / VENDORED
    manifest, _ = read_json(str(folder / MANIFEST))
    files = manifest.get("files") if isinstance(manifest, dict) else None
    yield from (folder / name for name in files) if isinstance(files, dict) else ()


def _programs(subject: DoctorSubject) -> Iterator[Path]:
    """The files that our entries start, if their paths are complete."""
    for hook in subject.own():
        path = _program(hook, subject)
        if path is not None:
            yield path


def _program(hook: Hook, subject: DoctorSubject) -> Path | None:
    words = command_line(hook, subject) or []
    program = next((word for word in words if word.endswith(".py") and word.startswith("/")), None)
    return None if program is None or "${" in program else Path(program)


def _may(path: Path, bit: int, mode: int) -> bool:
    try:
        return bool(path.stat().st_mode & bit) and os.access(path, mode)
    except OSError:
        return False


def _closed_folders(subject: DoctorSubject, files: set[Path]) -> Iterator[Path]:
    """Folders between the project and the files that cannot be entered."""
    inside = {
        parent
        for path in files
        for parent in path.parents
        if parent.is_relative_to(subject.folder / ".claude")
    }
    yield from (folder for folder in inside if not _may(folder, stat.S_IXUSR, os.X_OK))


def _listed(paths: list[Path], subject: DoctorSubject) -> str:
    shown = [
        str(path.relative_to(subject.folder)) if path.is_relative_to(subject.folder) else str(path)
        for path in paths
    ]
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


RENDER = "`harness render` writes it again; run it in your own terminal."


@doctor_check
def snapshot_sound(subject: DoctorSubject) -> DoctorCheck:
    """Whether the hooks can read the snapshot; asked of their own code."""
    project = Projects().at(str(subject.folder))
    if project is None:
        return broken(
            f"{subject.folder} has no .harness/config.toml; hooks deny every call.",
            "`harness init`",
        )
    if project.trouble:
        rule, reason, _ = project.trouble
        return broken(f"{reason} ({rule}) The hooks deny every call.", RENDER)
    return good("the policy snapshot can be read")


@doctor_check
def snapshot_fresh(subject: DoctorSubject) -> DoctorCheck:
    """Whether the snapshot agrees with ledger and contract."""
    try:
        with open_project(subject.root, subject.environment, read_only=True) as project:
            now = policy_snapshot(project)
            path = project.layout.shared("policy")
            other = other_state(project.layout)
    except HarnessError as error:
        return note(f"The ledger cannot be read: {error.message}", error.hint)
    except OSError as error:
        return note(f"The project cannot be read to compare it with the snapshot: {error}")
    written = _read(path)
    if written is None:
        return note("No snapshot exists to compare with the ledger.")
    if other:
        return broken(
            f"{path} is of the ledger in {other}, and this working tree's is in {now['state']}, so"
            " hooks apply the rules of the other one.",
            "Set XDG_STATE_HOME as in the main working tree, or run `harness render` there.",
        )
    differing = differs(written, now)
    if differing:
        return broken(
            f"{path} is stale: {', '.join(differing)} differs from the ledger and this harness, so"
            " hooks apply old rules.",
            RENDER,
        )
    return good("the policy snapshot agrees with the ledger")


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
