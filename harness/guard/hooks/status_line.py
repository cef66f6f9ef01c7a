"""The status line of Claude Code: the person's own one, then
where the work stands.

The project's setting hides the one in the person's own
settings, so that one is run here first, with the same input.
Nothing that fails in ours takes theirs away.
"""

from __future__ import annotations

import os

from harness.guard.policy.json_text import dumps

from .hook_scene import HookAnswer
from .projects import read_json
from .standing import LONGEST, status_line
from .table import PROGRAM, STATUS_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene

_LARGEST = 60_000
"""Bytes of input: less than a pipe holds, so that writing it
never waits."""
_SIGPIPE = 13
"""Python ignores it, and a program that it starts would too."""


def shown(call: dict[str, Any], scene: HookScene) -> HookAnswer:
    _show(_theirs(call, scene))
    home = scene.home
    if home is None:
        return HookAnswer()
    # Claude Code says how wide its terminal is.
    columns = scene.environment.get("COLUMNS", "")
    wide = int(columns) if columns.isdecimal() and columns.isascii() else LONGEST
    return HookAnswer(line=status_line(home, wide))


def _show(text: bytes) -> None:
    """As it is, with its colours: it is the person's own."""
    data = text if not text or text.endswith(b"\n") else text + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _theirs(call: dict[str, Any], scene: HookScene) -> bytes:
    """What the command of the person's own settings prints;
    nothing where there is none."""
    folder = scene.environment.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    settings, _ = read_json(os.path.join(folder, "settings.json"))
    entry = settings.get("statusLine") if isinstance(settings, dict) else None
    command = entry.get("command") if isinstance(entry, dict) else None
    given = dumps(call).encode("utf-8")
    if not isinstance(command, str) or _is_ours(command) or len(given) > _LARGEST:
        return b""
    return _run(command, given, dict(scene.environment))


def _is_ours(command: str) -> bool:
    return f"{PROGRAM} {STATUS_LINE.name}" in command.replace('"', "").replace("'", "")


def _run(command: str, given: bytes, environment: dict[str, str]) -> bytes:
    """By hand: `subprocess` takes longer to import than all the
    rest."""
    (reads, given_to), (answers, writes) = os.pipe(), os.pipe()
    os.write(given_to, given)
    os.close(given_to)
    ends = [(os.POSIX_SPAWN_DUP2, reads, 0), (os.POSIX_SPAWN_DUP2, writes, 1)]
    words = ["sh", "-c", command]
    try:
        child = os.posix_spawn(
            "/bin/sh", words, environment, file_actions=ends, setsigdef=[_SIGPIPE]
        )
    except OSError:
        return b""
    finally:
        os.close(reads)
        os.close(writes)
    printed = b""
    while block := os.read(answers, 1 << 16):
        printed += block
    os.waitpid(child, 0)
    return printed
