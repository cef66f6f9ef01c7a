"""The one table of hook events: what handles each, what its
failure means, how long it may take.

Settings, the plugin's hooks.json, the check of changed
settings, the doctor and the documents are derived from it.
hooks/run.py repeats what a failure means: it must know that
without this library.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GUARD, REMINDER, OBSERVER = "guard", "reminder", "observer"
"""A guard fails closed; a reminder asks for one more step and
fails open; an observer never blocks."""
PROGRAM = "run.py"
"""The program of every hook; its one argument is the event."""
ISOLATED = ("-I", "-S")
"""How the interpreter starts: no environment variables, no user
folder, no site packages."""


class HookEvent:
    """One hook event of Claude Code. `handler` is the function
    (module:name, beside this one) that answers it; `timeout`
    is in seconds; `matcher` None: the event has none."""

    __slots__ = ("handler", "kind", "matcher", "name", "timeout")

    def __init__(
        self,
        name: str,
        kind: str,
        handler: str,
        timeout: int,
        matcher: str | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.handler = handler
        self.timeout = timeout
        self.matcher = matcher


EVENTS: tuple[HookEvent, ...] = (
    HookEvent("PreToolUse", GUARD, "before_tool:before_tool", 30, "*"),
    HookEvent("PreSkillShellCommand", GUARD, "before_tool:before_tool", 30),
    HookEvent("ConfigChange", GUARD, "settings_guard:settings_changed", 30),
    HookEvent("PostToolUse", OBSERVER, "after_tool:after_tool", 20, "*"),
    HookEvent("PostToolBatch", OBSERVER, "after_tool:after_batch", 20),
    HookEvent("Stop", REMINDER, "reminders:before_stop", 20),
    HookEvent("SubagentStart", OBSERVER, "subagents:started", 20),
    HookEvent("SubagentStop", REMINDER, "subagents:before_stop", 20),
    HookEvent("SessionStart", OBSERVER, "session:session_started", 30),
    HookEvent("SessionEnd", OBSERVER, "session:session_ended", 10),
)
STATUS_LINE = HookEvent("StatusLine", OBSERVER, "status_line:shown", 30)
"""No hook event: Claude Code calls the status line like one,
with another payload."""
BY_NAME: dict[str, HookEvent] = {event.name: event for event in (*EVENTS, STATUS_LINE)}


def entry(event: HookEvent, interpreter: str, prefix: str) -> dict[str, Any]:
    """The hook entry as it stands in settings and hooks.json:
    exec form, so that no shell and no cwd matters.

    `prefix` is the folder of the programs, starting with
    ${CLAUDE_PROJECT_DIR} or ${CLAUDE_PLUGIN_ROOT}.
    """
    settings: dict[str, Any] = {
        "type": "command",
        "command": interpreter,
        "args": [*ISOLATED, f"{prefix}/{PROGRAM}", event.name],
        "timeout": event.timeout,
    }
    if event.kind == GUARD:
        settings["onFailure"] = "block"
    return settings


def hooks_section(interpreter: str, prefix: str) -> dict[str, Any]:
    """The value of `hooks` in a settings file: every event with
    its one entry."""
    section: dict[str, Any] = {}
    for event in EVENTS:
        group: dict[str, Any] = {} if event.matcher is None else {"matcher": event.matcher}
        section[event.name] = [{**group, "hooks": [entry(event, interpreter, prefix)]}]
    return section
