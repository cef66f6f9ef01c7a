"""The control paths of a project, kept out of reach of what runs in a sandbox, or looked at before
and after it.

bwrap binds what exists read-only, so the folders are made before the sandbox is. Landlock cannot
take writing away below a writable folder, and without a sandbox there is nothing to take away:
there a change is recorded as tampering, as it is in every sandbox where a file appears that nobody
may make beforehand.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness.artifacts.content import hash_file, read_bytes
from harness.artifacts.locate import Layout
from harness.clock import Clock
from harness.contract.artifacts import (
    GIT_COMMON_DIR,
    PLUGIN_MANIFEST,
    PLUGIN_PROTECTED,
    PROTECTED,
)
from harness.contract.installation import LOCAL_SETTINGS, MCP_SERVERS, SETTINGS
from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError, UsageError
from harness.files import sha256_bytes
from harness.guard.hooks.control_digests import counted
from harness.guard.hooks.settings_keys import PLUGINS, counts, effect, parts, settings_of

MISSING = "missing"
"""Stands for the digest of a file that is not there."""
GIT = ".git"
CHANGED = "protected_path_changed"
_FILES = (".git/config",)
_NEVER_MADE = (MCP_SERVERS, GIT_COMMON_DIR, *PLUGIN_PROTECTED)
"""An empty one would be a fault of its own: Claude Code or git would say so."""
_UNREADABLE = "unreadable"
_GIT_CONFIG = ".git/config"
_OF = "#"
_ON = sha256_bytes(b"true")


class NoticedChange(Protocol):
    """A fact that says that a file was changed, as the ledger gives it back."""

    @property
    def path(self) -> str: ...
    @property
    def expected(self) -> str: ...
    @property
    def actual(self) -> str: ...
    @property
    def experiment(self) -> str | None: ...


class GuardedLedger(Protocol):
    """What the guard asks of the ledger, which stands above it."""

    @property
    def writer(self) -> str: ...
    def plan(self) -> object | None: ...
    def tampering(self) -> Sequence[NoticedChange]: ...
    def note_tampering(
        self, *, what: str, path: str, expected: str, actual: str, experiment: str | None = None
    ) -> object: ...
    def accepted_list(self, writer: str) -> str | None: ...
    def accept_control(self, *, sha256: str, files: int, by: str) -> object: ...


class GuardedProject(Protocol):
    """An opened project, as far as the guard reads it."""

    @property
    def layout(self) -> Layout: ...
    @property
    def ledger(self) -> GuardedLedger: ...
    @property
    def clock(self) -> Clock: ...


def control_names(root: Path) -> tuple[str, ...]:
    """The control paths of the project at `root`, relative to it, whether they exist or not."""
    return (*PROTECTED, *(PLUGIN_PROTECTED if (root / PLUGIN_MANIFEST).is_file() else ()))


def protected_paths(root: Path) -> tuple[Path, ...]:
    """The protected paths that exist below `root`, after those that were missing and may be made
    are made (empty).

    Without a repository nothing is made below .git; where .git is a file (a worktree), it is
    protected itself.
    """
    git, names = root / GIT, control_names(root)
    for path in (root / name for name in names if name not in _NEVER_MADE):
        if os.path.lexists(path) or (git in path.parents and not git.is_dir()):
            continue
        if path.relative_to(root).as_posix() in _FILES:
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
    kept = tuple(path for name in names if (path := root / name).exists())
    return (*kept, git) if git.is_file() else kept


def in_place(root: Path, paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those of `paths` that exist. Raises RefusedError (link_in_place) for one below `root` that a
    link leads out of it: a sandbox that listed it would open what the link points to."""
    existing = tuple(path for path in paths if os.path.lexists(path))
    for path in existing:
        if path.is_relative_to(root) and not path.resolve().is_relative_to(root):
            raise RefusedError(
                f"{path} leads out of the project, to {path.resolve()}, through a link.",
                hint="Find out who made the link, and put a real file or folder in its place.",
                code="link_in_place",
            )
    return tuple(path for path in existing if path.exists())


@contextlib.contextmanager
def watching(
    project: GuardedProject, sandbox: SandboxKind, experiment: Callable[[], str | None]
) -> Iterator[None]:
    """Record as tampering what changes at the protected paths meanwhile, where the sandbox cannot
    keep them as they are.

    `experiment` is asked afterwards for the one whose gates then fail; None blames no experiment.
    Who made the change is not known: a person who edits them meanwhile is noticed as well.
    """
    root = project.layout.root
    names = _unheld(root) if sandbox is SandboxKind.BWRAP else (*control_names(root), GIT)
    before = listing(root, names)
    try:
        yield
    finally:
        note_changes(project.ledger, root, before, names, experiment=experiment())


