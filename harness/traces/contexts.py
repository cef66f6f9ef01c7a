"""A file of states, and what each of them knew: its context as messages in the layout that TRL and
Hugging Face use."""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from harness.errors import UsageError
from harness.traces.file_lines import file_lines
from harness.traces.states import replayed

Row = dict[str, Any]
Message = dict[str, Any]
LONGEST = 4_000
"""Characters of one message of a context: the middle of a longer one is left out."""
_SHORTEST = 60
_ASKED = ("prompt", "instruction", "summary")
_FIELDS = {"id", "session", "thread", "kind", "after", "added", "compacted", "action", "results"}
_FIELDS |= {"outcome", "model", "provenance", "licence", "consent"}
"""Without which a row is no state; others are not read here."""
_KEPT = 512
"""Rows that are held."""


class Context(NamedTuple):
    """What an agent knew."""

    messages: list[Message]
    cut: bool
    """Whether older messages were left out."""
    told_by: list[Row]
    """The states that they stand in: a fork's go on into the session that it is a fork of."""


class StateFile:
    """Rows are read where they stand in the file; only their places are held."""

    def __init__(self, path: Path) -> None:
        """Raises NotFoundError or UsageError for a file that is none of states."""
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._next: dict[tuple[str, str], list[str]] = {}
        at = 0
        for number, line in enumerate(file_lines(path), 1):
            if line.strip():
                row = self._read(line, number)
                self._places[row["id"]] = (at, len(line))
                key = (str(row["after"] or ""), row["thread"])
                self._next.setdefault(key, []).append(row["id"])
            at += len(line)
        self.row = lru_cache(maxsize=_KEPT)(self._row)

    def _read(self, line: bytes, number: int) -> Row:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            row = None
        if not isinstance(row, dict) or not row.keys() >= _FIELDS:
            raise UsageError(
                f"{self.path}:{number} is no state.",
                hint="Make one with `harness traces ingest`.",
            )
        return row

    def _row(self, identifier: str) -> Row:
        start, length = self._places[identifier]
        with self.path.open("rb") as stream:
            stream.seek(start)
            row: Row = orjson.loads(stream.read(length))
        return row

    def rows(self) -> Iterator[Row]:
        for identifier in self._places:
            yield self.row(identifier)

    def following(self, row: Row) -> Row | None:
        """The next state of its thread."""
        after = self._next.get((row["id"], row["thread"]), [])
        rows = (self.row(identifier) for identifier in after)
        return next((each for each in rows if each["session"] == row["session"]), None)

    def siblings(self, row: Row) -> list[Row]:
        """Other states that stand after the same one, with the same messages since."""
        beside = self._next.get((str(row["after"] or ""), row["thread"]), [])
        others = (self.row(identifier) for identifier in beside if identifier != row["id"])
        return [other for other in others if other["added"] == row["added"]]

    def context(self, row: Row, *, budget: int) -> Context:
        """What it knew: the newest messages of at most `budget` characters, and the question that
        was being worked on, cut. The ones since the state before come first. It begins anew
        after a compaction, with the summary. What is gone from the file is left out, too."""
        turns = [[_heard(message) for message in row["added"]]]
        left, at, cut = budget - _size(_cut_all(turns[0])), row, False
        asked, told_by = _question(row), [row]
        while at["after"] in self._places and not at["compacted"]:
            at = self.row(at["after"])
            turn = [*map(_heard, at["added"]), *acted(at, thinking=False)]
            left -= _size(_cut_all(turn))
            cut = cut or left < 0
            question = _question(at)
            if cut:
                turn = [question] if asked is None and question is not None else []
            if turn:
                turns.append(turn)
                told_by.append(at)
            asked = asked or question
            if cut and asked is not None:
                break
        cut = cut or (at["after"] is not None and not at["compacted"])
        known = [message for turn in reversed(turns) for message in turn]
        messages, dropped = _fitted(known, asked, budget)
        return Context(messages, cut or dropped, told_by)


def sessions_of(row: Row) -> set[str]:
    """The sessions that a row was made of; a pair may be of two."""
    provenance = row.get("provenance")
    given = provenance if isinstance(provenance, dict) else {}
    several = given.get("sessions")
    named = [row.get("session"), given.get("session")]
    named += several if isinstance(several, list) else []
    return {session for session in named if isinstance(session, str)}


