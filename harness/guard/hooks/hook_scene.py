"""One hook call: where the hook stands, which projects it meets;
and its answer."""

from __future__ import annotations

import os
import sys

from .projects import Projects, installation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .projects import HookedProject

PASSED, REFUSED = 0, 2
"""The only two: Claude Code takes any other status for a fault
of the hook and goes on."""


class HookAnswer:
    """What a handler answers; the frame writes it as Claude Code
    reads it.

    `block` says to the model why its call, or the end of its
    turn, is blocked. `context` is for the model too, `person`
    is one line for the person. `line` is the status line.
    `errors` goes to stderr.
    """

    __slots__ = ("block", "code", "context", "errors", "line", "person")

    def __init__(
        self,
        code: int = PASSED,
        *,
        block: str = "",
        context: str = "",
        person: str = "",
        line: str = "",
        errors: str = "",
    ) -> None:
        self.code = code
        self.block = block
        self.context = context
        self.person = person
        self.line = line
        self.errors = errors


def refused(reason: str, hint: str) -> HookAnswer:
    """Deny, with what to do instead; the model reads it."""
    return HookAnswer(REFUSED, block=f"harness: {reason} {hint}".rstrip())


class HookScene:
    """`home` is the project whose hook this is: the one that
    installed it, or the session's for a plugin's hook."""

    def __init__(
        self, call: dict[str, Any], program: str, environment: Mapping[str, str], now: float
    ) -> None:
        self.environment = environment
        self.now = now
        self.installed = installation(program, environment)
        self.projects = Projects(by_plugin=self.installed.root is None)
        cwd = call.get("cwd")
        self.cwd = cwd if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd else ""
        self.home = self._home()

    def _home(self) -> HookedProject | None:
        root = self.installed.root
        if root is not None:
            return self.projects.at(root)
        for place in (self.environment.get("CLAUDE_PROJECT_DIR", ""), self.cwd, _own_cwd()):
            project = self.projects.containing(place) if place.startswith("/") else None
            if project:
                return project
        return None

    @property
    def gone(self) -> str:
        """The folder whose project installed this hook and is no
        longer there; empty when all is as it was."""
        return "" if self.home else self.installed.root or ""

    def met(self, places: Iterable[str]) -> list[HookedProject]:
        """The home project first, then each that contains one of
        `places`, and those around them: what they protect
        stays so below another project."""
        projects = [] if self.home is None else [self.home]
        for place in places:
            project = self.projects.containing(place)
            while project is not None and project not in projects:
                projects.append(project)
                project = self.projects.containing(
                    os.path.dirname(project.root)
                )  # one within another's files
        return projects

    def protected(self) -> list[str]:
        """What runs as this guard, with its compiled modules: no
        project's agent changes it."""
        return [*self.installed.protected(), *([sys.pycache_prefix] if sys.pycache_prefix else [])]

    @property
    def claude_folder(self) -> str:
        """Claude Code's own folder."""
        named = self.environment.get("CLAUDE_CONFIG_DIR", "")
        return named if os.path.isabs(named) else os.path.expanduser(os.path.join("~", ".claude"))

    def claude(self) -> dict[str, list[str]]:
        """Of Claude Code's own folder, for the policy:
        `off_limits`, where settings can switch this guard off
        and transcripts tell what was done; `notes`, globs of
        what Claude Code itself has the model write there."""
        folder = self.claude_folder
        folders = dict.fromkeys((os.path.normpath(folder), os.path.realpath(folder)))
        own = [
            os.path.join(place, *parts)
            for place in folders
            for parts in (("plans",), ("projects", "*", "memory"))
        ]
        return {
            "off_limits": [*folders, os.path.expanduser(os.path.join("~", ".claude.json"))],
            "notes": own,
        }


def _own_cwd() -> str:
    """Where the hook was started: the session's directory too;
    empty when it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""
