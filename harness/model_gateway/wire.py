"""The Messages API as the Claude Code CLI uses it: reads requests, writes answers as JSON or as an
event stream."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

SUBAGENT = "x-claude-code-agent-id"
SESSION = "x-harness-session"
"""The header of a session whose other headers are the service's."""
LOGIN = "authorization"
KEYS = frozenset({LOGIN, SESSION, "x-api-key", "cookie", "proxy-authorization"})
"""Headers that carry a secret; they are not kept, and not forwarded but for a passed login."""

Block = dict[str, Any]
SessionKey = tuple[str, str, str]
"""Role, experiment, attempt."""


@dataclass(frozen=True, kw_only=True)
class Asker:
    """The session that sent a request, as the gateway knows it by its secret."""

    role: str
    experiment: str = "1"
    """The number of the experiment in the loop, and of the attempt: a scenario names both."""
    attempt: str = "1"
    session: str = ""

    @property
    def key(self) -> SessionKey:
        return self.role, self.experiment, self.attempt


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request for a message, as it arrived."""

    asker: Asker
    turn: int
    """The number of assistant messages in it."""
    body: dict[str, Any]
    bytes: int
    headers: dict[str, str]
    """Lower-case names, without keys."""
    subagent: str | None = None
    query: str = ""
    path: str = "/v1/messages"
    login: "Login | None" = None
    """The CLI's own, where it is passed on."""

    @property
    def where(self) -> str:
        asker = self.asker
        return f"role {asker.role}, experiment {asker.experiment}, attempt {asker.attempt}"

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))


class Login:
    """A header value on its way to the service. It has no text form, and is no part of a copy."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Login()"

    def __reduce__(self) -> Any:
        raise TypeError("a login is not kept")

    def __deepcopy__(self, _: Any) -> "Login":
        return Login("")

    def header(self) -> dict[str, str]:
        return {LOGIN: self._value}


@dataclass(frozen=True, kw_only=True)
class Message:
    """A whole answer."""

    id: str
    model: str
    blocks: tuple[Block, ...]
    stop_reason: str
    usage: dict[str, int] = field(default_factory=dict)


def read_request(
    asker: Asker,
    headers: dict[str, str],
    body: dict[str, Any],
    size: int,
    query: str = "",
    *,
    path: str = "/v1/messages",
    login: Login | None = None,
) -> RecordedRequest:
    kept = {name.lower(): value for name, value in headers.items() if name.lower() not in KEYS}
    messages = body.get("messages")
    roles = (
        [message.get("role") for message in messages if isinstance(message, dict)]
        if isinstance(messages, list)
        else []
    )
    return RecordedRequest(
        asker=asker,
        turn=roles.count("assistant"),
        body=body,
        bytes=size,
        headers=kept,
        subagent=kept.get(SUBAGENT),
        query=query,
        path=path,
        login=login,
    )


def blocks(content: Any) -> Iterator[Block]:
    """The blocks of a message's or a tool result's content, which may also be a bare string."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def text_of(content: Any) -> str:
    """All text in a content, tool results included, a line each."""
    parts = []
    for block in blocks(content):
        if block.get("type") == "tool_result":
            parts.append(text_of(block.get("content")))
        elif isinstance(block.get("text"), str):
            parts.append(block["text"])
    return "\n".join(parts)


def newest_text(body: dict[str, Any]) -> str:
    """The text after the newest assistant message: prompt, tool results, the CLI's additions."""
    newest: list[str] = []
    for message in body.get("messages", []):
        newest = (
            []
            if message.get("role") == "assistant"
            else [*newest, text_of(message.get("content"))]
        )
    return "\n".join(newest)


def tool_results(body: dict[str, Any]) -> dict[str, str]:
    """Tool use id -> the text of its result."""
    return {
        block["tool_use_id"]: text_of(block.get("content"))
        for message in body.get("messages", [])
        for block in blocks(message.get("content"))
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    }


