"""A client of `harness mcp`: JSON-RPC lines over its stdin and stdout; every line that it prints
must be one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class McpClient:
    """One server process and its session. A context manager; leaving it closes the server's
    stdin."""

    def __init__(self, project: Path, env: Mapping[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness", "mcp", "--project", str(project), *words],
            cwd=project,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._asked = 0

    def __enter__(self) -> "McpClient":
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        }
        self.server = self.ask("initialize", client)["serverInfo"]
        self._send({"method": "notifications/initialized"})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rest, self.stderr = self.process.communicate(timeout=60)

    def ask(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises AssertionError for an error of the protocol."""
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": dict(parameters)})
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer.get("id") == self._asked, answer
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in self.ask("tools/list", {})["tools"]}

    def call(self, tool: str, **arguments: Any) -> tuple[Any, bool]:
        """(what it answered, whether it is an error); JSON is read, other text stays text."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        (content,) = result["content"]
        text: str = content["text"]
        return json.loads(text) if text.startswith("{") else text, bool(result.get("isError"))

    def _send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
