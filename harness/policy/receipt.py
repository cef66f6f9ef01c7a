"""Receipts: what was decided about each tool call, one JSON line each, appended while the session runs.

A receipt holds the digest of the tool's input, never the input: prompts and file contents do not leak into it. Fields:
time (UTC ISO 8601), session, role, event (PreToolUse, ...), tool, tool_use_id, paths, permission ("allow", "deny",
null), rule, reason (denials only) and input (SHA-256 of the canonical JSON of tool_input).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def receipt(
    call: dict[str, Any], decision: dict[str, Any], *, time: str, session: str, role: str, event: str
) -> dict[str, Any]:
    """One receipt of `decision` (as `decide.decide` returns it) about the hook payload `call`."""
    line: dict[str, Any] = {
        "time": time,
        "session": session,
        "role": role,
        "event": event,
        "tool": call.get("tool_name"),
        "tool_use_id": call.get("tool_use_id"),
        "paths": decision["paths"],
        "permission": decision["permission"],
        "rule": decision["rule"],
        "input": digest(call.get("tool_input")),
    }
    if decision["permission"] == "deny":
        line["reason"] = decision["reason"]
    return line


def digest(value: Any) -> str:
    """SHA-256 of a JSON value's canonical form; of its `repr` where JSON cannot hold it."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(value))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def append_receipt(folder: str, line: dict[str, Any]) -> str:
    """Append `line` to `<folder>/<session>.jsonl` with one O_APPEND write; returns the path. Raises OSError.

    The session's name is made safe for a file name; a link that stands in the file's place is not followed.
    """
    name = _UNSAFE.sub("_", str(line["session"]))[:100].lstrip(".") or "session"
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".jsonl")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    data = json.dumps(line, sort_keys=False, separators=(",", ":"), ensure_ascii=True).encode("ascii") + b"\n"
    descriptor = os.open(path, flags, 0o644)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
    return path
