"""Claude Code's own folder: settings that switch hooks off, transcripts; and what it has the model
write there."""

from pathlib import Path

import pytest
from hook_project import HookProject

OFF_LIMITS = (
    "settings.json",
    "projects/-p/session.jsonl",
    "plugins/installed.json",
    ".claude.json",
    "plans/../settings.json",
)
NOTES = (
    "plans/quiet-purring-sun.md",
    "projects/-p/memory/MEMORY.md",
    "projects/-p/memory/deep/idea.md",
)


@pytest.fixture(params=["home", "variable", "link"])
def folder(request: pytest.FixtureRequest, project: HookProject) -> Path:
    """Where it is: ~/.claude, what CLAUDE_CONFIG_DIR says, or a link to somewhere."""
    home = Path(project.environment["HOME"])
    home.mkdir(exist_ok=True)
    if request.param == "home":
        return home / ".claude"
    made = project.folder / "of claude"
    made.mkdir()
    if request.param == "link":
        (home / ".claude").symlink_to(made)
    else:
        project.environment["CLAUDE_CONFIG_DIR"] = str(made)
    return made


@pytest.mark.parametrize("name", OFF_LIMITS)
def test_no_tool_changes_it(project: HookProject, folder: Path, name: str) -> None:
    assert project.call("Write", {"file_path": f"{folder}/{name}", "content": "{}"}).denied
    assert project.shell(f"echo x > '{folder}/{name}'").denied
    assert project.shell(f"rm -rf '{folder}'").denied


@pytest.mark.parametrize("name", NOTES)
def test_plans_and_memory_are_written(project: HookProject, folder: Path, name: str) -> None:
    assert not project.call("Write", {"file_path": f"{folder}/{name}", "content": "x"}).denied
    assert not project.call("Read", {"file_path": f"{folder}/{name}"}).denied


def test_a_plan_that_is_a_link_is_judged_where_it_leads(
    project: HookProject, folder: Path
) -> None:
    (folder / "plans").mkdir(parents=True)
    (folder / "plans" / "plan.md").symlink_to(project.root / ".harness" / "policy.json")
    assert project.call("Write", {"file_path": f"{folder}/plans/plan.md", "content": "x"}).denied


def test_trust_of_folders_is_kept(project: HookProject) -> None:
    assert project.call(
        "Write", {"file_path": project.environment["HOME"] + "/.claude.json", "content": "{}"}
    ).denied