def _question(row: Row) -> Message | None:
    """The newest message of a state that somebody asked with."""
    asked = [message for message in row["added"] if message["kind"] in _ASKED]
    return _heard(asked[-1]) if asked else None


def acted(row: Row, *, thinking: bool, results: bool = True) -> list[Message]:
    """An action as an assistant's message, and its results as those of tools."""
    blocks = row["action"] if thinking else replayed(row["action"])
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    message: Message = {"role": "assistant", "content": said}
    thought = "\n".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    if thought.strip():
        message["reasoning_content"] = thought
    calls = [block for block in blocks if block["type"] == "tool_use"]
    if calls:
        message["tool_calls"] = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": block["input"]},
            }
            for block in calls
        ]
    names = {block["id"]: block["name"] for block in calls}
    told = [
        {
            "role": "tool",
            "tool_call_id": result["call"],
            "name": names.get(result["call"], ""),
            "content": spoken(result["content"]),
        }
        for result in row["results"]
    ]
    return [message, *(told if results else ())]


def spoken(content: Any) -> str:
    """Text; of an image or a document only that it was there."""
    if isinstance(content, str):
        return content
    return "\n".join(
        block["text"] if block["type"] == "text" else f"[{block['type']}]" for block in content
    )


def as_text(messages: list[Message]) -> str:
    """A conversation as one text, for a model whose template knows no tools."""
    return "\n\n".join(f"{_NAMES[message['role']]}: {said(message)}" for message in messages)


_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Result"}


def said(message: Message) -> str:
    """A message without its role: thinking, text, calls."""
    parts = []
    if thought := message.get("reasoning_content"):
        parts.append(f"<think>{thought}</think>")
    parts.append(message["content"])
    for call in message.get("tool_calls", ()):
        given = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        parts.append(f"{call['function']['name']}({given})")
    return "\n".join(filter(None, parts))


def _heard(message: Message) -> Message:
    heard = {"role": message["role"], "content": spoken(message["content"])}
    return heard if message["role"] != "tool" else heard | {"tool_call_id": message.get("call")}


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Neighbouring messages of a user as one: many templates want turns."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is not None and last["role"] == message["role"] == "user":
            joined[-1] = last | {"content": f"{last['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined


def _asked_first(messages: list[Message]) -> list[Message]:
    """Without the answers and results before the first question: templates begin with one."""
    roles = [message["role"] for message in messages]
    first = next((n for n, role in enumerate(roles) if role in ("user", "system")), 0)
    return messages[first:]


def _fitted(
    messages: list[Message], asked: Message | None, budget: int
) -> tuple[list[Message], bool]:
    """(a conversation of at most `budget` characters, whether messages are left out): the middle of
    the longest is left out until all have room; at most `_SHORTEST` characters are left of one.
    Then the oldest go, but not the question `asked`."""
    longest, dropped = LONGEST, False
    while _size(fitted := _conversation(messages, longest)) > budget:
        if longest > _SHORTEST:
            longest = max(longest // 2, _SHORTEST)
        elif len(messages) > 1:
            messages, dropped = _without_oldest(messages, asked), True
        else:
            break
    return fitted, dropped


def _conversation(messages: list[Message], longest: int) -> list[Message]:
    return _asked_first(_joined(_cut_all(messages, longest)))


def _without_oldest(messages: list[Message], asked: Message | None) -> list[Message]:
    """Results go with their call."""
    first = next((n for n, one in enumerate(messages) if one != asked), 0)
    after = first + 1
    while "tool_calls" in messages[first] and messages[after : after + 1]:
        if messages[after]["role"] != "tool":
            break
        after += 1
    return messages[:first] + messages[after:]


def _cut_all(messages: list[Message], longest: int = LONGEST) -> list[Message]:
    return [one | {"content": _cut(one["content"], longest)} for one in messages]


def _cut(text: str, longest: int) -> str:
    """Without its middle, where that makes it shorter."""
    half = longest // 2
    cut = f"{text[:half]}\n[... {len(text) - 2 * half} characters]\n{text[-half:]}"
    return cut if len(text) > longest and len(cut) < len(text) else text


def _size(messages: list[Message]) -> int:
    return sum(len(said(message)) for message in messages)
