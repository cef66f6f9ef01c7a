"""SWE-agent's `.traj` files: `history` holds the messages, `info` how it ended.

Without function calling an action is the command in the answer's `action`, and the next message of
a user is its observation: both become a call and its result.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.traces.book import Book
from harness.traces.chat import Chat
from harness.traces.documents import read_document
from harness.traces.states import State, listed
from harness.traces.tally import Tally

NAME = "swe-agent"
_TOOL = "bash"


def fits(rows: list[dict[str, Any]]) -> bool:
    first = rows[0]
    return isinstance(first.get("trajectory"), list) and (
        isinstance(first.get("history"), list) or "environment" in first or "info" in first
    )


def read(path: Path, tally: Tally, book: Book) -> Iterator[State]:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    document = read_document(path, tally)
    history = document.get("history")
    if not isinstance(history, list) or not history:
        history = _of_steps(listed(document.get("trajectory")))
    info = document.get("info")
    info = info if isinstance(info, dict) else {}
    session = document.get("instance_id") or path.name.split(".")[0]
    chat = Chat(tally, book, session=str(session))
    messages = [*_acted(history), *exit_of(info)]
    yield from chat.read(messages, str(info.get("model_name") or ""))


def exit_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    """How it ended, as a last message."""
    status = info.get("exit_status")
    return [{"role": "exit", "content": str(status)}] if status else []


def _of_steps(steps: list[Any]) -> Iterator[dict[str, Any]]:
    for number, step in enumerate(step for step in steps if isinstance(step, dict)):
        if number == 0:
            yield from (each for each in listed(step.get("query")) if isinstance(each, dict))
        answer = {"role": "assistant", "content": step.get("response")}
        yield answer | {name: step.get(name) for name in ("thought", "action", "tool_calls")}
        observation = step.get("observation")
        yield {"role": "user", "content": observation, "message_type": "observation"}


def _acted(history: Any) -> Iterator[dict[str, Any]]:
    waiting = ""
    for number, message in enumerate(history):
        if not isinstance(message, dict):
            continue
        role = message.get("role")
        if message.get("is_demo"):
            yield {"role": "system", "content": message.get("content")}
        elif role == "assistant":
            waiting = ""
            made = {name: value for name, value in message.items() if name != "thought"}
            action = message.get("action")
            if not message.get("tool_calls") and isinstance(action, str) and action.strip():
                waiting = f"action-{number}"
                made["tool_calls"] = [call_of(waiting, action)]
            yield made
        elif role == "user" and waiting and message.get("message_type", "") == "observation":
            yield message | {"role": "tool", "tool_call_id": waiting}
            waiting = ""
        elif role == "tool":
            calls = message.get("tool_call_ids")
            first = calls[0] if isinstance(calls, list) and calls else None
            yield {"tool_call_id": first} | message
        else:
            yield message


def call_of(identifier: str, command: str) -> dict[str, Any]:
    arguments = {"command": command}
    return {"id": identifier, "function": {"name": _TOOL, "arguments": arguments}}
