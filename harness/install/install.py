"""`harness init`: install the harness; the next call finishes an interrupted one."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifacts.git import GitFailedError, run_git
from harness.contract.installation import SETTINGS
from harness.domain.statuses import HooksMode
from harness.errors import NotFoundError, UsageError
from harness.files import atomic_write, lock
from harness.guard.accepted import accept_on_record, control_listing, of_file, read_accepted
from harness.install.file_changes import Conflict, FileChange, make
from harness.install.hook_interpreter import Chosen, candidates, choose
from harness.install.manifest import PATH as MANIFEST
from harness.install.manifest import read_manifest
from harness.install.target import (
    InstallTarget,
    environment_found,
    place_of,
    settings_above,
)
from harness.install.undo_record import undo_of
from harness.install.wanted_files import MERGED, Wanted, base_of, sweep, wanted
from harness.ledger.project import Project, approve_config, open_project
from harness.rendering.derived import write_derived
from harness.rendering.policy_snapshot import write_policy_snapshot
from harness.settings import CONFIG


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What was done, or with a dry run would be done."""

    place: InstallTarget
    interpreter: str | None
    rejected: tuple[tuple[str, str], ...] = ()
    changes: tuple[FileChange, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = field(default=())


def install(
    directory: Path,
    mode: HooksMode | None,
    environment: Mapping[str, str],
    *,
    by: str,
    allow: bool = False,
    dry_run: bool = False,
) -> Installation:
    """Make `directory` a project with hooks as `mode` says; with `dry_run` write nothing, with
    `allow` let Claude Code run the harness's tools, and verbs that decide nothing, unasked.

    The person `by` accepts what is written. A second call changes nothing. Raises RefusedError or
    UsageError before anything is written: invalid settings, no Python for the hooks, a link that
    leads out of the project.
    """
    if dry_run:
        place = place_of(directory, mode, environment)
        chosen, needed = _look(place, environment, allow=allow)
        hints = _told(place, environment)
        return _installation(place, chosen, (*_config(place), *needed.changes), needed, *hints)
    directory.mkdir(parents=True, exist_ok=True)
    with lock(directory.resolve()):
        place = place_of(directory, mode, environment)
        sweep(place)
        chosen, needed = _look(place, environment, allow=allow)
        early, notes = _config(place), [*_told(place, environment)]
        _write_config(place)
        with open_project(place.layout.root, environment) as project:
            _write(place, project, needed, by)
            if project.ledger.facts_wait():
                notes.append(
                    "this clone's facts are not imported yet: run `harness ledger import`"
                )
        return _installation(place, chosen, (*early, *needed.changes), needed, *notes)


def _look(
    place: InstallTarget, environment: Mapping[str, str], *, allow: bool
) -> tuple[Chosen | None, Wanted]:
    chosen = None
    if allow and (place.mode is not HooksMode.PROJECT or place.own):
        raise UsageError(
            "--allow writes to .claude/settings.json, and this project's hooks are not there.",
            hint="Leave it out, or install with `harness init --hooks project --allow`.",
            code="allow_without_hooks",
        )
    if place.mode is HooksMode.PROJECT and not place.own:
        before = read_manifest(place.root)
        chosen = choose(candidates(None if before is None else before.interpreter))
    read_accepted(place.layout)  # raises for a damaged list before anything is written
    undo = undo_of(place.layout.state, place.root)
    interpreter = "" if chosen is None else chosen.interpreter
    plan = _wants_plan(place, environment)
    return chosen, wanted(place, interpreter, undo, plan=plan, allow=allow)


def _told(place: InstallTarget, environment: Mapping[str, str]) -> tuple[str, ...]:
    return (
        *settings_above(place, environment),
        *environment_found(place, environment),
        *_ignored(place),
    )


def _ignored(place: InstallTarget) -> Iterator[str]:
    """A warning where git ignores the hooks: a clone or a new worktree is then not guarded."""
    if place.mode is not HooksMode.PROJECT or place.own:
        return
    with contextlib.suppress(GitFailedError):  # no git
        for path in (SETTINGS, MANIFEST):
            # `check-ignore` refuses the literal pathspecs that run_git asks for.
            words = ("--no-literal-pathspecs", "check-ignore", "--quiet", "--", path)
            if run_git(place.root, *words, ok=(0, 1, 128))[0] == 0:
                yield (
                    f"warning: git ignores {path}, so a clone of this repository has no hooks and"
                    " nothing is enforced there; remove .claude/ from .gitignore, or run `harness"
                    " init` in each clone."
                )
                return


def _wants_plan(place: InstallTarget, environment: Mapping[str, str]) -> bool:
    """Whether no plan is approved and none is in the folder of plans."""
    if place.layout.project("plans").is_dir():
        return False
    try:
        with open_project(place.layout.root, environment, read_only=True) as project:
            return project.ledger.plan() is None
    except NotFoundError:
        return True


def _config(place: InstallTarget) -> tuple[FileChange, ...]:
    path = place.layout.project("config_toml")
    before = path.read_bytes() if path.is_file() else None
    after = place.config.encode()
    return () if before == after else (FileChange(path=CONFIG, before=before, after=after),)


def _write_config(place: InstallTarget) -> None:
    """Write the changed line about hooks; if the file was approved before, approve it again."""
    for change in _config(place):
        approved = place.layout.approved_config
        stands = approved.is_file() and approved.read_bytes() == change.before
        atomic_write(place.layout.project("config_toml"), place.config)
        if stands:
            approve_config(place.layout, place.config.encode())


def _write(place: InstallTarget, project: Project, wanted_changes: Wanted, by: str) -> None:
    # The order survives a cut at any point: the undo record before the first change, policy and
    # hooks before the settings that start them. `acceptable` compares with what was accepted last,
    # so it comes before all changes.
    accepted = acceptable(place, wanted_changes.changes)
    undo, manifest = undo_of(place.layout.state, place.root), read_manifest(place.root)
    for change in wanted_changes.changes:
        if change.after is not None:
            base = base_of(change, manifest)
            undo.remember(change.path, change.before, change.after, base=base)
    undo.folders += [
        name
        for name in _missing_folders(place.root, wanted_changes.changes)
        if name not in undo.folders
    ]
    if wanted_changes.changes:
        undo.save()
    write_derived(project)
    make(place.root, [change for change in wanted_changes.changes if change.path not in MERGED])
    write_policy_snapshot(project)  # again: it says that the hooks are there
    make(place.root, [change for change in wanted_changes.changes if change.path in MERGED])
    if accepted is not None:
        accept_on_record(project, by=by, paths=accepted)
        write_derived(project)  # accepting may have recorded a fact


def acceptable(place: InstallTarget, changes: Iterable[FileChange]) -> list[str] | None:
    """The paths of `changes` that a person accepts by making them; None if there are none.

    A person's file that had changed since it was accepted is left to the audit.
    """
    if place.layout.root != place.root:
        return None
    before, now = read_accepted(place.layout), control_listing(place.root)
    known = {} if before is None else before.files
    paths = [
        change.path
        for change in changes
        if change.path not in MERGED or of_file(now, change.path) == of_file(known, change.path)
    ]
    return paths if paths or before is None else None


def _missing_folders(root: Path, changes: tuple[FileChange, ...]) -> Iterator[str]:
    for change in changes:
        above = [
            folder
            for folder in (root / change.path).parents
            if folder.is_relative_to(root) and folder != root
        ]
        yield from (str(folder.relative_to(root)) for folder in above if not folder.exists())


def _installation(
    place: InstallTarget,
    chosen: Chosen | None,
    changes: tuple[FileChange, ...],
    needed: Wanted,
    *notes: str,
) -> Installation:
    return Installation(
        place=place,
        interpreter=None if chosen is None else chosen.interpreter,
        rejected=() if chosen is None else chosen.rejected,
        changes=changes,
        conflicts=needed.conflicts,
        notes=(*notes, *needed.notes),
    )
