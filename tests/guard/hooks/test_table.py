"""What stands in settings, as it stands there."""

import importlib

import pytest

from harness.guard.hooks.table import (
    BY_NAME,
    EVENTS,
    GUARD,
    OBSERVER,
    REMINDER,
    entry,
    hooks_section,
)

PREFIX = "${CLAUDE_PROJECT_DIR}/.claude/hooks/harness"


def test_the_events_and_what_their_failure_means():
    assert {event.name: event.kind for event in EVENTS} == {
        "PreToolUse": GUARD,
        "PreSkillShellCommand": GUARD,
        "ConfigChange": GUARD,
        "PostToolUse": OBSERVER,
        "PostToolBatch": OBSERVER,
        "Stop": REMINDER,
        "SubagentStart": OBSERVER,
        "SubagentStop": REMINDER,
        "SessionStart": OBSERVER,
        "SessionEnd": OBSERVER,
    }


def test_a_guards_entry():
    assert entry(BY_NAME["PreToolUse"], "/usr/bin/python3", PREFIX) == {
        "type": "command",
        "command": "/usr/bin/python3",
        "args": ["-I", "-S", "${CLAUDE_PROJECT_DIR}/.claude/hooks/harness/run.py", "PreToolUse"],
        "timeout": 30,
        "onFailure": "block",
    }


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_each_entry_is_whole(event):
    (group,) = hooks_section("/usr/bin/python3", PREFIX)[event.name]
    (made,) = group["hooks"]
    assert 10 <= made["timeout"] <= 30, "seconds"
    assert ("onFailure" in made) is (event.kind == GUARD)
    assert group.get("matcher") == ("*" if event.name in ("PreToolUse", "PostToolUse") else None)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_each_handler_exists(event):
    module, _, function = event.handler.partition(":")
    assert callable(getattr(importlib.import_module(f"harness.guard.hooks.{module}"), function))
