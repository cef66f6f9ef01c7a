"""What an agent knew, did and got: the states of a trajectory, in the order in which they ended.

A state does not repeat its context: it names the state `after` which it stands and what was `added`
since. So a history only grows, and a file of states is no larger than the transcript.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

Message = dict[str, Any]
"""{role, content, kind}; kind: prompt (a person typed it), instruction (of a subagent), system,
note (the program wrote it) or summary (of what was compacted)."""
THINKING = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class Thread:
    """One conversation: the main one of a session, or one of a subagent."""

    session: str
    name: str = "main"
    """The subagent's id."""
    kind: str = "main"
    """Or of a subagent: task, warm-up, prompt suggestion, compaction."""
    agent_type: str | None = None
    call: str | None = None
    """The tool call that started the subagent, where it is known."""
    last: str | None = None
    """The newest state that has ended, of this session or of the one that it is a fork of."""
    count: int = 0
    added: list[Message] = field(default_factory=list)
    asked: int = 0
    """Prompts since the last answer that no earlier file has."""
    compacted: bool = False
    open: "State | None" = None
    forked_from: str | None = None
    """The session that wrote a row since the last answer; this one only copied it."""

    def say(self, message: Message) -> None:
        self.added.append(message)
        state = self.open
        if state is None:
            return
        if message["kind"] == "prompt" and "feedback" not in state.outcome:
            state.outcome["feedback"] = message["content"]

    def compact(self) -> None:
        self.compacted = True

    def begin(self, state: "State") -> "State | None":
        """Open a state; the one before it, if any, has ended and is returned."""
        ended = self.end("answer")
        state.after, state.added, state.compacted = self.last, self.added, self.compacted
        state.number = self.count
        self.count += 1
        state.forked_from, self.forked_from = self.forked_from, None
        self.added, self.compacted, self.open, self.asked = [], False, state, 0
        return ended

    def copied(self, identifier: str) -> "State | None":
        """An answer that another file has: what comes now stands after it. The state before it
        has ended, and is returned."""
        ended = self.end("answer")
        self.added, self.compacted, self.last, self.asked = [], False, identifier, 0
        self.forked_from = None
        self.count += 1
        return ended

    def end(self, then: str) -> "State | None":
        state, self.open = self.open, None
        if state is not None:
            self.last = state.id
            state.close("prompt" if "feedback" in state.outcome else then)
        return state


@dataclass(slots=True)
class State:
    id: str
    """Of the answer's own id, so that a copy of a session gives the same."""
    thread: Thread
    model: str
    time: str
    line: int
    """Of the file, counted from 1; the answer's first."""
    action: list[dict[str, Any]]
    """Content blocks of the answer: text, thinking, tool_use."""
    key: str = ""
    """What later rows of the same answer have in common with its first one."""
    last_line: int = 0
    ended: str = ""
    after: str | None = None
    forked_from: str | None = None
    """The session that it is a copy of."""
    number: int = 0
    """In its thread, from 0."""
    compacted: bool = False
    """Whether the context was summarised since `after`: `added` then holds the summary."""
    added: list[Message] = field(default_factory=list)
    calls: dict[str, bool] = field(default_factory=dict)
    """Tool call -> whether its result came."""
    results: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    def act(self, blocks: Iterable[dict[str, Any]]) -> None:
        for block in blocks:
            if block["type"] == "tool_use":
                if block["id"] in self.calls:
                    continue
                self.calls[block["id"]] = False
            self.action.append(block)

    def got(self, call: str, result: dict[str, Any]) -> None:
        self.calls[call] = True
        self.results.append(result)
        if result["is_error"]:
            self.bump("errors")

    def bump(self, name: str, more: int = 1) -> None:
        self.outcome[name] = self.outcome.get(name, 0) + more

    def close(self, then: str) -> None:
        self.outcome["then"] = then
        if False in self.calls.values():
            missing = sum(not came for came in self.calls.values())
            self.outcome["without_result"] = missing

    def row(self) -> dict[str, Any]:
        """As it is written; README of the fields: docs/traces.md."""
        thread = self.thread
        return {
            "id": self.id,
            "session": thread.session,
            "thread": thread.name,
            "kind": thread.kind,
            "agent_type": thread.agent_type,
            "call": thread.call,
            "number": self.number,
            "after": self.after,
            "compacted": self.compacted,
            "added": self.added,
            "action": self.action,
            "results": self.results,
            "outcome": self.outcome,
            "model": self.model,
            "usage": self.usage,
            "time": self.time,
            "ended": self.ended,
        }


def state_id(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def replayed(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """An action as later contexts have it: without its thinking."""
    return [block for block in blocks if block["type"] not in THINKING]


def plain_blocks(content: Any) -> list[dict[str, Any]]:
    """Content as text, thinking, tool_use and tool_result blocks; of an image or a document its
    size, not its bytes."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return []
    blocks = []
    for item in content:
        kind = item.get("type") if type(item) is dict else None
        # Most blocks are results: they are made plain where they are taken in.
        block = item if kind == "tool_result" else _block(item)
        if block is not None:
            blocks.append(block)
    return blocks


def _block(item: Any) -> dict[str, Any] | None:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if kind == "text":
        return {"type": "text", "text": str(item.get("text") or "")}
    if kind == "thinking":
        text = item.get("thinking") or ""
        return {"type": "thinking", "thinking": str(text)}
    if kind == "tool_use":
        given, identifier = item.get("input"), item.get("id")
        return {
            "type": "tool_use",
            "id": identifier if isinstance(identifier, str) else "",
            "name": str(item.get("name")),
            "input": given if isinstance(given, dict) else {},
        }
    if kind in ("image", "document", "image_url", "input_image"):
        return {"type": "image" if "image" in kind else "document", "bytes": _size(item)}
    return {"type": str(kind)}


def _size(item: dict[str, Any]) -> int:
    source = item.get("source") or item.get("image_url")
    if isinstance(source, dict):
        source = source.get("data") or source.get("url")
    return len(source) * 3 // 4 if isinstance(source, str) else 0


def listed(value: Any) -> list[Any]:
    """A list that a file holds; empty where it holds something else."""
    return value if isinstance(value, list) else []


def text_of(blocks: Iterable[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def result_of(call: str, content: Any, *, error: bool) -> dict[str, Any]:
    """A tool's result: {call, is_error, content}; content is text, with a list of blocks where it
    holds more than text."""
    if not isinstance(content, str):
        blocks = plain_blocks(content)
        only_text = all(block["type"] == "text" for block in blocks)
        content = text_of(blocks) if only_text else blocks
    return {"call": call, "is_error": error, "content": content}
