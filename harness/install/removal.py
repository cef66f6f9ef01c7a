"""`harness init --remove`: remove the harness. A person's files and the ledger's facts stay."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.artifacts.locate import Layout
from harness.contract.artifacts import BY_NAME
from harness.contract.installation import AGENTS, COMMANDS, MCP_SERVERS, SETTINGS, VENDORED
from harness.errors import HarnessError, NotFoundError, RefusedError
from harness.files import lock, sha256_bytes
from harness.guard.accepted import accept_on_record
from harness.install import manifest as manifests
from harness.install.file_changes import Conflict, FileChange, current, make
from harness.install.install import acceptable
from harness.install.json_edit import load
from harness.install.manifest import Manifest, read_manifest
from harness.install.target import InstallTarget, place_of
from harness.install.undo_record import Undo, undo_of
from harness.install.wanted_files import as_written, has_banner, sort, stripped, sweep
from harness.ledger.project import open_project
from harness.plans.held_out import notes_of
from harness.plans.scaffold import PLAN_FORM, forms
from harness.rendering.derived import write_derived
from harness.rendering.policy_snapshot import write_policy_snapshot
from harness.rendering.render import installed_texts
from harness.rendering.vendored_hooks import vendored_files
from harness.settings import CONFIG

HARNESS = str(PurePosixPath(CONFIG).parent)
PLAN = BY_NAME["plan"].path


@dataclass(frozen=True, kw_only=True)
class Removal:
    """What was done, or with a dry run would be done."""

    place: InstallTarget
    changes: tuple[FileChange, ...]
    conflicts: tuple[Conflict, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _RemovalPlan:
    changes: tuple[FileChange, ...]
    conflicts: tuple[Conflict, ...]
    folders: tuple[str, ...]
    """To remove if they are empty then; deepest first."""
    used: bool
    """Whether the project stays: it has facts, or is elsewhere."""
    notes: tuple[str, ...]


def remove(
    directory: Path, environment: Mapping[str, str], *, by: str, dry_run: bool = False
) -> Removal:
    """Remove from `directory` what `install` put there.

    An unchanged file is restored byte for byte; from an edited one only our entries go, and it is
    named. `.harness/` and the state directory go only if the ledger has no fact. Raises
    NotFoundError, RefusedError or UsageError before anything is changed.
    """
    root = directory.resolve()
    if not root.is_dir():
        raise NotFoundError(
            f"{root} is no folder.", hint="Name the folder that `harness init` was run in."
        )
    if dry_run:
        place, plan = _look(root, environment)
        return _removal(place, plan)
    with lock(root):
        place, plan = _look(root, environment)
        sweep(place)
        _take_out(place, plan, environment, by)
    return _removal(place, plan)


def _look(root: Path, environment: Mapping[str, str]) -> tuple[InstallTarget, _RemovalPlan]:
    place = place_of(root, None, environment)
    if place.own:
        raise RefusedError(
            f"{root} is the harness's own repository: its hooks are part of it.",
            hint="`git` restores what `harness render` wrote.",
            code="own_repository",
        )
    undo, manifest = undo_of(place.layout.state, root), read_manifest(root)
    if place.new and manifest is None and not (root / VENDORED).exists():
        raise NotFoundError(
            f"Nothing of the harness is in {root}.",
            hint="Name the folder that `harness init` was run in.",
            code="not_installed",
        )
    changes: list[FileChange] = []
    conflicts: list[Conflict] = []
    sort(
        (*_merged(place, manifest, undo), *_whole_files(place, manifest, undo)), changes, conflicts
    )
    used, notes = _use(place, environment)
    if not used:
        changes += _project_files(place, undo)
        if (
            PLAN in undo.files
            and PLAN not in {change.path for change in changes}
            and (root / PLAN).is_file()
        ):
            notes.append(f"{PLAN} stays: it was filled in.")
    folders = _folders(place, manifest, undo, used=used)
    return place, _RemovalPlan(
        changes=tuple(changes),
        conflicts=tuple(conflicts),
        folders=folders,
        used=used,
        notes=tuple(notes),
    )


def _merged(
    place: InstallTarget, manifest: Manifest | None, undo: Undo
) -> Iterator[FileChange | Conflict]:
    for path in (SETTINGS, MCP_SERVERS):
        there = current(place.root, path)
        if there is None:
            continue
        if undo.wrote(path, there):
            yield FileChange(path=path, before=there, after=undo.original(path))
            continue
        left = stripped(path, there.decode("utf-8", "surrogateescape"), manifest)
        after: bytes | None = left.encode("utf-8", "surrogateescape")
        if after == there:
            continue
        if manifest is not None and path in manifest.created and load(left) == {}:
            after = None
        yield FileChange(path=path, before=there, after=after)
        if path in undo.files and after is not None:
            yield Conflict(
                path=path,
                message=(
                    f"{path} was changed since the harness wrote it: only its entries were taken"
                    " out."
                ),
                hint="Look whether the rest is as you want it.",
            )


def _whole_files(
    place: InstallTarget, manifest: Manifest | None, undo: Undo
) -> Iterator[FileChange | Conflict]:
    # The manifest comes last: by it the next call finishes an interrupted removal.
    known = {} if manifest is None else manifest.hashes()
    now = {str(path): sha256_bytes(text.encode()) for path, text in installed_texts().items()}
    now |= {f"{VENDORED}/{name}": sha256_bytes(data) for name, data in vendored_files().items()}
    for path in sorted({*known, *now}, key=lambda name: (name.startswith(VENDORED), name)):
        there = current(place.root, path)
        if there is None:
            continue
        if sha256_bytes(there) == now.get(path) or as_written(path, there, known, undo):
            yield FileChange(path=path, before=there, after=None)
        elif path in known or path.startswith(VENDORED) or has_banner(there):
            yield Conflict(
                path=path,
                message=f"{path} was edited since the harness wrote it; it is kept.",
                hint=f"Delete {path} if you do not need it.",
            )
    compiled = sorted((place.root / VENDORED).rglob("__pycache__/*.pyc"))
    for path in [manifests.PATH, *(file.relative_to(place.root).as_posix() for file in compiled)]:
        if (there := current(place.root, path)) is not None:
            yield FileChange(path=path, before=there, after=None)


def _use(place: InstallTarget, environment: Mapping[str, str]) -> tuple[bool, list[str]]:
    """(whether the project stays, notes on it)."""
    layout = place.layout
    if layout.root != place.root:
        return True, [f"The project is at {layout.root}, and stays as it is."]
    if place.new:
        return True, []
    try:
        with open_project(layout.root, environment, read_only=True) as project:
            empty = project.ledger.position() == 0
    except NotFoundError:
        empty = True
    except HarnessError as error:
        return True, [
            f"{HARNESS}/ and {layout.state} stay, for the ledger cannot be read: {error.message}"
        ]
    tables = [*_in_vault(layout)]
    if empty and not tables and not any(layout.facts_dir.glob("*.jsonl")):
        return False, []
    kept = (
        f"{HARNESS}/ stays, with its experiments and memory, and so does {layout.state}, with the"
        " ledger."
    )
    return True, [
        kept,
        *tables,
        "To lose both for good, delete these two folders.",
    ]


def _in_vault(layout: Layout) -> Iterator[str]:
    """A person's tables that only the vault holds; of each place the newest."""
    kinds = {
        layout.held_out: "held-out rows",
        layout.validation: "hidden validation rows",
        layout.originals: "rows before the split",
    }
    for folder, what in kinds.items():
        newest = {note["path"]: note["file"] for note in notes_of(folder)}
        for path, file in newest.items():
            yield f"The {what} of {path} are in {folder / file}."


