"""Which projects judge a call: found from where a path leads, from git worktrees, and from where
the hook stands.

A project is a folder with `.harness/config.toml`. A linked git worktree has the policy of the main
one, applied to its own files. Hooks that a project installed belong to that project wherever the
session has gone; a plugin's belong to the project of the session.
"""

from __future__ import annotations

import os

from harness.guard.policy.json_text import loads
from harness.guard.policy.snapshot import MISSING, in_tree, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CONFIG = os.path.join(".harness", "config.toml")
SNAPSHOT = os.path.join(".harness", "policy.json")
FACTS = os.path.join(".harness", "memory", "facts")
RECEIPTS = os.path.join(".harness", "receipts")
SETTINGS = os.path.join(".claude", "settings.json")
LOCAL_SETTINGS = os.path.join(".claude", "settings.local.json")
MANIFEST = "MANIFEST.json"
FILTER = "domain/plain_text.py"
"""The one module outside guard/ that hooks import: what they say goes through it."""
"""Beside installed hooks. This library imports nothing but itself, so a test holds these equal to
the contract's."""


class HookInstallation:
    """Where the running hook stands. `root` is the project that installed it; None for a plugin's
    hook."""

    __slots__ = ("folder", "library", "root")

    def __init__(self, folder: str, library: str, root: str | None) -> None:
        self.folder = folder
        self.library = library
        self.root = root

    def protected(self) -> list[str]:
        """What runs as the guard, absolute: nobody whom it guards changes it, whichever project
        they are in."""
        return [
            self.folder,
            os.path.join(self.library, "guard", "policy"),
            os.path.join(self.library, "guard", "hooks"),
        ]


def installation(program: str, environment: Mapping[str, str]) -> HookInstallation:
    """`program` is the path of the hook's own file, as Claude Code started it; neither cwd nor a
    variable decides."""
    folder = os.path.dirname(os.path.realpath(program))
    vendored = os.path.join(folder, "lib")
    if os.path.isdir(vendored):
        written = os.path.dirname(os.path.abspath(program))
        roots = [
            os.path.normpath(os.path.join(place, "..", "..", "..")) for place in (folder, written)
        ]
        project_root = next((os.path.realpath(root) for root in roots if _source(root)), roots[0])
        return HookInstallation(folder, os.path.join(vendored, "harness"), project_root)
    above = os.path.dirname(folder)
    plugin = environment.get("CLAUDE_PLUGIN_ROOT")
    is_plugin = bool(plugin) and os.path.realpath(str(plugin)) == above
    return HookInstallation(folder, os.path.join(above, "harness"), None if is_plugin else above)


