"""The contract: roles and artifacts say the same thing once."""

import pytest

from harness.contract.artifacts import (
    ARTIFACTS,
    BY_NAME,
    HARNESS,
    HUMAN,
    REQUIRED,
    Scope,
    required,
)
from harness.contract.roles import (
    HUMAN_VERBS,
    ROLE_BY_NAME,
    ROLES,
    TOOL_PREFIX,
    project_path,
)
from harness.domain.statuses import GateName
from harness.guard.policy import decide

NAMES = [
    "research-scout",
    "data-engineer",
    "model-builder",
    "training-checker",
    "oracle",
    "post-trainer",
]
NAMES += ["code-reviewer", "analyst", "software-engineer"]


def test_roles_of_the_product():
    assert [role.name for role in ROLES] == NAMES
    assert {role.name: role.step for role in ROLES if role.step} == {
        "research-scout": "scout",
        "model-builder": "build",
        "training-checker": "diagnose",
        "oracle": "judge",
        "data-engineer": "data",
        "code-reviewer": "design",
        "analyst": "analyse",
        "software-engineer": "package",
    }


def test_every_writer_is_a_role_the_harness_or_a_person():
    assert {artifact.writer for artifact in ARTIFACTS} <= {*NAMES, HARNESS, HUMAN}
    assert len(BY_NAME) == len(ARTIFACTS)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_each_role_reads_artifacts_of_the_table_and_owns_what_the_table_says(role):
    assert [artifact.name for artifact in role.reads] == list(role.consumes)
    assert {artifact.name for artifact in role.owns} == {
        a.name for a in ARTIFACTS if a.writer == role.name
    }
    assert len(set(role.allowed_tools)) == len(role.allowed_tools)
    assert role.checklist
    assert role.purpose.endswith(".")
    assert "\n" not in role.purpose
    assert ": " not in role.purpose, "the front matter holds it as a plain scalar"


def test_tools_of_the_roles_that_steps_use():
    builder, oracle = ROLE_BY_NAME["model-builder"], ROLE_BY_NAME["oracle"]
    assert builder.allowed_tools == (
        "Bash",
        "Read",
        "Edit",
        "Write",
        "mcp__harness__open_experiment",
        "mcp__harness__start_run",
        "mcp__harness__run_status",
        "mcp__harness__hand_off",
    )
    assert set(oracle.allowed_tools) == {
        "Read",
        "mcp__harness__evaluation_report",
        "mcp__harness__record_result",
    }
    assert not oracle.writes_code


def test_the_policy_knows_the_tools_by_the_same_prefix():
    own = decide.plain_name("mcp__plugin_harness_harness__start_run")
    assert own == f"{TOOL_PREFIX}start_run"


def test_no_tool_of_any_role_is_a_human_verb():
    # Agents record results, and no scenario; they export preferences, and no priors.
    forbidden = {verb[-1] for verb in HUMAN_VERBS if verb[0] not in ("scenario", "priors")} | {
        "override",
        "promote",
        "approve",
        "reject",
    }
    for role in ROLES:
        for tool in role.mcp_tools:
            assert not forbidden & set(tool.split("_")), tool


def test_paths_are_put_together_by_scope():
    assert project_path(BY_NAME["plan"]) == "plan.md"
    assert (
        project_path(BY_NAME["result"], experiment="exp-0007")
        == ".harness/experiments/exp-0007/result.md"
    )
    metrics = project_path(BY_NAME["metrics"], experiment="exp-0007", run="run-02")
    assert metrics == ".harness/experiments/exp-0007/runs/run-02/metrics.jsonl"


@pytest.mark.parametrize("gate", list(GateName))
def test_gates_require_artifacts_of_the_table(gate):
    names = [artifact.name for artifact in required(gate)]
    assert names == list(REQUIRED[gate])
    assert {
        "hypothesis",
        "config",
        "metrics",
        "status",
        "checkpoints",
        "evaluation",
        "result",
    } <= set(names)
    assert all(artifact.scope is not Scope.PROJECT for artifact in required(gate))
