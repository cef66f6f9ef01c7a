"""A scripted model for sessions that a person leads: what it says depends on the prompt that it
answers."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.errors import GatewayError
from harness.model_gateway.gateway import Gateway, Reply
from harness.model_gateway.wire import (
    Asker,
    Message,
    RecordedRequest,
    as_events,
    as_json,
    blocks,
    text_of,
    tool_results,
)
from tests.model_gateway.kept import Kept

Said = str | Sequence[Mapping[str, Any]]
"""What the model says in one message: text, or tool calls."""
Turn = Said | Callable[[dict[str, str]], Said]
"""Perhaps made from the results of earlier calls, by label."""
COMPACTING = "an <analysis> block followed by a <summary> block"
"""Stands in the request by which the CLI asks for a summary of the conversation."""
REMINDED = "Stop hook feedback"
"""Stands in what a Stop or SubagentStop hook tells the model."""
SUMMARY = "<analysis>short</analysis>\n<summary>What was done so far.</summary>"


def call(label: str, tool: str, **given: Any) -> dict[str, Any]:
    """A tool call. `label` is its id on the wire, so that its result is found by it."""
    return {"type": "tool_use", "id": label, "name": tool, "input": given}


def delegate(label: str, prompt: str, kind: str) -> dict[str, Any]:
    """A subagent of `kind`, waited for."""
    given = {
        "description": label,
        "prompt": prompt,
        "subagent_type": kind,
        "run_in_background": False,
    }
    return call(label, "Agent", **given)


def bash(label: str, command: str, **given: Any) -> dict[str, Any]:
    return call(label, "Bash", command=command, description=label, **given)


@dataclass(frozen=True)
class Script:
    """An Answerer. `prompts`: words of a prompt -> the model's turns after it; `subagents`: the
    same for their prompts.

    The newest prompt that holds known words counts, and the turn is the number of the model's
    messages after it: a pure function of the request. What the CLI itself asks, a summary or to
    heed a Stop hook, gets a plain answer unless `prompts` has another. A request without a known
    prompt, or beyond the last turn, ends the gateway loudly.
    """

    prompts: Mapping[str, Sequence[Turn]]
    subagents: Mapping[str, Sequence[Turn]] = field(default_factory=dict)

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
        turn = self._turn(request)
        turn = turn(tool_results(request.body)) if callable(turn) else turn
        said = (
            [{"type": "text", "text": turn}]
            if isinstance(turn, str)
            else [dict(item) for item in turn]
        )
        return Message(
            id=f"msg_{request.subagent or 'main'}_{request.turn}",
            model=str(request.body.get("model")),
            blocks=tuple(said),
            stop_reason="end_turn" if isinstance(turn, str) else "tool_use",
            usage={"input_tokens": request.bytes // 4, "output_tokens": 10},
        )

    def _turn(self, request: RecordedRequest) -> Turn:
        ours = self.subagents if request.subagent else self.prompts
        known = {COMPACTING: (SUMMARY,), REMINDED: ("Noted.",), **ours}
        words, number = _newest(request.body, known)
        if words is None:
            raise GatewayError(
                f"No known prompt in {prompts(request.body)!r:.2000}; known: {sorted(known)}.",
                hint="",
            )
        if number >= len(known[words]):
            raise GatewayError(
                f"After {words!r}: no turn {number + 1} for {text_of(_last(request.body))!r:.600}.",
                hint="",
            )
        return known[words][number]


def prompts(body: dict[str, Any]) -> list[str]:
    """The text of every message that is not the model's, without tool results."""
    return [_said(message) for message in body["messages"] if message["role"] != "assistant"]


def shown(request: RecordedRequest) -> str:
    """All that the request shows to the model: its system prompt and its messages."""
    parts = [text_of(request.body.get("system"))]
    return "\n".join(
        [*parts, *(text_of(message.get("content")) for message in request.body["messages"])]
    )


@dataclass(frozen=True)
class OpenGateway:
    """A gateway with one session, whose key is `key`, and what it was asked."""

    gateway: Gateway
    key: str
    requests: list[RecordedRequest]

    @property
    def url(self) -> str:
        return self.gateway.url

    @property
    def failure(self) -> str | None:
        return self.gateway.failure


@contextmanager
def open_gateway(
    prompts: Mapping[str, Sequence[Turn]], subagents: Mapping[str, Sequence[Turn]] | None = None
) -> Iterator[OpenGateway]:
    kept = Kept(Script(prompts, subagents or {}))
    with Gateway(kept) as gateway, gateway.admitted(Asker(role="person")) as key:
        yield OpenGateway(gateway, key, kept.requests)


def _newest(body: dict[str, Any], known: Mapping[str, Sequence[Turn]]) -> tuple[str | None, int]:
    found, number = None, 0
    for message in body["messages"]:
        if message["role"] == "assistant":
            number += 1
            continue
        text = _said(message)
        words = max(
            (item for item in known if item in text),
            key=lambda item: text.rfind(item),
            default=None,
        )
        if words is not None:
            found, number = words, 0
    return found, number


def _said(message: dict[str, Any]) -> str:
    return "\n".join(
        str(block["text"]) for block in blocks(message["content"]) if block.get("type") == "text"
    )


def _last(body: dict[str, Any]) -> Any:
    return body["messages"][-1]["content"]


async def _chunks(message: Message) -> AsyncIterator[bytes]:
    for chunk in as_events(message):
        yield chunk
