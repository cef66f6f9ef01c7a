"""JSON lines of chat messages, OpenAI's or Anthropic's: a conversation a line,
`{"messages": [...]}` with `system` beside them, or a message a line, `{"role": ...}`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.jsonl import loads
from harness.traces.book import Book
from harness.traces.chat import Chat
from harness.traces.file_lines import file_lines
from harness.traces.states import State, plain_blocks, text_of
from harness.traces.tally import Tally

NAME = "messages"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_IDS = ("session_id", "conversation_id", "trace_id", "id", "instance_id")
_OF_MESSAGES = _IDS[:3]
"""An `id` of a message is its own."""


def fits(rows: list[dict[str, Any]]) -> bool:
    return any(_is_message(row) or _is_conversation(row) for row in rows)


def read(path: Path, tally: Tally, book: Book) -> Iterator[State]:
    """Raises NotFoundError or UsageError when the file cannot be read."""
    loose: dict[str, Chat] = {}
    line = b"\n"
    for number, line in enumerate(file_lines(path), 1):
        tally.lines = number
        for row in _objects(line, number, tally):
            tally.rows += 1
            if _is_conversation(row):
                tally.sessions += 1
                session = _session(row, f"{path.stem}-{number}")
                chat = Chat(tally, book, session=session, line=number)
                yield from chat.read(_messages(row), str(row.get("model") or ""))
            elif _is_message(row):
                session = _session(row, path.stem, _OF_MESSAGES)
                if session not in loose:
                    tally.sessions += 1
                    loose[session] = Chat(tally, book, session=session)
                loose[session].line = number
                if (ended := loose[session].take(row)) is not None:
                    yield ended
            else:
                tally.skipped["no message"] += 1
    tally.ends_newline = line.endswith(b"\n")
    for chat in loose.values():
        if (ended := chat.end()) is not None:
            yield ended


def _objects(line: bytes, number: int, tally: Tally) -> list[dict[str, Any]]:
    if not line.strip():
        tally.blank += 1
        return []
    try:
        value = loads(line)
    except orjson.JSONDecodeError:
        tally.bad += 1
        tally.torn = not line.endswith(b"\n")
        tally.problem(f"line {number}: torn")
        return []
    found = value if isinstance(value, list) else [value]
    rows = [row for row in found if isinstance(row, dict)]
    tally.non_object_rows += len(found) - len(rows)
    return rows


def _messages(row: dict[str, Any]) -> list[Any]:
    system = row.get("system")
    before = [{"role": "system", "content": text}] if (text := _text(system)) else []
    return [*before, *row["messages"]]


def _text(system: Any) -> str:
    return text_of(plain_blocks(system))


def _session(row: dict[str, Any], otherwise: str, names: Sequence[str] = _IDS) -> str:
    given = next((row[name] for name in names if isinstance(row.get(name), str)), None)
    return given or otherwise


def _is_conversation(row: dict[str, Any]) -> bool:
    messages = row.get("messages")
    return isinstance(messages, list) and any(
        isinstance(message, dict) and message.get("role") in _ROLES for message in messages
    )


def _is_message(row: dict[str, Any]) -> bool:
    return row.get("role") in _ROLES and ("content" in row or "tool_calls" in row)