def error_body(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def as_json(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": list(message.blocks),
        "stop_reason": message.stop_reason,
        "stop_sequence": None,
        "usage": {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, **message.usage},
    }


def as_events(message: Message) -> Iterator[bytes]:
    """The same answer as server-sent events, one chunk each."""
    start = as_json(message)
    # As the service does: an empty message first, the stop reason at the end.
    start |= {"content": [], "stop_reason": None, "usage": {**start["usage"], "output_tokens": 1}}
    yield event("message_start", message=start)
    for index, block in enumerate(message.blocks):
        empty, delta = _opening(block)
        yield event("content_block_start", index=index, content_block=empty)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    end = {"stop_reason": message.stop_reason, "stop_sequence": None}
    yield event(
        "message_delta", delta=end, usage={"output_tokens": message.usage.get("output_tokens", 0)}
    )
    yield event("message_stop")


def _opening(block: Block) -> tuple[Block, Block]:
    if block["type"] == "tool_use":
        text = json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": text}
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({**fields, "type": kind}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


class EventReader:
    """Reassembles a streamed answer from chunks cut anywhere; unknown events are ignored."""

    def __init__(self) -> None:
        self._rest = b""
        self._json: dict[int, str] = {}
        self.blocks: dict[int, Block] = {}
        self.usage: dict[str, Any] = {}
        self.stop_reason: str | None = None
        self.error: dict[str, Any] | None = None
        """What an event `error` said."""
        self.malformed = False
        """Whether an event was none that can be read."""

    def feed(self, chunk: bytes) -> None:
        # The last part has no line end yet: it waits for the next chunk.
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._read(line[5:])

    def _read(self, line: bytes) -> None:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            self.malformed = True
            return
        if isinstance(data, dict):
            self.take(data)
        else:
            self.malformed = True

    def message(self) -> dict[str, Any] | None:
        """Content, stop_reason and usage as the JSON form has them; None if the answer is
        incomplete."""
        if self.stop_reason is None or not self.usage:
            return None
        content = [self.blocks[index] for index in sorted(self.blocks)]
        return {"content": content, "stop_reason": self.stop_reason, "usage": self.usage}

    def take(self, data: dict[str, Any]) -> None:
        """One event."""
        kind, index = data.get("type"), data.get("index", -1)
        parts = {
            name: data.get(name, {}) for name in ("delta", "message", "content_block", "error")
        }
        if not isinstance(index, int) or not all(isinstance(one, dict) for one in parts.values()):
            self.malformed = True
            return
        delta = parts["delta"]
        if kind == "error":
            self.error = parts["error"]
        elif kind == "message_start":
            self.usage |= _usage(parts["message"])
        elif kind == "content_block_start":
            self.blocks[index] = dict(parts["content_block"])
        elif kind == "content_block_delta" and delta.get("type") == "text_delta":
            block = self.blocks.setdefault(index, {"type": "text", "text": ""})
            block["text"] = f"{block.get('text') or ''}{delta.get('text') or ''}"
        elif kind == "content_block_delta" and delta.get("type") == "input_json_delta":
            self._json[index] = f"{self._json.get(index, '')}{delta.get('partial_json') or ''}"
        elif kind == "content_block_stop" and self._json.get(index) and index in self.blocks:
            self.blocks[index]["input"] = _object(self._json[index])
        elif kind == "message_delta":
            self.usage |= _usage(data)
            self.stop_reason = delta.get("stop_reason")


def _object(text: str) -> dict[str, Any]:
    """A tool's input; anything but a JSON object is kept as text, as the CLI does."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"__unparsedToolInput": text}


def _usage(holder: dict[str, Any]) -> dict[str, Any]:
    usage = holder.get("usage")
    return (
        {name: value for name, value in usage.items() if value is not None}
        if isinstance(usage, dict)
        else {}
    )


def pairs(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
