"""Answers from a scenario: a pure function of the request, so that a repeated request gets the same
answer."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from harness.errors import GatewayError
from harness.model_gateway.gateway import Reply
from harness.model_gateway.scenario import (
    REFERENCE,
    Scenario,
    ScenarioSession,
    ScenarioToolCall,
    ScenarioTurn,
)
from harness.model_gateway.wire import (
    Block,
    Message,
    RecordedRequest,
    as_events,
    as_json,
    newest_text,
    tool_results,
)

_HINT = "Correct the scenario, or what the session did before this turn."


class Scripted:
    """An Answerer. A request that the scenario does not foresee raises GatewayError, which ends the
    gateway."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        message = scripted_message(self.scenario, request)
        if request.stream:
            return Reply(body=_chunks(message), headers={"content-type": "text/event-stream"})
        return Reply(body=json.dumps(as_json(message), ensure_ascii=False).encode())

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return Reply(body=json.dumps({"input_tokens": tokens(request.bytes)}).encode())

    async def close(self) -> None:
        return None


def scripted_message(scenario: Scenario, request: RecordedRequest) -> Message:
    """The scenario's answer to `request`. Raises GatewayError naming what did not fit."""
    session, turn = _find(scenario, request)
    where = f"{request.where}, turn {request.turn + 1}"
    news = newest_text(request.body)
    for words in turn.expect:
        if words not in news:
            raise GatewayError(
                f"{where}: expected {words!r} in the request, found {news!r:.600}.",
                hint=_HINT,
            )
    results = _results(session, request)
    text = _as_text(resolve(turn.text, results, where))
    blocks: list[Block] = [{"type": "text", "text": text}] if turn.text else []
    blocks += [
        {
            "type": "tool_use",
            "id": wire_id(session, request.turn, position, tool),
            "name": tool.name,
            "input": resolve(tool.input, results, where),
        }
        for position, tool in enumerate(turn.tools)
    ]
    written = json.dumps(blocks, ensure_ascii=False)
    return Message(
        id=f"msg_{_digest(request.where, request.turn, written)}",
        model=str(request.body.get("model", "scripted")),
        blocks=tuple(blocks),
        stop_reason="tool_use" if turn.tools else "end_turn",
        usage={"input_tokens": tokens(request.bytes), "output_tokens": tokens(len(written))},
    )


def tokens(size: int) -> int:
    """A plausible count for `size` bytes of text; no decision depends on it."""
    return max(1, size // 4)


def wire_id(session: ScenarioSession, turn: int, position: int, tool: ScenarioToolCall) -> str:
    """The tool use id on the wire: unique for session, turn and tool, and always the same."""
    return f"toolu_{_digest(*session.key, turn, position, tool.id)}"


def resolve(value: Any, results: Mapping[str, str], where: str) -> Any:
    """`value` with every reference replaced. A string that is a single reference gets the type of
    the referenced value."""
    if isinstance(value, dict):
        return {key: resolve(part, results, where) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(part, results, where) for part in value]
    if not isinstance(value, str):
        return value
    whole = REFERENCE.fullmatch(value)
    if whole is not None and not whole[1]:
        return _look_up(whole, results, where)
    return REFERENCE.sub(
        lambda match: match[0][1:] if match[1] else _as_text(_look_up(match, results, where)),
        value,
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _look_up(match: re.Match[str], results: Mapping[str, str], where: str) -> Any:
    name, path = match[2], match[3]
    if name not in results:
        known = ", ".join(sorted(results)) or "none"
        raise GatewayError(
            f"{where}: {match[0]} refers to a missing tool result; known: {known}.",
            hint=_HINT,
        )
    # The CLI may put lines of its own around a tool's JSON.
    for document in _documents(results[name]):
        exists, value = _follow(document, path.split("."))
        if exists:
            return value
    raise GatewayError(
        f"{where}: {match[0]}: the result of {name} is {results[name]!r:.300}, without {path}.",
        hint=_HINT,
    )


def _documents(text: str) -> Iterator[Any]:
    """The JSON in a tool result: all of its text, or else a line of it."""
    for part in (text, *text.splitlines()):
        try:
            yield json.loads(part)
        except ValueError:
            continue


def _follow(value: Any, path: list[str]) -> tuple[bool, Any]:
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False, None
    return True, value


def _find(scenario: Scenario, request: RecordedRequest) -> tuple[ScenarioSession, ScenarioTurn]:
    if request.subagent is not None:
        raise GatewayError(
            f"{request.where}: a subagent sent a request; a scenario has none.", hint=_HINT
        )
    asker = request.asker
    session = scenario.session(asker.role, asker.experiment, asker.attempt)
    if session is None:
        known = "; ".join("/".join(session.key) for session in scenario.sessions)
        raise GatewayError(
            f"The scenario has no session for {request.where}; it has {known}.", hint=_HINT
        )
    if request.turn >= len(session.turns):
        raise GatewayError(
            f"{request.where}: the scenario has {len(session.turns)} turns, but turn"
            f" {request.turn + 1} was requested with {newest_text(request.body)!r:.600}.",
            hint=_HINT,
        )
    return session, session.turns[request.turn]


def _results(session: ScenarioSession, request: RecordedRequest) -> dict[str, str]:
    """Scenario id -> result, of the tools of earlier turns whose results the request holds."""
    in_request = tool_results(request.body)
    results = {}
    for number, turn in enumerate(session.turns[: request.turn]):
        for position, tool in enumerate(turn.tools):
            on_wire = wire_id(session, number, position, tool)
            if tool.id is not None and on_wire in in_request:
                results[tool.id] = in_request[on_wire]
    return results


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


async def _chunks(message: Message) -> AsyncIterator[bytes]:
    for chunk in as_events(message):
        yield chunk
