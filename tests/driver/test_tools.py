"""The tools of a session: by role, idempotent, errors with their hint, never a human verb."""

import json
from typing import Any

import anyio
import pytest

from harness.contract.roles import HUMAN_VERBS, ROLE_BY_NAME, ROLES
from harness.domain.grade import PERSON
from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.driver.tool_context import ToolContext
from harness.driver.tools.table import TOOLS, session_tools, tool_of
from harness.driver.vouching import vouching
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.project import Project
from harness.process import identity

HYPOTHESIS = {"hypothesis": "Nearest centres will do", "rationale": "They are far apart."}


def context_of(project: Project, role: str = "model-builder", **more: Any) -> ToolContext:
    return ToolContext(
        project, session="s-1", role=ROLE_BY_NAME[role], sandbox=SandboxKind.NONE, **more
    )


def call(context: ToolContext, name: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
    """(answer, is_error)"""
    (tool,) = [item for item in session_tools(context) if item.name == name]
    said = anyio.run(tool.handler, arguments)
    answer, failed = json.loads(said["content"][0]["text"]), said.get("is_error", False)
    declared = tool_of(name).answers
    assert failed or not declared or set(answer) <= set(declared), "a scenario refers to these"
    return answer, failed


@pytest.mark.parametrize("role", [role.name for role in ROLES])
def test_a_role_gets_the_tools_of_its_contract(project: Project, role: str) -> None:
    assert (
        tuple(tool.name for tool in session_tools(context_of(project, role)))
        == ROLE_BY_NAME[role].mcp_tools
    )


def test_every_tool_belongs_to_a_role_and_none_is_a_human_verb() -> None:
    assert set(TOOLS) == {tool for role in ROLES for tool in role.mcp_tools}
    # The last word makes a verb a person's: agents show and open experiments. They record results,
    # and no scenario; they export preferences, and no priors.
    words = {verb[-1] for verb in HUMAN_VERBS if verb[0] not in ("scenario", "priors")}
    assert not [tool for tool in TOOLS if words & set(tool.split("_"))]


def test_open_experiment_twice_is_one_experiment(project: Project) -> None:
    first, _ = call(context_of(project), "open_experiment", **HYPOTHESIS)
    again, failed = call(context_of(project), "open_experiment", **HYPOTHESIS)
    assert not failed
    assert first == again
    assert first["folder"] == str(project.layout.experiment("exp-0001"))
    assert [item.id for item in project.ledger.experiments()] == ["exp-0001"]


def test_a_session_that_goes_on_keeps_the_hypothesis(project: Project) -> None:
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    context = context_of(project, experiment="exp-0001")
    assert call(context, "open_experiment", **HYPOTHESIS)[0]["experiment"] == "exp-0001"
    said, failed = call(
        context, "open_experiment", hypothesis="Something else", rationale="It is better."
    )
    assert failed
    assert said["error"]["code"] == "experiment_undecided"


def test_a_session_that_goes_on_writes_the_hypothesis_that_a_kill_left_out(
    project: Project,
) -> None:
    first, _ = call(context_of(project), "open_experiment", hypothesis="h", rationale="r")
    path = project.layout.experiment(first["experiment"], "hypothesis")
    path.unlink()
    again = context_of(project, experiment=first["experiment"])
    assert call(again, "open_experiment", hypothesis="h", rationale="r")[1] is False
    assert "h" in path.read_text("utf-8")


def test_errors_come_back_with_code_message_and_hint(project: Project) -> None:
    said, failed = call(context_of(project), "start_run")
    assert failed
    assert said["error"]["code"] == "no_experiment"
    assert said["error"]["hint"] == "Call open_experiment first."


def test_a_session_cannot_touch_another_experiment(project: Project) -> None:
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    said, failed = call(
        context_of(project, experiment="exp-0001"), "run_status", experiment="exp-0002"
    )
    assert failed
    assert said["error"]["code"] == "other_experiment"


def test_a_closed_experiment_is_not_trained(project: Project) -> None:
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "a test")
    said, failed = call(context_of(project, experiment="exp-0001"), "start_run")
    assert failed
    assert said["error"]["code"] == "experiment_closed"


