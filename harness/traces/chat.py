"""Conversations in the form of chat messages, as states: what all forms but Claude Code's share.

A state's id is made of all that stands before it and of its action. So the common beginning of two
conversations, and a copy of one, count once, whatever the files are called.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from harness.artifacts.jsonl import loads
from harness.traces.book import Book
from harness.traces.states import (
    State,
    Thread,
    listed,
    plain_blocks,
    result_of,
    text_of,
)
from harness.traces.tally import Tally, count_of

_REASONING = ("reasoning_content", "reasoning", "thought")
_ARGUMENTS = "arguments"


class Chat:
    """One conversation, message by message."""

    def __init__(self, tally: Tally, book: Book, *, session: str, line: int = 1) -> None:
        self._tally, self._seen, self.line = tally, book.chats, line
        self._thread, self._notes = Thread(session), book.notes(session)
        self._chain = b""

    def read(self, messages: Sequence[Any], model: str = "") -> Iterator[State]:
        for message in messages:
            if not isinstance(message, dict):
                self._tally.non_object_rows += 1
            elif (ended := self.take(message, model)) is not None:
                yield ended
        if (ended := self.end()) is not None:
            yield ended

    def end(self) -> State | None:
        return self._thread.end("end")

    def close(self, outcome: Mapping[str, Any]) -> None:
        """What is known of the whole: of the last state, while it is open."""
        if self._thread.open is not None:
            self._thread.open.outcome |= outcome

    def take(self, message: dict[str, Any], model: str = "") -> State | None:
        """One more message; the state that it ends, if it ends one."""
        role, thread = message.get("role"), self._thread
        said = orjson.dumps([role, message.get("content"), message.get("tool_calls")])
        self._chain = sha256(self._chain + said).digest()
        if role in ("assistant", "agent", "model"):
            return self._answer(message, model)
        if role in ("system", "developer"):
            text = text_of(plain_blocks(message.get("content")))
            thread.say({"role": "system", "content": text, "kind": "system"})
            return None
        if role in ("tool", "function"):
            content = message.get("content")
            error = bool(message.get("is_error"))
            self._result(message.get("tool_call_id"), content, error=error)
            return None
        if role == "exit":  # mini-swe-agent's last word
            self.close({"exit": text_of(plain_blocks(message.get("content")))})
            return None
        self._tally.user_rows += 1
        self._user(message)
        return None

    def _user(self, message: dict[str, Any]) -> None:
        blocks = plain_blocks(message.get("content"))
        for block in blocks:
            if block["type"] == "tool_result":
                error = bool(block.get("is_error"))
                self._result(block.get("tool_use_id"), block.get("content"), error=error)
        rest = [block for block in blocks if block["type"] != "tool_result"]
        if not rest:
            return
        only_text = all(block["type"] == "text" for block in rest)
        self._tally.human_prompts += 1
        self._notes.prompts += 1
        content: Any = text_of(rest) if only_text else rest
        self._thread.say({"role": "user", "content": content, "kind": "prompt"})

    def _answer(self, message: dict[str, Any], model: str) -> State | None:
        tally, thread = self._tally, self._thread
        tally.assistant_rows += 1
        identifier = self._chain.hex()[:20]
        if not self._seen.add(identifier):
            tally.copied += 1
            return thread.copied(identifier)
        tally.unique_msg_ids += 1
        state = State(
            id=identifier,
            thread=thread,
            model=str(message.get("model") or model),
            time=str(message.get("timestamp") or ""),
            line=self.line,
            last_line=self.line,
            action=[],
        )
        ended = thread.begin(state)
        thinking = next(
            (text for name in _REASONING if isinstance(text := message.get(name), str) and text),
            "",
        )
        if thinking:
            state.act([{"type": "thinking", "thinking": thinking}])
        state.act(plain_blocks(message.get("content")))
        state.act(self._calls(message.get("tool_calls")))
        tally.tool_use_unique_ids += len(state.calls)
        tally.tool_use_without_result += len(state.calls)
        usage = message.get("usage")
        state.usage = usage if isinstance(usage, dict) else {}
        tally.out_tokens_last_wins += count_of(usage, "output_tokens")
        stop = message.get("stop_reason") or message.get("finish_reason")
        if isinstance(stop, str):
            state.outcome["stop"] = stop
        return ended

    def _calls(self, calls: Any) -> Iterator[dict[str, Any]]:
        for number, call in enumerate(listed(calls)):
            if not isinstance(call, dict):
                continue
            function = call.get("function")
            function = function if isinstance(function, dict) else call
            identifier = call.get("id")
            yield {
                "type": "tool_use",
                "id": str(identifier or f"call-{self._thread.count}-{number}"),
                "name": str(function.get("name")),
                "input": _arguments(function.get(_ARGUMENTS)),
            }

    def _result(self, call: Any, content: Any, *, error: bool) -> None:
        tally, state = self._tally, self._thread.open
        tally.tool_result_rows += 1
        tally.tool_result_errors += error
        waiting = [name for name, came in state.calls.items() if not came] if state else []
        name = call if isinstance(call, str) and call else (waiting or [""])[0]
        if state is None or name not in state.calls:
            text = result_of(name, content, error=error)["content"]
            self._thread.say({"role": "tool", "content": text, "kind": "note", "call": name})
            return
        tally.tool_use_without_result -= name in waiting
        state.got(name, result_of(name, content, error=error))


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    try:
        read = loads(given.encode()) if isinstance(given, str) else None
    except orjson.JSONDecodeError:
        read = None
    return read if isinstance(read, dict) else {"arguments": given}
