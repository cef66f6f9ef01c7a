"""Sessions of the real CLI through the Agent SDK, as a program of its own, without hooks or
callbacks of the SDK."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from harness.model_gateway.wire import RecordedRequest
from tests.interactive.gateway import OpenGateway, Turn, open_gateway
from tests.interactive.place import clean_environment, cli

PROGRAM = Path(__file__).with_name("sdk_program.py")
FILES_SERVER = {
    "files": {
        "type": "stdio",
        "command": "/usr/bin/python3",
        "args": ["-I", str(Path(__file__).with_name("files_server.py"))],
    }
}
FROM_PROJECT: dict[str, Any] = {
    "setting_sources": ["project"],
    "permission_mode": "acceptEdits",
    "allowed_tools": ["Bash", "Read", "Write", "Edit", "Agent", "mcp__files", "mcp__harness"],
    "mcp_servers": FILES_SERVER,
}
"""Everything is allowed by the person's settings: what is denied was denied by a hook."""
HOOK = "hook error: harness: "
SAID = "harness: "
"""Some tools, Monitor among them, show a denial without the CLI's words before it. A command that
ran and failed says its exit code first."""


@dataclass(frozen=True)
class Played:
    """What a session left; the fields of sdk_program's answer, and what the model was asked."""

    document: dict[str, Any]
    gateway: OpenGateway

    @property
    def requests(self) -> list[RecordedRequest]:
        return [request for request in self.gateway.requests if request.subagent is None]

    def text(self, label: str) -> str:
        """The result of a call, for the model."""
        return str(self.document["results"][label]["text"])

    def failed(self, label: str) -> bool:
        return bool(self.document["results"][label]["error"])

    def held(self, label: str) -> bool:
        """Whether a hook denied the call."""
        text = self.text(label)
        return self.failed(label) and (HOOK in text or text.startswith(SAID))

    def not_held(self, calls: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """The calls that no hook denied, with their results."""
        return {item["id"]: self.text(item["id"]) for item in calls if not self.held(item["id"])}

    @property
    def passed_labels(self) -> set[str]:
        return {label for label, result in self.document["results"].items() if not result["error"]}


def handed_over(home: Path) -> None:
    """Wait for the hand-off that the hook of a session's end began: nothing else waits for it."""
    deadline = time.monotonic() + 60
    while any(
        "--left" in process.info["cmdline"] and process.info["environ"].get("HOME") == str(home)
        for process in psutil.process_iter(["cmdline", "environ"])
        if process.info["cmdline"] and process.info["environ"]
    ):
        assert time.monotonic() < deadline, "a hand-off that does not end"
        time.sleep(0.05)


def play(
    cwd: Path,
    home: Path,
    prompts: Mapping[str, Sequence[Turn]],
    *,
    subagents: Mapping[str, Sequence[Turn]] | None = None,
    send: Sequence[str] | None = None,
    options: Mapping[str, Any] = FROM_PROJECT,
    timeout: float = 120.0,
) -> Played:
    """Start one session in `cwd`, send the prompts one after the other, and end it."""
    with open_gateway(prompts, subagents) as gateway:
        spec = {
            "cli": str(cli()),
            "cwd": str(cwd),
            "prompts": list(send or prompts),
            "options": dict(options),
        }
        done = subprocess.run(
            [sys.executable, str(PROGRAM)],
            input=json.dumps(spec),
            env=clean_environment(home, gateway),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert gateway.failure is None, gateway.failure
        assert done.returncode == 0, done.stderr
        handed_over(home)
        return Played(json.loads(done.stdout), gateway)
