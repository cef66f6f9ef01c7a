"""What happened in a Claude Code session, as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TraceEvent:
    time: str
    """As in the row: UTC ISO 8601; empty when the row has none."""
    cwd: str
    agent: str | None
    """The subagent's id; None in the main thread."""


@dataclass(frozen=True, kw_only=True)
class UserPrompt(TraceEvent):
    """What a person typed."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Answer(TraceEvent):
    """One message of the model, which a transcript spreads over several rows."""

    blocks: tuple[dict[str, Any], ...]
    """The content blocks of all its rows, in order."""
    usage: Mapping[str, Any]
    """Of its last row; earlier rows count a part of the same tokens."""


@dataclass(frozen=True, kw_only=True)
class ToolCall(TraceEvent):
    id: str
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolResult(TraceEvent):
    call: str
    """The id of the ToolCall that it answers."""
    error: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class Compaction(TraceEvent):
    """The conversation was summarised to make room; events before it are still in the file."""


@dataclass(frozen=True, kw_only=True)
class ApiError(TraceEvent):
    """The model service failed: not an answer of the model."""

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
    """TASK is work that somebody asked for; Claude Code starts the others itself."""
    agent_type: str | None
    call: str | None
    """The id of the ToolCall that started it; None when that is unknown."""
    events: tuple[TraceEvent, ...]


@dataclass(frozen=True, kw_only=True)
class TracedSession:
    id: str
    events: tuple[TraceEvent, ...]
    """Of the main thread, in file order."""
    subagents: tuple[Subagent, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Row type -> number of rows that are no events."""
    damaged: int = 0
    """Number of lines of which something is lost; a torn last line does not count."""
