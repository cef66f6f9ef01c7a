"""Which processes are Claude Code."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import psutil

_PROGRAM = "claude"
_INTERPRETERS = {"node", "nodejs", "bun", "deno", "sh", "bash", "dash", "zsh"}
_PACKAGE = ("@anthropic-ai", "claude-code")
"""The folders of the npm package, whose cli.js an interpreter runs."""
_VERSIONS = ("claude", "versions")
"""Where the CLI's own installer keeps its programs, each named after its version."""


def claude_above() -> Iterator[psutil.Process]:
    """The Claude Code processes above this one, the nearest first. Raises psutil.Error."""
    return (process for process in psutil.Process().parents() if _is_claude(process))


def is_claude_code(name: str, argv: Sequence[str], program: str) -> bool:
    """Whether it is a Claude Code CLI; unknown arguments are empty."""
    started, script = "".join(argv[:1]), ""
    if PurePath(started).name in _INTERPRETERS:
        script = next((word for word in argv[1:] if not word.startswith("--")), "")
    names = {name, PurePath(started).name, PurePath(script).name}
    return (
        _PROGRAM in names
        or _lies_in(_PACKAGE, script)
        or any(_lies_in(_VERSIONS, path) for path in (started, program))
    )


def _lies_in(folders: tuple[str, str], path: str) -> bool:
    return folders in itertools.pairwise(PurePath(path).parts)


def _is_claude(process: psutil.Process) -> bool:
    # The command line and program of another user's process may be hidden; its name is not.
    argv, program = [], ""
    with contextlib.suppress(psutil.Error):
        argv = process.cmdline()
    with contextlib.suppress(psutil.Error):
        program = process.exe()
    with contextlib.suppress(psutil.NoSuchProcess):
        return is_claude_code(process.name(), argv, program)
    return False