def test_runs_that_are_going_are_reported_not_started_again(project: Project) -> None:
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    run = project.ledger.register_run(
        experiment="exp-0001",
        seed=1,
        argv=["python", "train.py"],
        code="0" * 64,
        data={},
        environment={},
        sandbox="none",
        token="0" * 64,
    )
    project.ledger.append(
        RunStarted(
            experiment="exp-0001", run=run.id, supervisor=identity(), job=local_job(identity())
        )
    )
    context = context_of(project, experiment="exp-0001")
    said, failed = call(context, "start_run")
    assert not failed
    assert said["state"] == "running"
    assert context.supervisor is None


def test_a_supervisor_that_refuses_is_an_error_with_its_words(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project.layout.state.parents[1]))
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    (project.layout.root / "data" / "train.npz").write_bytes(b"changed")
    with vouching(project.layout.state, PERSON):
        said, failed = call(context_of(project, experiment="exp-0001"), "start_run")
    assert failed
    assert said["error"]["code"] == "split_changed"
    assert "data/train.npz" in said["error"]["message"]


@pytest.mark.parametrize(
    ("more", "code"),
    [({}, "nothing_to_take"), ({"command": "python train.py"}, "usage")],
)
def test_checkpoints_are_taken_by_the_same_tool(
    project: Project, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], code: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project.layout.state.parents[1]))
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    with vouching(project.layout.state, PERSON):
        context = context_of(project, experiment="exp-0001")
        said, failed = call(context, "start_run", take_from="exp-0001", **more)
    assert failed
    assert said["error"]["code"] == code, said


def test_a_hand_off_of_a_session_is_about_its_experiment_and_no_other(project: Project) -> None:
    said, failed = call(context_of(project), "hand_off", text="Nothing is open yet.")
    assert (said["experiment"], failed) == (None, False)
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    told: list[str] = []
    context = context_of(project, experiment="exp-0001", on_change=lambda: told.append("changed"))
    said, failed = call(context, "hand_off", text="Seed 2 diverged.", experiment="exp-0002")
    assert (said["error"]["code"], failed) == ("other_experiment", True)
    said, failed = call(context, "hand_off", text="Seed 2 diverged.")
    assert (said["experiment"], failed, told) == ("exp-0001", False, ["changed"])
    key = "hf_" + "q9Zt" * 6
    call(context, "hand_off", text=f"Use {key} for the data.")
    assert project.ledger.hand_offs()[-1].text == "Use [SECRET] for the data."
    call(context, "hand_off", text="Seed 2 diverged.")
    written = project.ledger.hand_offs()[-1]
    assert (written.by, written.session, written.text) == (
        "model-builder",
        "s-1",
        "Seed 2 diverged.",
    )


def test_no_score_is_said_and_the_result_is_written_without_claims(project: Project) -> None:
    call(context_of(project), "open_experiment", **HYPOTHESIS)
    context = context_of(project, "oracle", experiment="exp-0001")
    said, failed = call(context, "evaluation_report")
    assert failed
    assert said["error"]["code"] == "no_score"
    written, failed = call(
        context, "record_result", summary="Nothing was scored.", shortfalls=["No run completed."]
    )
    assert not failed
    assert written["written"] == str(project.layout.experiment("exp-0001", "result"))
    assert context.done == {"record_result"}


def test_an_alarm_may_be_passed_on_as_run_status_gave_it() -> None:
    """Typed items refuse unknown keys; of an alarm only code and rows are read."""
    tool = tool_of("record_diagnosis")
    items = tool.schema["properties"]["alarms"]["items"]
    assert "additionalProperties" not in items
    assert tool.schema["properties"]["candidates"]["items"]["additionalProperties"] is False
