"""What config.toml may say, and that an agent's edit of it is noticed before it is believed."""

import sys
import tomllib
from pathlib import Path

import pytest

from harness.domain.statuses import HooksMode
from harness.errors import ConfigError
from harness.ledger.project import open_project
from harness.plans.approval import approve_plan
from harness.settings import (
    CONFIG,
    create_config,
    find_root,
    load_settings,
    name_ledger,
    require_interpreter,
)


@pytest.mark.parametrize("place", ["state/harness", "state/harness/{id}/vault", "", "link"])
def test_readable_never_opens_the_state_directory(tmp_path: Path, place: str) -> None:
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    target = tmp_path / place.format(id="p-0")
    (root / CONFIG).write_text(f'project_id = "p-0"\nreadable = ["{target}"]\n', "utf-8")
    with pytest.raises(ConfigError, match="state directory"):
        load_settings(root, {"XDG_STATE_HOME": str(tmp_path / "state")})


def test_another_folder_may_be_readable(tmp_path: Path) -> None:
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    (root / CONFIG).write_text(f'project_id = "p-0"\nreadable = ["{tmp_path}/data"]\n', "utf-8")
    settings = load_settings(root, {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert settings.readable == (f"{tmp_path}/data",)


@pytest.mark.parametrize("line", ['readable = ["/elsewhere"]', 'interpreter = "/usr/bin/python3"'])
def test_an_edited_config_is_refused_until_a_person_approves_it(
    root: Path, environment: dict[str, str], line: str
) -> None:
    with open_project(root, environment) as project:
        approve_plan(project, root / "plan.md", by="ada")
    config = root / CONFIG
    config.write_text(f"{config.read_text('utf-8')}{line}\n", "utf-8")
    with pytest.raises(ConfigError) as refused:
        open_project(root, environment)
    assert refused.value.code == "config_changed"
    open_project(root, environment, read_only=True).close()
    with open_project(root, environment, new_config=True) as project:
        approve_plan(project, root / "plan.md", by="ada")
    open_project(root, environment).close()


def test_known_checkpoints_are_paths(tmp_path: Path) -> None:
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    (root / CONFIG).write_text(
        'project_id = "p-0"\nknown_checkpoints = ["base.pt", "/weights"]\n', "utf-8"
    )
    assert load_settings(root, {"HOME": str(tmp_path)}).known_checkpoints == (
        "base.pt",
        "/weights",
    )
    (root / CONFIG).write_text('project_id = "p-0"\nknown_checkpoints = "base.pt"\n', "utf-8")
    with pytest.raises(ConfigError, match="must be a list of paths"):
        load_settings(root, {"HOME": str(tmp_path)})


def test_how_hooks_come_to_a_session_is_one_of_three(tmp_path: Path) -> None:
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    assert load_settings(root, {"HOME": str(tmp_path)}).hooks is None
    (root / CONFIG).write_text('project_id = "p-0"\nhooks = "plugin"\n', "utf-8")
    assert load_settings(root, {"HOME": str(tmp_path)}).hooks is HooksMode.PLUGIN
    (root / CONFIG).write_text('project_id = "p-0"\nhooks = "some"\n', "utf-8")
    with pytest.raises(ConfigError, match="expected project, plugin, none"):
        load_settings(root, {"HOME": str(tmp_path)})


@pytest.mark.parametrize("place", ["", "packages/model"])
def test_a_linked_worktree_leads_to_the_project_at_the_same_place_of_the_main_one(
    tmp_path: Path, place: str
) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    git_dir = main / ".git" / "worktrees" / "linked"
    git_dir.mkdir(parents=True)
    (git_dir / "commondir").write_text("../..\n")
    (linked / place / "src").mkdir(parents=True)
    (linked / ".git").write_text(f"gitdir: {git_dir}\n")
    create_config(main / place, name="p", token="0")
    assert find_root(linked / place / "src") == main / place
    create_config(linked / place, name="p", token="0")
    assert find_root(linked / place / "src") == linked / place


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        (".venv/bin/python", "{root}/.venv/bin/python"),
        ("../env/bin/python", "{parent}/env/bin/python"),
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("python3.11", "python3.11"),
    ],
)
def test_a_relative_interpreter_is_the_projects(tmp_path: Path, value: str, resolved: str) -> None:
    root = (tmp_path / "project").resolve()
    create_config(root, name="p", token="0")
    (root / CONFIG).write_text(f'project_id = "p-0"\ninterpreter = "{value}"\n', "utf-8")
    expected = resolved.format(root=root, parent=root.parent)
    assert load_settings(root, {"HOME": str(tmp_path)}).interpreter == expected


def test_a_virtual_environment_stays_the_link_that_it_is(tmp_path: Path) -> None:
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    python = root.resolve() / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (root / CONFIG).write_text('project_id = "p-0"\ninterpreter = ".venv/bin/python"\n', "utf-8")
    settings = load_settings(root, {"HOME": str(tmp_path)})
    assert require_interpreter(settings) == str(python)
    python.unlink()
    with pytest.raises(ConfigError, match=str(python)) as missing:
        require_interpreter(settings)
    assert (missing.value.code, missing.value.exit_code) == ("interpreter_missing", 2)


def test_without_a_setting_the_python_that_runs_the_harness_trains(tmp_path: Path) -> None:
    create_config(tmp_path, name="p", token="0")
    assert require_interpreter(load_settings(tmp_path, {"HOME": str(tmp_path)})) == sys.executable


@pytest.mark.parametrize("before", ['project_id = "p-0"', 'project_id = "p-0"\n\n[x]\ny = 1'])
def test_the_ledgers_line_comes_and_goes_also_without_a_last_newline(
    tmp_path: Path, before: str
) -> None:
    (tmp_path / CONFIG).parent.mkdir()
    (tmp_path / CONFIG).write_text(before, "utf-8")
    url = "postgresql://db.example/harness"
    named = tomllib.loads(name_ledger(tmp_path, url).decode())
    assert named == {**tomllib.loads(before), "ledger": url}
    assert name_ledger(tmp_path, None).decode() == before + "\n"


def test_a_config_that_has_no_place_for_the_line_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / CONFIG).parent.mkdir()
    text = 'project_id = "p-0"\nreadable = [\n  "a",\n  # [\n"""\n[\n""",\n]\n'
    (tmp_path / CONFIG).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="no line to which"):
        name_ledger(tmp_path, "postgresql://db.example/harness")
    assert (tmp_path / CONFIG).read_text("utf-8") == text
