"""A stdio MCP server of somebody else. Its one tool writes a file where it is told:
`write_file(path, content)`."""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "write_file",
    "description": "Write a file",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
}


def answer(method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "files", "version": "1"}
        return {
            "protocolVersion": given["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": server,
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        Path(given["arguments"]["path"]).write_text(given["arguments"]["content"], "utf-8")
        return {"content": [{"type": "text", "text": "written"}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params", {}))
            print(
                json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True
            )
