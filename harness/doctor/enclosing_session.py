"""The Claude Code session that encloses the doctor, if any: how and where it was started."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.audit.claude_process import claude_above


@dataclass(frozen=True, kw_only=True)
class EnclosingSession:
    """A `claude` process among our ancestors."""

    words: tuple[str, ...]
    """Its command line."""
    folder: Path
    """Where it was started: a `cd` in the session does not change it."""

    def options(self) -> Iterator[tuple[str, str]]:
        """(option, value or "") of the command line."""
        words = self.words[1:]
        for position, word in enumerate(words):
            if word == "--":
                return
            name, joined, value = word.partition("=")
            if name.startswith("--"):
                following = words[position + 1] if position + 1 < len(words) else ""
                yield name, value if joined else following


def enclosing_session() -> EnclosingSession | None:
    """The nearest `claude` above this process; None if there is none or it is unknown."""
    with contextlib.suppress(psutil.Error):
        for process in claude_above():
            with contextlib.suppress(psutil.Error, OSError):
                return EnclosingSession(words=tuple(process.cmdline()), folder=Path(process.cwd()))
    return None


def switched_off_by(session: EnclosingSession) -> list[str]:
    """The options of the session that switch off the project's hooks."""
    options = []
    for name, value in session.options():
        if name in ("--bare", "--safe-mode"):
            options.append(name)
        elif name == "--setting-sources" and "project" not in value.replace(" ", "").split(","):
            options.append(f"--setting-sources {value}".rstrip())
        elif name == "--settings" and _disables(value, session.folder):
            options.append("--settings with disableAllHooks")
    return options


def _disables(value: str, folder: Path) -> bool:
    """Whether the value of --settings, JSON or the path of a file, switches hooks off."""
    try:
        text = value if value.lstrip().startswith("{") else (folder / value).read_text("utf-8")
        settings = json.loads(text)
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and settings.get("disableAllHooks") not in (
        None,
        False,
        "false",
    )