class HookedProject:
    """One project as the hooks see it. `source` holds its policy and receipts: its root, or the
    main worktree's. What is in work, of `snapshot`, is the root's own."""

    __slots__ = ("_main", "by_plugin", "mend", "root", "silent", "snapshot", "source", "trouble")

    def __init__(self, root: str, source: str, *, by_plugin: bool) -> None:
        self.root = root
        self.source = source
        self.silent = False
        """Whether another hook leaves the receipts."""
        self.by_plugin = by_plugin
        """Whether the plugin's hook looks at it, not one that a project installed."""
        self.snapshot: dict[str, Any] = {}
        self._main: dict[str, Any] = {}
        self.mend = ""
        """The command that mends the trouble."""
        self.trouble = self._load()
        """(rule, reason, hint) when nothing can be decided from its policy; None when it can."""

    def _load(self) -> tuple[str, str, str] | None:
        path = os.path.join(self.source, SNAPSHOT)
        value, unread = read_json(path)
        unusable = ("snapshot_damaged", unread) if unread else problem(value)
        if unusable is None and not _same(value["root"], self.source):
            reason = f"It was written for {value['root']}, and the project is at {self.source}."
            unusable = ("snapshot_moved", reason)
        if unusable is None:
            self.snapshot, self._main = self._in_work(value)
            unusable = problem(self.snapshot)
        if unusable is None:
            return None
        rule, reason = unusable
        verb, does = "harness render", "writes it again"
        if rule == MISSING and _has_files(os.path.join(self.source, FACTS)):
            verb = "harness ledger import"
            does = "reads the facts of this clone in and writes it"
        command = f"{verb} --project {self.source}"
        self.mend = verb if self.root == self.source else command
        hint = (
            f"A person runs `{command}` in their own terminal, which {does}; then the step is"
            " repeated."
        )
        return rule, f"{path}: {reason}", hint

    def _in_work(self, value: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The snapshot with what this tree has in work, and the main one's for what is done to its
        files from here: its open experiment is its own. A worktree without a project of its own
        works on the main one's."""
        if self.root == self.source or not os.path.isfile(os.path.join(self.root, CONFIG)):
            return value, value
        return {**value, **in_tree(value, self.root)}, {**value, **in_tree(value, "")}

    def text(self, key: str, default: str) -> str:
        """An optional path of the snapshot, absolute."""
        value = self.snapshot.get(key)
        return os.path.join(self.source, value if isinstance(value, str) and value else default)

    def page(self, key: str, default: str) -> str:
        """As `text`, of this tree: each has pages of its own; the main one's where it has none."""
        there = self.text(key, default)
        own = os.path.join(self.root, os.path.relpath(there, self.source))
        return own if os.path.isfile(own) else there

    @property
    def receipts(self) -> str:
        return self.text("receipts", RECEIPTS)

    def judges(self) -> list[dict[str, Any]]:
        """Its snapshot; for a linked worktree the same rules over the worktree's files, and over
        the main one's."""
        if self.root == self.source:
            return [self.snapshot]
        link = os.path.join(self.root, ".git")
        protected = [*self.snapshot["protected"], *([link] if os.path.isfile(link) else [])]
        return [{**self.snapshot, "root": self.root, "protected": protected}, self._main]


class Projects:
    """The projects that one call meets; each is read once."""

    def __init__(self, *, by_plugin: bool = False) -> None:
        self._by_plugin = by_plugin
        self._known: dict[str, HookedProject] = {}
        self._roots: dict[str, tuple[str, str] | None] = {}

    def at(self, root: str) -> HookedProject | None:
        """The project whose root is `root`, or None where there is none."""
        root = os.path.realpath(root)
        source = _source(root)
        return None if source is None else self._project(root, os.path.realpath(source))

    def containing(self, path: str) -> HookedProject | None:
        """The nearest project at or above the absolute `path`, as it is written; it need not
        exist."""
        place = self._find(path)
        return (
            None
            if place is None
            else self._project(os.path.realpath(place[0]), os.path.realpath(place[1]))
        )

    def _project(self, root: str, source: str) -> HookedProject:
        if root not in self._known:
            self._known[root] = HookedProject(root, source, by_plugin=self._by_plugin)
        return self._known[root]

    def _find(self, folder: str) -> tuple[str, str] | None:
        """(root, source) of the nearest project; the answer is remembered for each folder on the
        way."""
        passed: list[str] = []
        project: tuple[str, str] | None = None
        while folder not in self._roots:
            passed.append(folder)
            project = _nearest(passed)
            above = os.path.dirname(folder)
            if project or above == folder:
                break
            folder = above
        else:
            project = self._roots[folder]
        for place in passed:
            self._roots[place] = project
        return project


def read_json(path: str) -> tuple[Any, str]:
    """(value, "") of a JSON file; (None, "") when there is none; (None, why) when it cannot be read
    as JSON."""
    try:
        with open(path, "rb") as file:
            return loads(file.read().decode("utf-8")), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError) as error:
        return None, f"it cannot be read ({type(error).__name__}: {error})."


def _has_files(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def _nearest(folders: list[str]) -> tuple[str, str] | None:
    """The project at the last of `folders`, which go up one by one; or, when that is a linked
    worktree's top, at the deepest of them that the main worktree says is one."""
    last = folders[-1]
    if os.path.isfile(os.path.join(last, CONFIG)):
        return last, _source(last) or last
    main = main_worktree(last)
    for folder in folders if main else ():
        source = _beside(str(main), last, folder)
        if os.path.isfile(os.path.join(source, CONFIG)):
            return folder, source
    return None


def _beside(main: str, top: str, folder: str) -> str:
    """The folder of the main worktree that is what `folder` is in the linked one with the top
    `top`."""
    return os.path.join(main, folder[len(top) :].lstrip("/")).rstrip("/")


def _source(root: str) -> str | None:
    """Where the policy of the project at `root` stands; None when no project is there."""
    here = os.path.isfile(os.path.join(root, CONFIG))
    folder = root
    while True:
        main = main_worktree(folder)
        if main is not None:
            source = _beside(main, folder, root)
            if os.path.isfile(os.path.join(source, CONFIG)):
                return source
        above = os.path.dirname(folder)
        if main is not None or os.path.isdir(os.path.join(folder, ".git")) or above == folder:
            return root if here else None
        folder = above


def main_worktree(folder: str) -> str | None:
    """The main worktree when `folder` is the top of a linked one: its .git file leads to the common
    folder."""
    try:
        with open(os.path.join(folder, ".git"), "rb") as file:
            text = os.fsdecode(file.read(4096)).strip()
        if not text.startswith("gitdir:"):
            return None
        place = os.path.join(folder, text[len("gitdir:") :].strip())
        with open(os.path.join(place, "commondir"), "rb") as file:
            common = os.path.realpath(os.path.join(place, os.fsdecode(file.read(4096)).strip()))
    except (OSError, ValueError):
        return None
    main = os.path.dirname(common)
    return (
        main if os.path.basename(common) == ".git" and main != os.path.realpath(folder) else None
    )


def _same(root: str, other: str) -> bool:
    """Whether both name one folder: a file system may know it by names that differ in case or
    link."""
    if root == other:
        return True
    try:
        return os.path.samefile(root, other)
    except OSError:
        return False
