"""Interactive use: an alarm reaches the session with its next tool call, once, and asks for the
training-checker."""

import json
import os
from typing import Any

import pytest
from hook_project import HookProject

from harness.contract.artifacts import BY_NAME
from harness.contract.roles import project_path

ALARM = {
    "code": "non_finite",
    "severity": "fatal",
    "metric": "loss",
    "row": 7,
    "message": "loss is NaN in 3 rows in a row",
    "try": ["Lower the learning rate."],
    "recovered": False,
}
GLOB = project_path(BY_NAME["alarms"], experiment="*", run="*")


@pytest.fixture
def watched(project: HookProject) -> HookProject:
    """A snapshot as the harness writes it: where alarms lie, and which experiment is open. It names
    no agent."""
    known = [*project.snapshot["artifacts"], {"name": "alarms", "glob": GLOB, "writer": "harness"}]
    current = {"id": "exp-0001", "hypothesis": "h", "status": "running", "runs": 1, "ended": 0}
    project.save(
        {
            **project.snapshot,
            "mode": "interactive",
            "role": None,
            "artifacts": known,
            "open_experiment": current,
        }
    )
    return project


def raise_alarms(project: HookProject, *alarms: Any, run: str = "run-01") -> None:
    path = GLOB.replace("*", "exp-0001", 1).replace("*", run)
    project.write(
        path,
        "".join(item if isinstance(item, str) else json.dumps(item) + "\n" for item in alarms),
    )


def told(project: HookProject, session: str = "s-1") -> str:
    given = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}
    return project.event("PostToolUse", session=session, **given).context


def test_an_alarm_is_told_at_the_next_call_and_once(watched: HookProject) -> None:
    assert told(watched) == ""
    raise_alarms(watched, ALARM)
    text = told(watched)
    assert text.startswith(
        "harness: exp-0001/run-01 raised fatal non_finite at row 7: loss is NaN"
    )
    assert "Lower the learning rate." in text
    assert "training-<model>-checker" in text
    assert told(watched) == ""
    raise_alarms(watched, ALARM, {**ALARM, "severity": "note", "row": 12, "recovered": True})
    assert told(watched).startswith("harness: exp-0001/run-01 raised note non_finite at row 12")
    raise_alarms(watched, {**ALARM, "code": "stall"}, run="run-02")
    assert "exp-0001/run-02 raised fatal stall" in told(watched)
    assert told(watched) == ""
    assert told(watched, session="s-2").count("harness: ") == 3


@pytest.mark.parametrize("damage", ["link", "pipe", "torn", "no object"])
def test_damaged_alarms_block_nothing(watched: HookProject, damage: str) -> None:
    path = watched.root / GLOB.replace("*", "exp-0001", 1).replace("*", "run-01")
    if damage in ("torn", "no object"):
        raise_alarms(watched, '{"code": ' if damage == "torn" else "[1]\n")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(watched.root / "plan.md") if damage == "link" else os.mkfifo(path)
    assert told(watched) == ""


def test_the_session_is_asked_for_the_diagnosis_before_it_ends(watched: HookProject) -> None:
    snapshot = json.loads((watched.root / ".harness/policy.json").read_text("utf-8"))
    current = {**snapshot["open_experiment"], "ended": 1, "undiagnosed": ["run-01"]}
    watched.save({**snapshot, "open_experiment": current})
    due = watched.event("Stop").due
    assert "exp-0001/run-01 has an open alarm and no diagnosis" in due
    assert "training-checker" in due
