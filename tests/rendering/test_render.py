"""Rendered agents: complete, valid for Claude Code, small, and never over a person's file."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from jinja2 import UndefinedError

from harness.contract.roles import OFF_LIMITS_FOR_ALL, ROLE_BY_NAME, ROLES, project_path
from harness.domain import variables
from harness.errors import RefusedError
from harness.rendering.prompts import BANNER, agent_file, system_prompt
from harness.rendering.render import AGENTS, expected, render
from harness.rendering.sources import fill

SECTIONS = ("Ownership", "Off-limits", "Produces", "Consumes", "Validation checklist")
LARGEST = 6000


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_agent_files_are_claude_code_agents(role):
    _, front, body = agent_file(role).split("---\n", 2)
    head = yaml.safe_load(front)
    assert set(head) == {"name", "description", "tools", "model"}
    assert head["name"] == role.name
    assert tuple(tool.strip() for tool in head["tools"].split(",")) == role.allowed_tools
    assert head["description"].endswith(role.purpose)
    assert body.startswith(BANNER)
    assert body.endswith(system_prompt(role))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_section_comes_from_the_contract(role):
    prompt = system_prompt(role)
    assert len(prompt.encode("utf-8")) < LARGEST
    for section in SECTIONS:
        assert prompt.count(f"\n## {section}\n") == 1
    for line in (*role.off_limits, *OFF_LIMITS_FOR_ALL, *role.checklist):
        assert line in prompt
    for artifact in (*role.owns, *role.reads):
        assert project_path(artifact) in prompt
    for tool in role.mcp_tools:
        assert tool in prompt
    assert "\n\n\n" not in prompt
    assert "{{" not in prompt
    assert "{%" not in prompt


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_that_no_step_uses_says_so(role):
    said = "No step uses this role yet" in system_prompt(role)
    assert said is (role.step is None)
    assert ("do not delegate" in agent_file(role)) is (role.step is None)


def test_model_builder_knows_the_run_logger_and_how_to_predict():
    prompt = system_prompt(ROLE_BY_NAME["model-builder"])
    assert "\n## Checkpointing\n" in prompt
    assert "\n## Disaster Recovery\n" in prompt
    for name in (variables.CHECKPOINT, variables.INPUTS, variables.PREDICTIONS):
        assert name in prompt
    snippets = [part.split("```")[0] for part in prompt.split("```python\n")[1:]]
    assert len(snippets) == 2
    for snippet in snippets:
        compile(snippet, "snippet", "exec")


def test_run_logger_snippet_runs_as_it_stands(tmp_path, monkeypatch):
    snippet = system_prompt(ROLE_BY_NAME["model-builder"]).split("```python\n")[1].split("```")[0]
    given = {variables.EXPERIMENT: "exp-0001", variables.RUN: "run-01", variables.TOKEN: "t", variables.SEED: "7"}
    for name, value in {**given, variables.RUN_DIR: str(tmp_path), variables.PROJECT: str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    seeds: list[int] = []
    torch = SimpleNamespace(manual_seed=seeds.append, save=lambda state, path: Path(path).write_text(state))
    names = {"torch": torch, "model": SimpleNamespace(state_dict=lambda: "weights")}
    names |= {"EPOCHS": 2, "CONFIG": {"width": 3}, "RATE": 0.1, "train_and_validate": lambda _model: (0.5, 0.25)}
    exec(snippet, names)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows] == ["start", "epoch", "epoch", "checkpoint", "end"]
    assert rows[1]["metrics"] == {"loss": 0.5, "validation_accuracy": 0.25}
    assert seeds == [7]


def test_predict_snippet_runs_as_it_stands(tmp_path, monkeypatch):
    snippet = system_prompt(ROLE_BY_NAME["model-builder"]).split("```python\n")[2].split("```")[0]
    np.savez(tmp_path / "inputs.npz", id=np.arange(3), x=np.ones((3, 2)))
    monkeypatch.setenv(variables.INPUTS, str(tmp_path / "inputs.npz"))
    monkeypatch.setenv(variables.CHECKPOINT, "final.pt")
    monkeypatch.setenv(variables.PREDICTIONS, str(tmp_path / "predictions.npz"))
    exec(snippet, {"load_model": lambda _path: lambda x: x.sum(axis=1)})
    with np.load(tmp_path / "predictions.npz") as table:
        assert (table["id"].tolist(), table["prediction"].tolist()) == ([0, 1, 2], [2.0, 2.0, 2.0])


def test_render_writes_and_then_has_nothing_to_do(tmp_path):
    written = render(tmp_path)
    assert written == sorted(AGENTS / f"{role.name}.md" for role in ROLES)
    assert render(tmp_path, check=True) == []
    assert render(tmp_path) == []
    assert not (tmp_path / "agents").exists(), "a project that is no plugin has .claude/agents only"


def test_repository_with_templates_has_both_folders(tmp_path):
    (tmp_path / "templates" / "agents").mkdir(parents=True)
    render(tmp_path)
    for role in ROLES:
        name = f"{role.name}.md"
        assert (tmp_path / "agents" / name).read_text() == (tmp_path / AGENTS / name).read_text()


def test_check_names_changed_missing_and_stale_files_and_writes_nothing(tmp_path):
    render(tmp_path)
    folder = tmp_path / AGENTS
    (folder / "oracle.md").write_text(BANNER + "changed")
    (folder / "model-builder.md").unlink()
    (folder / "retired.md").write_text(f"---\nname: retired\n---\n{BANNER}\n")
    (folder / "mine.md").write_text("---\nname: mine\n---\nA person's own agent.\n")
    named = [AGENTS / name for name in ("model-builder.md", "oracle.md", "retired.md")]
    assert render(tmp_path, check=True) == named
    assert not (folder / "model-builder.md").exists()
    assert render(tmp_path) == named
    assert not (folder / "retired.md").exists()
    assert (folder / "mine.md").exists()
    assert render(tmp_path, check=True) == []


def test_a_persons_agent_of_the_same_name_is_never_overwritten(tmp_path):
    folder = tmp_path / AGENTS
    folder.mkdir(parents=True)
    (folder / "oracle.md").write_text("my own oracle\n")
    assert render(tmp_path, check=True) == sorted(expected(tmp_path))
    with pytest.raises(RefusedError, match="oracle"):
        render(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["oracle.md"]
    assert (folder / "oracle.md").read_text() == "my own oracle\n"


def test_templates_are_strict():
    with pytest.raises(UndefinedError):
        fill("agents/agent.md.j2", role=ROLES[0], banner="")


def test_templates_stand_in_one_place():
    root = Path(__file__).parents[2]
    assert (root / "harness" / "rendering" / "templates").resolve() == root / "templates"