def _project_files(place: InstallTarget, undo: Undo) -> Iterator[FileChange]:
    """All our files in a project without facts; config.toml, which names its state, last."""
    layout = place.layout
    paths = [layout.project(name) for name in ("policy", "checklist", "priors")]
    paths += [
        layout.decision_log,
        layout.state_md,
        layout.briefing,
        *sorted(layout.project("receipts").glob("*")),
    ]
    for path in paths:
        if path.is_file():
            yield FileChange(path=layout.relative(path), before=path.read_bytes(), after=None)
    for where in (PLAN, f"{HARNESS}/{PLAN}"):
        there = current(place.root, where)
        if there is not None and (there == PLAN_FORM.encode() or undo.wrote(where, there)):
            yield FileChange(path=where, before=there, after=None)
    ignored = f"{HARNESS}/.gitignore"
    there = current(place.root, ignored)
    if there == forms(PLAN)[ignored].encode():
        yield FileChange(path=ignored, before=there, after=None)
    if (there := current(place.root, CONFIG)) is not None:
        yield FileChange(path=CONFIG, before=there, after=None)


def _folders(
    place: InstallTarget, manifest: Manifest | None, undo: Undo, *, used: bool
) -> tuple[str, ...]:
    """The folders that we made; without a record of them (in a clone) all that may be ours."""
    usual = [".claude", ".claude/hooks", AGENTS, ".claude/commands", COMMANDS]
    made = undo.folders if undo.files or manifest is None else usual
    tops = (VENDORED,) if used and not place.new else (HARNESS, VENDORED)
    names = {*made, *tops}
    for top in tops:
        names |= {
            path.relative_to(place.root).as_posix()
            for path in (place.root / top).rglob("*")
            if path.is_dir()
        }
    return tuple(sorted(names, key=lambda name: (-name.count("/"), name)))


def _take_out(
    place: InstallTarget, plan: _RemovalPlan, environment: Mapping[str, str], by: str
) -> None:
    root, layout = place.root, place.layout
    accepted = acceptable(place, plan.changes)
    # config.toml goes last: after a cut the next call finds state and record by it.
    last = [change for change in plan.changes if change.path == CONFIG]
    make(root, [change for change in plan.changes if change.path != CONFIG])
    _remove_empty(root, plan.folders)  # while the record still says which are ours
    undo = undo_of(layout.state, root)
    undo.forget()
    if plan.used and not place.new:
        with open_project(layout.root, environment) as project:
            write_policy_snapshot(project)
            if accepted is not None:
                accept_on_record(project, by=by, paths=accepted)
                write_derived(project)
    elif not _others(undo.folder):
        shutil.rmtree(layout.state, ignore_errors=True)
    make(root, last)
    _remove_empty(root, plan.folders)


def _others(folder: Path) -> bool:
    """Whether another worktree of the project still has an installation."""
    return folder.parent.is_dir() and any(folder.parent.iterdir())


def _remove_empty(root: Path, names: Sequence[str]) -> None:
    for name in names:
        folder = root / name
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def _removal(place: InstallTarget, plan: _RemovalPlan) -> Removal:
    return Removal(place=place, changes=plan.changes, conflicts=plan.conflicts, notes=plan.notes)