def _unheld(root: Path) -> tuple[str, ...]:
    """The control paths that no sandbox can hold as they are, for they do not exist and are not
    made."""
    return tuple(
        name
        for name in control_names(root)
        if name in _NEVER_MADE and not os.path.lexists(root / name)
    )


def listing(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Entry -> SHA-256 of all that counts below the control paths `names`: the entry of a file is
    its relative path. A link counts by the text of its target.

    A settings file has an entry for each part that is not known to be harmless, and none of its
    own; one that is no JSON object has one. Of .git only the file of a worktree is looked at.
    """
    found = {}
    for name in names:
        top = root / name
        for path in [top] if name == GIT or not _is_folder(top) else _below(top):
            if (digest := _digest(path)) is not None:
                found.update(_entries(path.relative_to(root).as_posix(), path, digest))
    return found


def _entries(name: str, path: Path, digest: str) -> dict[str, str]:
    if name not in (SETTINGS, LOCAL_SETTINGS, _GIT_CONFIG) or path.is_symlink():
        return {name: digest}
    try:
        data = read_bytes(path)
    except UsageError:
        return {name: digest}
    if name == _GIT_CONFIG:
        return {name: sha256_bytes(counted(name, data))}
    settings = settings_of(data)
    if settings is None:
        return {name: digest}
    there = parts(settings, carries=name == SETTINGS)
    return {entry_of(name, part): sha256_bytes(text.encode()) for part, text in there.items()}


def file_and_part(entry: str) -> tuple[str, str]:
    """(relative path, name of the part or "") of an entry of `listing`."""
    for name in (SETTINGS, LOCAL_SETTINGS):
        if entry.startswith(name + _OF):
            return name, entry[len(name) + len(_OF) :]
    return entry, ""


def entry_of(path: str, part: str) -> str:
    """The other way round."""
    return f"{path}{_OF}{part}" if part else path


def is_change(entry: str, expected: str, actual: str) -> bool:
    """Whether the two digests of an entry tell of a change; our plugin switched on is none."""
    gained = expected == MISSING and actual == _ON
    return expected != actual and not (gained and file_and_part(entry)[1].startswith(PLUGINS))


def is_grave(part: str) -> bool:
    """Whether a change of the part, "" for a whole file, can do something to the guards. A key that
    the harness does not know is told and accuses nobody."""
    return not part or counts(part)


def part_words(part: str, expected: str, actual: str) -> str:
    """What became of a part, as the end of a sentence about its file."""
    verb = "sets" if expected == MISSING else "has another"
    return f"{'no longer has' if actual == MISSING else verb} {part}, {effect(part)}"


def note_changes(
    ledger: GuardedLedger,
    root: Path,
    before: Mapping[str, str],
    names: Iterable[str],
    *,
    experiment: str | None,
) -> None:
    """Record each entry that counts and is not as `before`, once a change. A new repository is no
    change: git makes no common folder in it."""
    after = listing(root, names)
    had_git = any(path.startswith(GIT) for path in before)
    known = {
        (fact.path, fact.expected, fact.actual, fact.experiment) for fact in ledger.tampering()
    }
    for entry in sorted({*before, *after}):
        expected, actual = before.get(entry, MISSING), after.get(entry, MISSING)
        if not is_change(entry, expected, actual) or not is_grave(file_and_part(entry)[1]):
            continue
        is_new = entry.startswith(GIT) and not had_git and entry != GIT_COMMON_DIR
        if is_new:
            continue
        if (entry, expected, actual, experiment) not in known:
            ledger.note_tampering(
                what=CHANGED, path=entry, expected=expected, actual=actual, experiment=experiment
            )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _below(top: Path) -> Iterator[Path]:
    """Files and links below `top`, links to folders too; nothing behind a link."""
    for folder, directories, names in os.walk(top):
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        yield from (Path(folder, name) for name in (*names, *links))


def _digest(path: Path) -> str | None:
    """None for a folder and for nothing at all."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            return None
        return (
            sha256_bytes(b"link:" + os.fsencode(path.readlink()))
            if stat.S_ISLNK(mode)
            else hash_file(path)
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (UsageError, OSError):
        return _UNREADABLE
