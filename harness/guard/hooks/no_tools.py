"""An MCP server without tools, for a session that has none to offer: in /mcp it is connected, not
failed.

It answers what Claude Code asks of every server, one JSON line each, until stdin closes.
"""

from __future__ import annotations

import os

from harness.guard.policy.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_PROTOCOL = "2025-06-18"
"""Of the Model Context Protocol; a client that names another gets its own back."""
_NO_METHOD = -32601
_LISTS = ("tools", "prompts", "resources")
_BLOCK = 1 << 16


def serve_no_tools(instructions: str) -> NoReturn:
    """Until stdin closes. `instructions` are for the model; empty: it is told nothing."""
    rest = b""
    while block := os.read(0, _BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            reply = _reply(line, instructions)
            if reply is not None:
                _write(dumps(reply).encode("ascii") + b"\n")
    os._exit(0)


def _reply(line: bytes, instructions: str) -> dict[str, Any] | None:
    """The answer to one message; None for a notification, and for what is no request."""
    try:
        asked = loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict) or asked.get("id") is None:
        return None
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    result = _result(asked, instructions)
    if result is None:
        error = {"code": _NO_METHOD, "message": "this server offers nothing here"}
        return {**answer, "error": error}
    return {**answer, "result": result}


def _result(asked: dict[str, Any], instructions: str) -> dict[str, Any] | None:
    method = asked.get("method")
    if method == "initialize":
        parameters = asked.get("params")
        named = parameters.get("protocolVersion") if isinstance(parameters, dict) else None
        told = {"instructions": instructions} if instructions else {}
        return {
            "protocolVersion": named if isinstance(named, str) else _PROTOCOL,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "harness", "version": "0"},
            **told,
        }
    if method == "ping":
        return {}
    return next(({name: []} for name in _LISTS if method == f"{name}/list"), None)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
