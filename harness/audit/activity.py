"""What sessions did in a project, by their receipts and by their transcripts.

A hook that did not fire leaves no receipt, but the transcript still has the call.
"""

import json
import mmap
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.artifacts.content import open_regular, read_bytes
from harness.artifacts.jsonl import LineFeed, parse_line
from harness.clock import parse_iso
from harness.domain.claude_folder import claude_folder
from harness.domain.late import Late, dataclass
from harness.errors import UsageError
from harness.traces.events import ToolCall, ToolResult, TracedSession, TraceEvent
from harness.traces.transcripts import read_session, session_files

GUARD, AFTER, AFTER_BATCH = "PreToolUse", "PostToolUse", "PostToolBatch"
_PROJECTS = "projects"
_REFUSED = ("<tool_use_error>", "PreToolUse:", "The user doesn't want to", "Permission to use ")
"""How the results of refused calls begin."""
_EXITED = "Exit code "
"""How the error of a command that ran begins."""


@dataclass(frozen=True, kw_only=True)
class Receipt(Late):
    time: datetime
    event: str
    tool: str
    call: str
    permission: str | None
    rule: str
    reason: str
    paths: tuple[str, ...]
    control: Mapping[str, str]
    """Control path -> digest, where the hook left some."""


@dataclass(frozen=True, kw_only=True)
class Call(Late):
    """One tool call of a transcript."""

    id: str
    tool: str
    input: Mapping[str, Any]
    cwd: str
    agent: str | None
    agent_type: str | None
    started: datetime
    ended: datetime | None
    """When its result came; None when it has none."""
    ran: bool
    """False when Claude Code refused it before it ran."""
    done: bool
    """Whether its result can only be that of a call that ran."""


@dataclass(kw_only=True)
class Activity(Late):
    """One session."""

    session: str
    receipts: list[Receipt] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def span(self) -> tuple[datetime, datetime] | None:
        """The times of its first and last trace."""
        moments = [receipt.time for receipt in self.receipts] + [
            call.started for call in self.calls
        ]
        moments += [call.ended for call in self.calls if call.ended is not None]
        return (min(moments), max(moments)) if moments else None


@dataclass(frozen=True, kw_only=True)
class Unread(Late):
    """What of a transcript nobody can read: calls may stand in it."""

    path: Path
    why: str


def read_activities(
    receipts: Path, transcripts: Iterable[Path]
) -> tuple[list[Activity], list[Unread]]:
    """Every session with receipts or a transcript, by name; and what could not be read."""
    unread: list[Unread] = []
    activities: dict[str, Activity] = {}
    for path in sorted(receipts.glob("*.jsonl")):
        for name, receipt in _receipts(path):
            activities.setdefault(name, Activity(session=name)).receipts.append(receipt)
    for path in transcripts:
        try:
            session = read_session(path)
        except UsageError as error:
            unread.append(Unread(path=path, why=error.message))
            continue
        activity = activities.setdefault(session.id, Activity(session=session.id))
        calls, timeless = _calls(session)
        activity.calls += calls
        lost = {
            "damaged lines": session.damaged,
            "unreadable files of subagents": session.skipped.get("subagent file", 0),
            "calls without a time": timeless,
        }
        if any(lost.values()):
            why = ", ".join(f"{count} {what}" for what, count in lost.items() if count)
            unread.append(Unread(path=path, why=why))
    return [activities[name] for name in sorted(activities)], unread


def transcript_home(environment: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its transcripts: `$CLAUDE_CONFIG_DIR/projects`, by default
    `~/.claude/projects`."""
    home = Path(environment.get("HOME") or "~").expanduser()
    return claude_folder(environment, home) / _PROJECTS


def transcripts_of(root: Path, folder: Path, since: datetime | None) -> Iterator[Path]:
    """The transcripts in `folder`, written to after `since`, that may be of the project `root`."""
    # Claude Code names a transcript's folder after the session's working directory. A session that
    # was started elsewhere may have worked here too: then its transcript spells the path, as JSON,
    # with or without escapes for letters beyond ASCII.
    named = re.sub(r"[^A-Za-z0-9]", "-", str(root))
    spelled = {
        json.dumps(str(root), ensure_ascii=ascii_only)[1:-1].encode()
        for ascii_only in (True, False)
    }
    for path in session_files(folder):
        family = [path, *(path.with_suffix("") / "subagents").rglob("*.jsonl")]
        if since is not None and all(_written(file) < since.timestamp() for file in family):
            continue
        place = path.parent.name
        if (
            place == named
            or place.startswith(named + "-")
            or any(_holds(file, spelled) for file in family)
        ):
            yield path


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _holds(path: Path, texts: Iterable[bytes]) -> bool:
    try:
        with (
            open_regular(path) as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return any(data.find(text) >= 0 for text in texts)
    except (OSError, ValueError, UsageError):  # ValueError: an empty file
        return False


def _receipts(path: Path) -> Iterator[tuple[str, Receipt]]:
    """(session, receipt) of each whole line."""
    try:
        data = read_bytes(path)
    except UsageError:
        return
    feed = LineFeed()
    for line in (*feed.feed(data), feed.rest):
        for row in parse_line(line, lambda row: "session" in row).rows:
            moment = _moment(row.get("time"))
            if moment is None:
                continue
            paths, control = row.get("paths"), row.get("control")
            receipt = Receipt(
                time=moment,
                event=str(row.get("event")),
                tool=str(row.get("tool") or ""),
                call=str(row.get("tool_use_id") or ""),
                permission=row["permission"] if isinstance(row.get("permission"), str) else None,
                rule=str(row.get("rule") or ""),
                reason=str(row.get("reason") or ""),
                paths=tuple(name for name in paths if isinstance(name, str))
                if isinstance(paths, list)
                else (),
                control={str(k): str(v) for k, v in control.items()}
                if isinstance(control, dict)
                else {},
            )
            yield str(row.get("session")), receipt


def _calls(session: TracedSession) -> tuple[list[Call], int]:
    """The tool calls of the session and of all its subagents; how many more have no time."""
    threads: list[tuple[str | None, Sequence[TraceEvent]]] = [(None, session.events)]
    threads += [(agent.agent_type, agent.events) for agent in session.subagents]
    calls, timeless = [], 0
    for agent_type, events in threads:
        results = {event.call: event for event in events if isinstance(event, ToolResult)}
        for event in events:
            if not isinstance(event, ToolCall):
                continue
            started = _moment(event.time)
            if started is None:
                timeless += 1
            else:
                calls.append(_call(event, results.get(event.id), agent_type, started))
    return calls, timeless


def _call(
    event: ToolCall, result: ToolResult | None, agent_type: str | None, started: datetime
) -> Call:
    # A tool of an MCP server words its errors itself, and could word them like a refusal.
    refused = result is not None and result.error and result.text.startswith(_REFUSED)
    refused = refused and not event.tool.startswith("mcp__")
    return Call(
        id=event.id,
        tool=event.tool,
        input=event.input,
        cwd=event.cwd,
        agent=event.agent,
        agent_type=agent_type,
        started=started,
        ended=_moment(result.time) if result is not None else None,
        ran=not refused,
        done=result is not None and (not result.error or result.text.startswith(_EXITED)),
    )


def _moment(text: Any) -> datetime | None:
    try:
        return parse_iso(text) if isinstance(text, str) else None
    except ValueError:
        return None
