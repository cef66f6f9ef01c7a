"""Receipts: what was decided about each tool call, one JSON line each, appended while the session
runs.

A receipt holds the digest of the tool's input, never the input: prompts and file contents do not
leak into it. Fields: time (UTC ISO 8601), session, role, event (PreToolUse, ...), tool,
tool_use_id, paths, permission ("allow", "deny", null), rule, reason (denials only) and input
(SHA-256 of the canonical JSON of tool_input).

Hooks add: `control` (PostToolUse, SessionStart, SessionEnd: control file -> first digits of its
SHA-256), `source`, `trigger` or `reason` of the event, `dead` (SessionStart: what leaves a guard
dead), `hooks` ("plugin": the plugin's hook left it) and `error` (the hook's own failure, rule
"hook_failed"). A call that no guard saw has the rule "unhooked". The judge of
`harness claude` adds a line for each verb of a person that the session asked for: event
"AskedPerson", `asked`, rule ("person_ran", "person_refused", ...) and exit_code.
"""

from __future__ import annotations

import os
import time as clock

from .json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# hashlib loads OpenSSL, which takes longer than the hash; this is the function that it falls back
# to
try:
    from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # Python 3.12 and newer
    from hashlib import sha256

FAILED = "hook_failed"
"""The rule of a receipt of the hook's own failure."""
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_MOST, _LONGEST = 50, 1000
"""Paths in one receipt, and characters of one text: a call of any size leaves one line that a
reader can take."""


def receipt(
    call: dict[str, Any],
    decision: dict[str, Any],
    *,
    time: str,
    session: str,
    role: str,
    event: str,
) -> dict[str, Any]:
    """One receipt of `decision` (as `decide.decide` returns it) about the hook payload `call`."""
    line: dict[str, Any] = {
        "time": time,
        "session": session,
        "role": role,
        "event": event,
        "tool": _short(call.get("tool_name")),
        "tool_use_id": _short(call.get("tool_use_id")),
        "paths": [path[:_LONGEST] for path in decision["paths"][:_MOST]],
        "permission": decision["permission"],
        "rule": decision["rule"],
        "input": digest(call.get("tool_input")),
    }
    if decision["permission"] == "deny":
        line["reason"] = decision["reason"][:_LONGEST]
    return line


def _short(value: Any) -> str | None:
    return value[:_LONGEST] if isinstance(value, str) else None


def digest(value: Any) -> str:
    """SHA-256 of a JSON value's canonical form; of its `repr` where JSON cannot hold it."""
    try:
        text = dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(value))
    return sha256_hex(text.encode("ascii"))


def sha256_hex(data: bytes) -> str:
    return str(sha256(data).hexdigest())


def file_name(session: str) -> str:
    """The name of a session's file of receipts: its id, made safe for a file name."""
    name = "".join(character if character in _SAFE else "_" for character in session[:100])
    return (name.lstrip(".") or "session") + ".jsonl"


def append_receipt(folder: str, line: dict[str, Any]) -> str:
    """Append `line` to `<folder>/<session>.jsonl` with one O_APPEND write; returns the path. Raises
    OSError.

    The session's name is made safe for a file name; a link that stands in the file's place is not
    followed.
    """
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, file_name(str(line["session"])))
    flags = (
        os.O_RDWR
        | os.O_CREAT
        | os.O_APPEND
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_CLOEXEC", 0)
    )
    data = dumps(line).encode("ascii") + b"\n"
    descriptor = os.open(path, flags, 0o644)
    try:
        if _is_torn(descriptor):
            data = b"\n" + data  # a write before was cut off; this line stays whole
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
    return path


def _is_torn(descriptor: int) -> bool:
    """Whether the file ends within a line, and goes on doing so: another process may be writing
    just now."""
    for _ in range(3):
        size = os.fstat(descriptor).st_size
        if not size or os.pread(descriptor, 1, size - 1) == b"\n":
            return False
        clock.sleep(0.002)
    return True
