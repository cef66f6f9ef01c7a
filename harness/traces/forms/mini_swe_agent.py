"""mini-swe-agent's `.traj.json`: `messages`, `info`, `trajectory_format`. Version 2 has tool calls;
before, and with models that answer in text, the action is the one code block of an answer, and the
next message of a user is its observation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.traces.book import Book
from harness.traces.chat import Chat
from harness.traces.documents import read_document
from harness.traces.forms.swe_agent import call_of, exit_of
from harness.traces.states import State, plain_blocks, text_of
from harness.traces.tally import Tally

NAME = "mini-swe-agent"
_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n?```", re.DOTALL)


def fits(rows: list[dict[str, Any]]) -> bool:
    first = rows[0]
    form = str(first.get("trajectory_format"))
    return isinstance(first.get("messages"), list) and form.startswith(NAME)


def read(path: Path, tally: Tally, book: Book) -> Iterator[State]:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    document = read_document(path, tally)
    info = document.get("info")
    info = info if isinstance(info, dict) else {}
    session = info.get("instance_id") or document.get("instance_id")
    chat = Chat(tally, book, session=str(session or path.name.split(".")[0]))
    messages = list(_acted(document["messages"]))
    if not any(message.get("role") == "exit" for message in messages):
        messages += exit_of(info)
    yield from chat.read(messages, _model(info))


def _acted(messages: list[Any]) -> Iterator[dict[str, Any]]:
    waiting = ""
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        role = message.get("role")
        if role == "assistant":
            waiting = ""
            blocks = _BLOCK.findall(text_of(plain_blocks(message.get("content"))))
            if not message.get("tool_calls") and len(blocks) == 1:
                waiting = f"action-{number}"
                yield message | {"tool_calls": [call_of(waiting, blocks[0])]}
                continue
        elif role == "user" and waiting:
            yield message | {"role": "tool", "tool_call_id": waiting}
            waiting = ""
            continue
        yield message


def _model(info: dict[str, Any]) -> str:
    found: Any = info
    for name in ("config", "model", "model_name"):
        found = found.get(name) if isinstance(found, dict) else None
    return str(found or info.get("model_name") or "")
