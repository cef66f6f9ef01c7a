"""Which project a path belongs to."""

from pathlib import Path

import pytest
from hook_project import HookProject, git, other_project

from harness.handlers.place import Projects, installation, main_worktree, read_json


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "a").touch()
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return folder


def test_the_nearest_project_contains_a_path(project: HookProject):
    inner = other_project(project.root / "packages" / "inner", project.folder / "inner_state")
    projects = Projects()
    roots = {
        project.root / "x" / "y" / "new.py": project.root,
        project.root: project.root,
        project.root / "packages" / "x": project.root,
        inner: inner,
        inner / "deep" / "er" / "x": inner,
    }
    for path, root in roots.items():
        found = projects.containing(str(path))
        assert found is not None
        assert found.root == str(root)
    for outside in (project.folder, Path("/"), Path("/nowhere/at/all")):
        assert projects.containing(str(outside)) is None


def test_each_project_is_read_once(project: HookProject):
    projects = Projects()
    first = projects.containing(str(project.root / "a"))
    (project.root / ".harness" / "policy.json").unlink()
    assert projects.containing(str(project.root / "b" / "c")) is first
    assert projects.at(str(project.root)) is first


def test_main_worktree(tmp_path: Path):
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    assert main_worktree(str(tmp_path / "tree")) == str(main)
    assert main_worktree(str(main)) is None
    assert main_worktree(str(tmp_path)) is None


def test_a_worktree_that_names_the_main_one_by_a_relative_path(tmp_path: Path):
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    (tmp_path / "tree" / ".git").write_text("gitdir: ../main/.git/worktrees/tree\n")
    assert main_worktree(str(tmp_path / "tree")) == str(main)


def test_a_submodule_is_no_worktree(tmp_path: Path):
    main = repository(tmp_path / "main")
    (main / ".git" / "modules" / "sub").mkdir(parents=True)
    (main / "sub").mkdir()
    (main / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert main_worktree(str(main / "sub")) is None


def test_a_worktree_of_a_bare_repository_has_no_main_one(tmp_path: Path):
    source = repository(tmp_path / "source")
    git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    assert main_worktree(str(tmp_path / "tree")) is None


@pytest.mark.parametrize("text", [b"", b"gitdir:", b"gitdir: /nowhere\n", b"\xff\0", b"something else\n"])
def test_a_git_file_of_another_kind(tmp_path: Path, text: bytes):
    (tmp_path / ".git").write_bytes(text)
    assert main_worktree(str(tmp_path)) is None


def test_installation_is_found_from_the_programs_file(project: HookProject):
    program = str(project.programs / "stop.py")
    for environment in ({}, {"CLAUDE_PROJECT_DIR": "/x", "CLAUDE_PLUGIN_ROOT": "/y"}):
        found = installation(program, environment)
        assert (found.root, found.folder) == (str(project.root), str(project.programs))
        assert found.library == str(project.programs / "lib" / "harness")


def test_a_linked_settings_folder_belongs_to_the_project_that_it_is_used_in(project: HookProject):
    (project.root / ".claude").rename(project.folder / "shared settings")
    (project.root / ".claude").symlink_to(project.folder / "shared settings")
    assert installation(str(project.programs / "stop.py"), {}).root == str(project.root)


def test_a_plugins_root_is_no_project(tmp_path: Path):
    program = tmp_path / "hooks" / "stop.py"
    program.parent.mkdir()
    program.touch()
    assert installation(str(program), {"CLAUDE_PLUGIN_ROOT": str(tmp_path)}).root is None
    assert installation(str(program), {"CLAUDE_PLUGIN_ROOT": "/elsewhere"}).root == str(tmp_path)
    assert installation(str(program), {}).root == str(tmp_path)


def test_read_json(tmp_path: Path):
    path = tmp_path / "x.json"
    assert read_json(str(path)) == (None, "")
    path.write_text('{"a": 1}')
    assert read_json(str(path)) == ({"a": 1}, "")
    path.write_text("{")
    assert read_json(str(path))[1].startswith("it cannot be read")
    assert read_json(str(tmp_path))[1].startswith("it cannot be read")
