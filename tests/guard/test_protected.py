"""The control paths exist before a sandbox is made, and what changes at them where none can hold
them is recorded."""

from pathlib import Path

import pytest

from harness.contract.artifacts import PROTECTED
from harness.domain.statuses import SandboxKind
from harness.guard.control_files import GIT, control_names, listing, protected_paths, watching
from harness.ledger.project import Project

SETTINGS, OFF = ".claude/settings.json", '{"disableAllHooks": true}'
PART = f"{SETTINGS}#disableAllHooks"
"""What such settings are recorded as."""


def repository(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")


def changes(project: Project) -> list[tuple[str, str, str | None]]:
    return [(fact.path, fact.expected[:7], fact.experiment) for fact in project.ledger.tampering()]


def test_missing_paths_are_made_so_that_they_can_be_bound(tmp_path: Path) -> None:
    assert [path.relative_to(tmp_path).as_posix() for path in protected_paths(tmp_path)] == [
        ".claude",
        ".harness/hooks",
    ]
    assert not (tmp_path / ".git").exists()
    repository(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in protected_paths(tmp_path)} == {
        *PROTECTED
    } - {".mcp.json", ".git/commondir"}
    for name in (".mcp.json", ".git/commondir"):
        assert not (tmp_path / name).exists(), "an empty one is a fault of its own"
    assert (tmp_path / ".git" / "config").read_text() == "[core]\n"


def test_the_file_of_a_worktree_is_protected_itself(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    assert tmp_path / ".git" in protected_paths(tmp_path)
    assert set(listing(tmp_path, [*PROTECTED, GIT])) == {".git"}


def test_a_plugin_protects_its_hooks_and_what_they_import(tmp_path: Path) -> None:
    assert set(control_names(tmp_path)) == set(PROTECTED)
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin" / "plugin.json").write_text("{}")
    (tmp_path / "hooks").mkdir()
    assert {tmp_path / ".claude-plugin", tmp_path / "hooks"} <= set(protected_paths(tmp_path))
    assert not (tmp_path / "harness").exists()


def test_links_are_listed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "agents").symlink_to("/usr")
    before = listing(tmp_path, PROTECTED)
    assert set(before) == {".claude/agents"}
    (tmp_path / ".claude" / "agents").unlink()
    (tmp_path / ".claude" / "agents").symlink_to("/etc")
    assert listing(tmp_path, PROTECTED)[".claude/agents"] != before[".claude/agents"]


@pytest.mark.parametrize("sandbox", [SandboxKind.LANDLOCK, SandboxKind.NONE])
def test_what_changes_meanwhile_is_recorded_once(project: Project, sandbox: SandboxKind) -> None:
    root = project.layout.root
    repository(root)
    protected_paths(root)
    for _ in range(2):
        with watching(project, sandbox, lambda: "exp-0001"):
            (root / SETTINGS).write_text(OFF)
            (root / ".git" / "config").write_text("[core]\n\tfsmonitor = evil\n")
    assert [path for path, _, _ in changes(project)] == [PART, ".git/config"]
    assert changes(project)[0] == (PART, "missing", "exp-0001")


@pytest.mark.parametrize("sandbox", list(SandboxKind))
def test_a_file_that_no_sandbox_can_hold_is_noticed_when_it_appears(
    project: Project, sandbox: SandboxKind
) -> None:
    with watching(project, sandbox, lambda: "exp-0001"):
        (project.layout.root / ".mcp.json").write_text("{}")
    assert changes(project) == [(".mcp.json", "missing", "exp-0001")]


def test_it_is_recorded_also_when_the_work_ends_in_an_error(project: Project) -> None:
    def plant_and_stop() -> None:
        with watching(project, SandboxKind.LANDLOCK, lambda: None):
            (project.layout.root / ".claude").mkdir()
            (project.layout.root / SETTINGS).write_text(OFF)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plant_and_stop()
    assert changes(project) == [(PART, "missing", None)]


def test_a_new_repository_and_what_a_person_does_beside_bwrap_are_no_tampering(
    project: Project,
) -> None:
    with watching(project, SandboxKind.NONE, lambda: "exp-0001"):
        repository(project.layout.root)
    with watching(project, SandboxKind.BWRAP, lambda: "exp-0001"):
        (project.layout.root / ".claude").mkdir()
        (project.layout.root / SETTINGS).write_text(OFF)
    assert changes(project) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (SETTINGS, '{"permissions": {"allow": ["Bash(ls)"]}, "model": "opus"}'),
        (".claude/settings.local.json", '{"enabledMcpjsonServers": ["harness"]}'),
        (".claude/settings.local.json", '{"aKeyOfNextYear": true}'),
        (".git/config", '[core]\n[branch "x"]\n\tremote = origin\n'),
    ],
)
def test_what_a_person_answers_while_it_trains_is_no_tampering(
    project: Project, name: str, text: str
) -> None:
    repository(project.layout.root)
    protected_paths(project.layout.root)
    with watching(project, SandboxKind.NONE, lambda: "exp-0001"):
        (project.layout.root / name).write_text(text)
    assert changes(project) == []


@pytest.mark.parametrize("sandbox", list(SandboxKind))
def test_another_folder_for_gits_config_is_noticed(project: Project, sandbox: SandboxKind) -> None:
    """git then runs the programs that a config outside of .git/config names."""
    root = project.layout.root
    repository(root)
    protected_paths(root)
    with watching(project, sandbox, lambda: "exp-0001"):
        (root / ".git" / "commondir").write_text("../of an agent\n")
    assert changes(project) == [(".git/commondir", "missing", "exp-0001")]
