"""What skills, slash commands and other tools with a command line run is judged as Bash is."""

import pytest
from hook_project import HookProject

EVENT = "PreSkillShellCommand"
BAD = (
    "harness gate check exp-0001; echo x > .harness/policy.json",
    "harness status $(rm -rf .claude)",
    "cd .harness && rm policy.json",
    "harness gate approve exp-0001 --reason fine",
    "python train.py",
)


def line(project: HookProject, command: str, identity: str = "toolu_1:preamble-0"):
    named = {"hook_event_name": EVENT, "tool_name": "Bash", "tool_input": {"command": command}}
    more = {
        "command_name": "harness:gate",
        "command_source": "projectSettings",
        "invoked_by": "claude",
    }
    return project.event(EVENT, tool_use_id=identity, **named, **more)


@pytest.mark.parametrize("command", BAD)
def test_a_skills_line_is_judged_as_bash_is(project: HookProject, command: str) -> None:
    assert line(project, command).denied
    (receipt,) = project.receipts()
    assert (receipt["event"], receipt["permission"], receipt["tool"]) == (EVENT, "deny", "Bash")


def test_a_skills_ordinary_line_passes(project: HookProject) -> None:
    assert not line(project, "harness gate check exp-0001 2>&1 || true").denied
    (receipt,) = project.receipts()
    assert (receipt["event"], receipt["permission"]) == (EVENT, None)


@pytest.mark.parametrize("command", BAD)
def test_another_tools_command_line_is_judged_as_bash_is(
    project: HookProject, command: str
) -> None:
    """Monitor starts a shell in the background."""
    assert project.call("Monitor", {"command": command, "description": "watch"}).denied


def test_other_tools_without_one_pass(project: HookProject) -> None:
    assert not project.call(
        "Monitor", {"command": "tail -n 1 train.py", "description": "watch"}
    ).denied
    assert not project.call(
        "Agent", {"prompt": "look at .harness/policy.json", "description": "look"}
    ).denied
    assert not project.call(
        "WebFetch", {"url": "http://localhost/plan.md", "prompt": "read"}
    ).denied
