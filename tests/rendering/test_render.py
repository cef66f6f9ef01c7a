"""Rendered agents: complete, valid for Claude Code, small, and never over a person's file."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from jinja2 import UndefinedError

from harness.contract.installation import AGENTS, COMMANDS, MANIFEST, VENDORED
from harness.contract.roles import OFF_LIMITS_FOR_ALL, ROLE_BY_NAME, ROLES, project_path
from harness.contract.slash_commands import SLASH_COMMANDS
from harness.domain import variables
from harness.errors import RefusedError
from harness.rendering import prompts
from harness.rendering.prompts import AGENT_BANNER, agent_file, fill, system_prompt
from harness.rendering.render import expected, installed_texts, render

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
    assert body.startswith(AGENT_BANNER)
    assert body.endswith(system_prompt(role))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_an_agent_of_the_plugin_may_use_the_tools_of_either_server(role):
    here, plugin = (
        yaml.safe_load(agent_file(role, plugin=which).split("---\n")[1]) for which in (False, True)
    )
    tools = plugin.pop("tools").split(", ")
    assert tools == here.pop("tools").split(", ") + [
        f"mcp__plugin_harness_harness__{tool}" for tool in role.mcp_tools
    ]
    assert plugin == here


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
    given = {
        variables.EXPERIMENT: "exp-0001",
        variables.RUN: "run-01",
        variables.TOKEN: "t",
        variables.SEED: "7",
    }
    for name, value in {
        **given,
        variables.RUN_DIR: str(tmp_path),
        variables.PROJECT: str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    seeds: list[int] = []
    torch = SimpleNamespace(
        manual_seed=seeds.append, save=lambda state, path: Path(path).write_text(state)
    )
    names = {"torch": torch, "model": SimpleNamespace(state_dict=lambda: "weights")}
    names |= {
        "EPOCHS": 2,
        "CONFIG": {"width": 3},
        "RATE": 0.1,
        "train_and_validate": lambda _model: (0.5, 0.25),
    }
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


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A project with vendored hooks, as far as rendering looks."""
    manifest = tmp_path / VENDORED / MANIFEST
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    return tmp_path


def test_render_writes_and_then_has_nothing_to_do(installed):
    written = render(installed)
    assert written == sorted(installed_texts())
    assert {path.parent.as_posix() for path in written} == {AGENTS, COMMANDS}
    assert render(installed, check=True) == []
    assert render(installed) == []
    assert not (installed / "agents").exists(), "a project that is no plugin has .claude/ only"


def test_a_folder_without_hooks_of_ours_gets_nothing(tmp_path):
    assert render(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_harness_own_repository_is_a_plugin_too(tmp_path):
    (tmp_path / "templates" / "agents").mkdir(parents=True)
    (tmp_path / "hooks").mkdir()
    assert {path.as_posix() for path in render(tmp_path)} >= {
        "hooks/hooks.json",
        ".claude-plugin/plugin.json",
        ".claude/settings.json",
        ".mcp.json",
        "agents/oracle.md",
        f"{AGENTS}/oracle.md",
        "commands/status.md",
        f"{COMMANDS}/status.md",
    }
    for command in SLASH_COMMANDS:
        name = f"{command.name}.md"
        assert (tmp_path / "commands" / name).read_bytes() == (
            tmp_path / COMMANDS / name
        ).read_bytes()
    assert render(tmp_path, check=True) == []


def test_check_names_changed_missing_and_stale_files_and_writes_nothing(installed):
    render(installed)
    folder = installed / AGENTS
    (folder / "oracle.md").write_text(prompts.AGENT_BANNER + "changed")
    (folder / "model-builder.md").unlink()
    (folder / "retired.md").write_text(f"---\nname: retired\n---\n{prompts.AGENT_BANNER}\n")
    (folder / "mine.md").write_text("---\nname: mine\n---\nA person's own agent.\n")
    (installed / COMMANDS / "old.md").write_text(f"---\n---\n{prompts.COMMAND_BANNER}\n")
    named = [Path(AGENTS, name) for name in ("model-builder.md", "oracle.md", "retired.md")]
    named.append(Path(COMMANDS, "old.md"))
    assert render(installed, check=True) == named
    assert not (folder / "model-builder.md").exists()
    assert render(installed) == named
    assert not (folder / "retired.md").exists()
    assert not (installed / COMMANDS / "old.md").exists()
    assert (folder / "mine.md").exists()
    assert render(installed, check=True) == []


def test_an_edit_under_our_banner_is_not_overwritten(installed):
    (installed / VENDORED / MANIFEST).write_text('{"rendered": {}}')
    render(installed)
    path = installed / AGENTS / "oracle.md"
    ours = path.read_text()
    path.write_text(ours + "mine\n")
    with pytest.raises(RefusedError, match="was edited") as told:
        render(installed)
    assert (told.value.code, path.read_text()) == ("rendered_file_edited", ours + "mine\n")
    path.unlink()
    assert render(installed) == [Path(AGENTS, "oracle.md")]


@pytest.mark.parametrize("taken", [f"{AGENTS}/oracle.md", f"{COMMANDS}/status.md"])
def test_a_persons_file_of_the_same_name_is_never_overwritten(installed, taken):
    path = installed / taken
    path.parent.mkdir(parents=True)
    path.write_text("my own\n")
    assert render(installed, check=True) == sorted(expected(installed))
    with pytest.raises(RefusedError, match=path.stem):
        render(installed)
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "my own\n"


def test_templates_are_strict():
    with pytest.raises(UndefinedError):
        fill("agents/agent.md.j2", role=ROLES[0], tools=(), banner="")


def test_templates_and_hooks_stand_in_one_place():
    root = Path(__file__).parents[2]
    for name in ("templates", "hooks"):
        assert (root / "harness" / "rendering" / name).resolve() == root / name
