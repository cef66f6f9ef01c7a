"""The tools of training programs: from a specification to an evaluated model; what is a person's
has no tool."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.contract.roles import ROLE_BY_NAME, ROLES
from harness.domain.grade import PERSON
from harness.domain.statuses import SandboxKind
from harness.driver.tool_context import ToolContext
from harness.driver.tools.table import PROGRAM_TOOLS, TOOLS, session_tools
from harness.driver.vouching import vouching
from harness.ledger.project import Project, open_project
from tests.blobs import own_environment
from tests.mcp_client import McpClient
from tests.posttrain import programs

SPEC = {
    "backend": "command",
    "mode": "orpo",
    "profile": "local-reader",
    "model": programs.MODEL,
    "dataset": "train.jsonl",
    "benchmark": "held_out.jsonl",
    "trainer": ["python", "trainer.py"],
}


@pytest.fixture
def tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    own = own_environment(tmp_path)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    with (
        open_project(programs.make_root(tmp_path / "tuning"), own, caller=PERSON) as opened,
        vouching(opened.layout.state, PERSON),
    ):
        yield opened


@pytest.fixture
def context(tuning: Project) -> ToolContext:
    return ToolContext(
        tuning, session="s-1", role=ROLE_BY_NAME["post-trainer"], sandbox=SandboxKind.NONE
    )


def call(context: ToolContext, tool_name: str, **arguments: Any) -> tuple[dict[str, Any], bool]:
    (tool,) = [item for item in session_tools(context) if item.name == tool_name]
    said = anyio.run(tool.handler, arguments)
    return json.loads(said["content"][0]["text"]), said.get("is_error", False)


def test_one_role_has_them_and_no_step_of_the_loop_pays_for_them() -> None:
    assert [role.name for role in ROLES if set(role.mcp_tools) & set(PROGRAM_TOOLS)] == [
        "post-trainer"
    ]
    assert ROLE_BY_NAME["post-trainer"].step is None
    words = {word for name in PROGRAM_TOOLS for word in name.split("_")}
    assert not words & {"promote", "reject", "rollback", "import", "serve", "deploy"}


def test_from_a_specification_to_an_evaluated_model(context: ToolContext, tuning: Project) -> None:
    judge = ["python", "judge.py"]
    made, failed = call(
        context,
        "specify_training",
        **SPEC,
        evaluator=judge,
        seed=4,
        hyperparameters={"max_steps": 7},
    )
    assert not failed, made
    name = made["experiment"]
    recorded = made["specification"]
    assert (recorded["seed"], recorded["hyperparameters"]["max_steps"]) == (4, 7)
    assert recorded["benchmark"]["evaluator"]["command"] == judge
    started, failed = call(context, "run_training", experiment=name)
    assert not failed, started
    ended, _ = call(context, "training_status", experiment=name, wait_seconds=60)
    assert (ended["state"], [run["status"] for run in ended["runs"]]) == ("ended", ["completed"])
    (model,) = ended["models"]
    refused, failed = call(context, "evaluate_model", model=model["id"][:12])
    assert (refused["error"]["code"], failed) == ("benchmark_not_approved", True)
    programs.approve(tuning, seeds=(4, 5, 6))
    judged, failed = call(context, "evaluate_model", model=model["id"][:12])
    assert (judged["verdict"], failed) == ("INCONCLUSIVE", False)
    assert judged["joint"]["outstanding"] == [5, 6]
    (run,) = call(context, "training_lineage", name=name)[0]["runs"]
    assert [item["verdict"] for item in run["models"][0]["evaluations"]] == ["INCONCLUSIVE"]
    assert tuning.ledger.program(name).by == "post-trainer"
    assert tuning.ledger.model(model["id"]).state == "registered", "an evaluation promotes nothing"
    again, failed = call(context, "run_training", experiment=name)
    assert (again["error"]["code"], failed) == ("already_completed", True)


def test_an_agent_is_told_the_type_of_an_evaluators_error(
    context: ToolContext, tuning: Project
) -> None:
    """Its words could carry rows of the benchmark."""
    programs.write_evaluator(
        tuning.layout.root, change="raise ValueError(request['rows']['path'] + ' held-out answer')"
    )
    made, _ = call(context, "specify_training", **SPEC, evaluator=["python", "judge.py"])
    call(context, "run_training", experiment=made["experiment"])
    ended, _ = call(context, "training_status", experiment=made["experiment"], wait_seconds=60)
    (model,) = ended["models"]
    programs.approve(tuning)
    judged, failed = call(context, "evaluate_model", model=model["id"])
    assert (judged["verdict"], failed) == ("INCONCLUSIVE", False)
    assert judged["problems"][0]["reason"] == "the evaluator failed: ValueError"
    assert "exit code 1: the evaluator failed: ValueError" in judged["reason"]
    told = json.dumps([judged, call(context, "training_lineage", name=model["id"])[0]])
    assert "rows.jsonl" not in told
    assert "held-out answer" not in told


def test_what_is_wrong_is_said_with_its_hint(context: ToolContext, tuning: Project) -> None:
    wrong = {**SPEC, "hyperparameters": {"learning_rate": -1}, "minutes": 0}
    said, failed = call(context, "specify_training", **wrong)
    assert failed
    assert {"learning_rate", "minutes"} <= set(
        said["error"]["message"].replace(":", " ").replace(".", " ").split()
    )
    assert call(context, "run_training", experiment="exp-0009")[0]["error"]["code"] == "not_found"
    assert call(context, "training_lineage", name="0123abc")[1]
    assert call(context, "evaluate_model", model="0123abc")[1]
    nothing = {"programs": [], "approved": [], "models": [], "served": {}}
    assert call(context, "training_status")[0] == nothing
    made, _ = call(context, "specify_training", **SPEC)
    said, failed = call(context, "run_training", experiment=made["experiment"], resume=True)
    assert (said["error"]["code"], failed) == ("nothing_to_resume", True)


def test_rows_go_to_an_ordinary_new_file_of_the_project_only(
    context: ToolContext, tuning: Project
) -> None:
    root = tuning.layout.root
    mine = [{**row, "licence": "cc0-1.0", "consent": True} for row in programs.rows(2)]
    programs.write_rows(root / "mine.jsonl", [*mine, *programs.rows(1, 50)])
    for target in (
        "../out.jsonl",
        ".claude/settings.jsonl",
        str(root.parent / "out.jsonl"),
        "plan.md",
    ):
        said, failed = call(context, "export_preferences", source="mine.jsonl", target=target)
        assert failed, said
    said, failed = call(context, "export_preferences", source="mine.jsonl", target="out.jsonl")
    assert (said["rows"], len(said["left_out"]), failed) == (2, 1, False)
    assert len((root / "out.jsonl").read_text().splitlines()) == 2
    assert call(context, "export_preferences", source="mine.jsonl", target="out.jsonl")[1], (
        "nothing is overwritten"
    )


@pytest.mark.slow
def test_the_server_offers_them_where_programs_are_trained(
    context: ToolContext, tuning: Project
) -> None:
    with McpClient(tuning.layout.root, os.environ) as client:
        assert not set(client.tools()) & set(PROGRAM_TOOLS)
    call(context, "specify_training", **SPEC)
    with McpClient(tuning.layout.root, os.environ) as client:
        assert tuple(client.tools()) == TOOLS
        said, failed = client.call("training_status")
        assert ([item["runs"] for item in said["programs"]], failed) == ([[]], False)
