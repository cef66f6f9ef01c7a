"""The receipts of a session, as its hooks write and read them."""

from __future__ import annotations

import os
import time

from harness.guard.policy.json_text import loads
from harness.guard.policy.receipt import append_receipt, file_name, receipt

from .judge_socket import hand_over, is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .projects import HookedProject

PLUGIN = "plugin"
"""Who left a receipt, where it was the plugin's hook and not the project's own."""
_BLOCK = 1 << 16


def session_of(call: dict[str, Any]) -> str:
    name = call.get("session_id")
    return name if isinstance(name, str) and name else "unknown"


def stamp(now: float) -> str:
    """UTC ISO 8601 with milliseconds and a Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def said(
    permission: str | None, rule: str, reason: str = "", paths: list[str] | None = None
) -> dict[str, Any]:
    """What a receipt is made of, in the form of policy.decide's answer."""
    return {"permission": permission, "rule": rule, "reason": reason, "paths": paths or []}


def note(
    project: HookedProject,
    call: dict[str, Any],
    what: dict[str, Any],
    *,
    event: str,
    role: str,
    now: float,
    **more: Any,
) -> None:
    """Append one receipt to the project's file of this session. Raises OSError."""
    if project.silent:
        return
    line = receipt(call, what, time=stamp(now), session=session_of(call), role=role, event=event)
    line = {**line, **({"hooks": PLUGIN} if project.by_plugin else {}), **more}
    if not is_inside():
        append_receipt(project.receipts, line)
    elif project.root == os.path.realpath(os.environ.get("CLAUDE_PROJECT_DIR", "")):
        hand_over(line)
    # Inside, another project is read-only: nothing can be done to it that its audit must know.


def lines_back(project: HookedProject, session: str) -> Iterator[dict[str, Any]]:
    """The session's receipts, newest first; a damaged line is passed over. Nothing where there is
    no file."""
    try:
        descriptor = os.open(os.path.join(project.receipts, file_name(session)), os.O_RDONLY)
    except OSError:
        return
    try:
        # From the end, block by block: a long session's file is not read for its newest lines.
        place = os.lseek(descriptor, 0, os.SEEK_END)
        rest = b""
        while place > 0:
            size = min(_BLOCK, place)
            place -= size
            block = os.pread(descriptor, size, place) + rest
            first, *whole = block.split(b"\n") if place > 0 else [b"", *block.split(b"\n")]
            rest = first  # it may begin in the block before
            for text in reversed(whole):
                line = _line(text)
                if line is not None:
                    yield line
    finally:
        os.close(descriptor)


def _line(text: bytes) -> dict[str, Any] | None:
    try:
        value = loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
