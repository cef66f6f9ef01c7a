"""What happened in a Claude Code session, as typed values; `traces.read` makes them from its
transcript."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Event:
    uuid: str
    parent: str | None
    """The row that it follows; at a compaction the one before it, so that nothing earlier is
    lost."""
    time: str
    """As it stands in the row: UTC ISO 8601; empty when the row has none."""
    cwd: str
    agent: str | None
    """The subagent's id; None in the main thread."""


@dataclass(frozen=True, kw_only=True)
class UserPrompt(Event):
    """What a person typed: no tool result, no summary, no echo of a command, nothing said to a
    subagent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Answer(Event):
    """One message of the model, which a transcript spreads over several rows."""

    message_id: str
    model: str
    blocks: tuple[dict[str, Any], ...]
    """Of all its rows, in order."""
    usage: Mapping[str, Any]
    """Of its last row; earlier ones count a part of the same tokens."""


@dataclass(frozen=True, kw_only=True)
class ToolCall(Event):
    id: str
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolResult(Event):
    call: str
    """The id of the ToolCall that it answers."""
    error: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class Compaction(Event):
    trigger: str


@dataclass(frozen=True, kw_only=True)
class ApiError(Event):
    """The model service failed; no answer of a model."""

    text: str


class AgentKind(StrEnum):
    TASK = "task"
    WARM_UP = "warm-up"
    PROMPT_SUGGESTION = "prompt suggestion"
    COMPACTION = "compaction"


@dataclass(frozen=True, kw_only=True)
class Subagent:
    id: str
    kind: AgentKind
    """Only TASK is work that somebody asked for; the others are Claude Code's own."""
    agent_type: str | None
    call: str | None
    """The id of the ToolCall that started it; None when nothing says which ("unjoined")."""
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class Session:
    id: str
    path: Path
    events: tuple[Event, ...]
    """Of the main thread, in the order of the file."""
    subagents: tuple[Subagent, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Row type -> how many rows of it were not read: none of them is an event."""
    damaged: int = 0
    """Lines of which something is lost, the torn last line of a session that runs left out."""
