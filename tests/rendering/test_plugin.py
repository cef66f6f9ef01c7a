"""This repository as a plugin of Claude Code: valid by its own tool, with everything that it says
it brings."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.contract.roles import ROLES
from harness.contract.slash_commands import SLASH_COMMANDS
from harness.driver.environment import bundled_cli
from harness.guard.hooks.table import EVENTS, GUARD
from harness.rendering.claude_files import (
    own_servers,
    own_settings,
    plugin_hooks,
    plugin_manifest,
    plugin_market,
)

ROOT = Path(__file__).parents[2]
PARTS = (".claude-plugin", "agents", "commands", "hooks", ".mcp.json", "README.md", "LICENSE")


def claude(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The CLI with nothing of our environment and no service to reach."""
    folders = {name: home / name for name in ("config", "tmp")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(folders["config"]),
        "TMPDIR": str(folders["tmp"]),
        "CLAUDE_CODE_TMPDIR": str(folders["tmp"]),
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": "of-no-service",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    command = [str(bundled_cli()), *words]
    return subprocess.run(
        command,
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The plugin's files alone, as they stand in this repository."""
    target = tmp_path / "plugin"
    target.mkdir()
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target / name)
    return target


def test_claude_plugin_validate_passes_and_lists_every_part(plugin: Path, tmp_path: Path) -> None:
    for target in (ROOT, plugin):
        checked = claude(
            tmp_path / "home", "plugin", "validate", str(target / ".claude-plugin" / "plugin.json")
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "Validation passed" in checked.stdout
        assert "passed with warnings" not in checked.stdout, checked.stdout
        for name in [
            *(f"harness:{command.name}" for command in SLASH_COMMANDS),
            *(f"harness:{role.name}" for role in ROLES),
        ]:
            assert name in checked.stdout
        for event in EVENTS:
            assert f"hooks: {event.name}" in checked.stdout
        assert "mcpServers: harness" in checked.stdout
    market = claude(tmp_path / "home", "plugin", "validate", str(plugin))
    assert market.returncode == 0, market.stdout + market.stderr


def test_a_person_installs_it_from_a_clone(plugin: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    added = claude(home, "plugin", "marketplace", "add", str(plugin))
    assert added.returncode == 0, added.stdout + added.stderr
    installed = claude(home, "plugin", "install", "harness@experiment-harness")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    listed = json.loads(claude(home, "plugin", "list", "--json").stdout)
    assert "harness@experiment-harness" in [item["id"] for item in listed]


def test_the_manifest_names_what_is_there_with_the_version_of_the_package() -> None:
    manifest = plugin_manifest()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (manifest["name"], manifest["version"]) == ("harness", project["version"])
    for name in (*manifest["agents"], *manifest["commands"]):
        assert (ROOT / name).is_file()
    assert [item["name"] for item in plugin_market()["plugins"]] == [manifest["name"]]


@pytest.mark.parametrize(
    ("section", "prefix"),
    [
        (plugin_hooks()["hooks"], "${CLAUDE_PLUGIN_ROOT}"),
        (own_settings()["hooks"], "${CLAUDE_PROJECT_DIR}"),
    ],
    ids=["plugin", "repository"],
)
def test_every_event_starts_a_program_that_is_there(section: dict[str, Any], prefix: str) -> None:
    assert set(section) == {event.name for event in EVENTS}
    for event in EVENTS:
        ((entry,),) = [group["hooks"] for group in section[event.name]]
        program, argument = entry["args"][-2:]
        assert argument == event.name
        assert program.startswith(f"{prefix}/hooks/")
        assert (ROOT / program.removeprefix(f"{prefix}/")).is_file()
        assert (entry.get("onFailure") == "block") is (event.kind == GUARD)
        assert os.path.isabs(entry["command"])


def test_the_tool_server_of_either_is_one_program() -> None:
    here, plugin = own_servers()["mcpServers"], plugin_manifest()["mcpServers"]
    assert list(here) == list(plugin) == ["harness"]
    assert plugin["harness"]["args"][-1] == "${CLAUDE_PLUGIN_ROOT}/hooks/mcp.py"
    assert here["harness"]["args"][-2:] == ["hooks/mcp.py", "${CLAUDE_PROJECT_DIR:-.}"]
    assert (ROOT / "hooks" / "mcp.py").is_file()
