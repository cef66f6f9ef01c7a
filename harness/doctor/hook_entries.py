"""The hook entries of the settings: which are ours, for which event, and what each starts."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from harness.contract.installation import OWN_HOOKS, PLUGIN_VARIABLE, PROJECT_VARIABLE, VENDORED
from harness.doctor.settings_files import SettingsFile
from harness.guard.hooks.table import BY_NAME, GUARD, PROGRAM, HookEvent

PLACEHOLDERS = (PROJECT_VARIABLE, PLUGIN_VARIABLE)
"""All that the CLI replaces before it starts a hook in exec form, and only with braces."""
_VENDORED = PurePosixPath(VENDORED).parts[1:]
"""The end of the folder of vendored programs: a person's own .claude/hooks/run.py is not ours."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One hook of one event in one settings file."""

    file: SettingsFile
    event: str
    place: str
    """E.g. "hooks.PreToolUse[0].hooks[1]"."""
    matcher: object
    body: dict[str, Any]
    bare: bool = False
    """Whether our programs lie in hooks/ itself: in the harness's own repository and plugin."""

    @property
    def where(self) -> str:
        return f"{self.place} of {self.file.path.name}"

    @property
    def guard(self) -> bool:
        return self.event in BY_NAME and BY_NAME[self.event].kind == GUARD

    @property
    def words(self) -> tuple[str, ...]:
        """The command line, as far as it can be read."""
        command = self.body.get("command")
        if not isinstance(command, str):
            return ()
        args = self.body.get("args")
        if isinstance(args, list):
            return (command, *(word for word in args if isinstance(word, str)))
        try:
            return tuple(shlex.split(command))
        except ValueError:
            return tuple(command.split())

    @property
    def program(self) -> str | None:
        """The word that names one of our programs; None when the hook is not ours."""
        return next((word for word in self.words if self._is_ours(word)), None)

    def _is_ours(self, word: str) -> bool:
        if "/" not in word:
            # `python -m`, which we never write but people do.
            return word.startswith(("harness.guard.hooks", "harness.hooks"))
        path = PurePosixPath(word)
        above = path.parent.parts
        in_folder = (
            above[-1:] == (OWN_HOOKS,) if self.bare else above[-len(_VENDORED) :] == _VENDORED
        )
        return in_folder and path.name == PROGRAM

    def runs(self, event: HookEvent) -> bool:
        """Whether this is our hook for `event`, by its argument and its place."""
        if self.program is None or self.event != event.name:
            return False
        following = self.words[self.words.index(self.program) + 1 :]
        return following[:1] == (event.name,)


def hooks_of(file: SettingsFile, *, bare: bool = False) -> Iterator[Hook]:
    """Every hook of a settings file; malformed parts are skipped. `bare`: see Hook."""
    section = file.data.get("hooks")
    for event, groups in section.items() if isinstance(section, dict) else ():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for position, body in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(body, dict):
                    place = f"hooks.{event}[{number}].hooks[{position}]"
                    matcher = group.get("matcher")
                    yield Hook(
                        file=file, event=event, place=place, matcher=matcher, body=body, bare=bare
                    )
