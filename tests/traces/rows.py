"""Rows as Claude Code writes them into a transcript, for tests that need their own."""

import json
from pathlib import Path
from typing import Any

MODEL = "claude-test-1"


class Transcript:
    """Writes `<folder>/<session>.jsonl`, a row a call, each a second after the one before unless
    `at` says when."""

    def __init__(
        self, path: Path, *, session: str, cwd: str | Path, agent: str | None = None
    ) -> None:
        self.path = path
        self.session, self.cwd, self.agent = session, str(cwd), agent
        self.rows: list[dict[str, Any]] = []

    def row(self, kind: str, *, at: str | None = None, **fields: Any) -> dict[str, Any]:
        number = len(self.rows)
        made = {
            "parentUuid": self.rows[-1]["uuid"] if self.rows else None,
            "isSidechain": self.agent is not None,
            "type": kind,
            "uuid": f"{self.path.stem}-{number}",
            "timestamp": at or f"2026-01-01T00:00:{number:02}.000Z",
            "cwd": self.cwd,
            "sessionId": self.session,
            **({"agentId": self.agent} if self.agent else {}),
            **fields,
        }
        self.rows.append(made)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(made) + "\n")
        return made

    def prompt(self, text: str, **more: Any) -> None:
        self.row("user", message={"role": "user", "content": text}, **more)

    def call(self, identifier: str, tool: str, at: str | None = None, **given: Any) -> None:
        block = {"type": "tool_use", "id": identifier, "name": tool, "input": given}
        usage = {"output_tokens": 1}
        message = {
            "id": f"msg-{identifier}",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "usage": usage,
        }
        self.row("assistant", at=at, message=message)

    def result(
        self,
        identifier: str,
        text: str = "ok",
        *,
        error: bool = False,
        at: str | None = None,
        **more: Any,
    ) -> None:
        block = {
            "type": "tool_result",
            "tool_use_id": identifier,
            "content": text,
            "is_error": error,
        }
        self.row("user", at=at, message={"role": "user", "content": [block]}, **more)
