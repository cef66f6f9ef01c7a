"""One session of the real Claude Code CLI against a scripted model that makes the calls it is told,
and nothing else.

The CLI gets an environment made from nothing, folders of the lab's own and the loopback gateway.
With `guarded` it reads the project's settings, so that the project's command hooks judge each call;
without, it reads none.
"""

import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cheats.place import Place
from harness.driver.environment import DUMMY_KEY, bundled_cli
from harness.errors import GatewayError
from harness.model_gateway.gateway import Gateway, Reply
from harness.model_gateway.wire import Message, RecordedRequest, as_events, as_json

_LONGEST_S = 240.0
_BY_HOOK = "hook error"
_TOOLS = "Bash Read Write Edit Agent mcp__files"
Call = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Script:
    """An Answerer: the main thread makes `turns`, a message each, a subagent `within`; then both
    are done."""

    turns: Sequence[Sequence[Call]]
    within: Sequence[Call] = ()

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        message = self._message(request)
        if request.stream:
            return Reply(body=_chunks(message), headers={"content-type": "text/event-stream"})
        return Reply(body=json.dumps(as_json(message)).encode())

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return Reply(body=json.dumps({"input_tokens": request.bytes // 4}).encode())

    async def close(self) -> None:
        return None

    def _message(self, request: RecordedRequest) -> Message:
        turns = [self.within] if request.subagent else self.turns
        calls = (
            turns[request.turn] if request.turn < len(turns) and request.body.get("tools") else ()
        )
        said: list[dict[str, Any]] = [{"type": "tool_use", **item} for item in calls] or [
            {"type": "text", "text": "Done."}
        ]
        return Message(
            id=f"msg_{request.subagent or 'main'}_{request.turn}",
            model=str(request.body.get("model")),
            blocks=tuple(said),
            stop_reason="tool_use" if calls else "end_turn",
            usage={"input_tokens": request.bytes // 4, "output_tokens": 10},
        )


async def _chunks(message: Message) -> AsyncIterator[bytes]:
    for chunk in as_events(message):
        yield chunk


def play(
    place: Place, script: Script, servers: Mapping[str, Any], *, guarded: bool
) -> dict[str, str]:
    """Call id -> what the CLI answered to the call. Raises GatewayError when the session did not
    come about."""
    with Gateway(script) as gateway:
        words = [
            *(str(bundled_cli()), "-p", "go", "--output-format", "stream-json", "--verbose"),
            *(
                "--setting-sources",
                "project" if guarded else "",
                "--permission-mode",
                "acceptEdits",
            ),
            *("--allowedTools", *_TOOLS.split(), "--strict-mcp-config"),
            *(
                "--mcp-config",
                json.dumps({"mcpServers": dict(servers)}),
                "--session-id",
                str(uuid.uuid4()),
            ),
        ]
        ended = place.run(words, environment=_environment(place, gateway.url), timeout_s=_LONGEST_S)
        if gateway.failure is not None or ended.returncode != 0:
            raise GatewayError(
                "The lab's session failed:"
                f" {gateway.failure or ended.stderr[-400:] or ended.stdout[-400:]}.",
                hint="Fix the lab.",
            )
    return dict(_results(ended.stdout))


def denied(answer: str) -> bool:
    return _BY_HOOK in answer


def _environment(place: Place, url: str) -> dict[str, str]:
    config, temporary = place.home / "config", place.home / "tmp"
    config.mkdir(parents=True, exist_ok=True)
    return place.environment(
        PATH="/usr/local/bin:/usr/bin:/bin",
        CLAUDE_CONFIG_DIR=str(config),
        CLAUDE_CODE_TMPDIR=str(temporary),
        SHELL="/bin/bash",
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY=DUMMY_KEY,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        CLAUDE_CODE_MAX_RETRIES="0",
        DISABLE_AUTOUPDATER="1",
    )


def _results(stream: str) -> Iterator[tuple[str, str]]:
    for line in stream.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        told = isinstance(message, dict) and message.get("type") == "user"
        content = message["message"].get("content") if told else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield str(block.get("tool_use_id")), str(block.get("content"))
