"""Which project a path belongs to."""

from pathlib import Path

import pytest
from hook_project import HookProject, git, other_project

from harness import settings
from harness.contract import installation as contract
from harness.errors import NotFoundError
from harness.guard.hooks import projects
from harness.guard.hooks.projects import Projects, installation, main_worktree, read_json


def test_the_vendored_names_are_the_contracts() -> None:
    vendored = (projects.SETTINGS, projects.LOCAL_SETTINGS, projects.MANIFEST, projects.CONFIG)
    assert vendored == (
        contract.SETTINGS,
        contract.LOCAL_SETTINGS,
        contract.MANIFEST,
        str(settings.CONFIG),
    )


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


def linked(tmp_path: Path, text: str | None = None) -> tuple[Path, Path | None]:
    """(a linked worktree's top, its main worktree); `text`: what its .git file says instead."""
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    if text is not None:
        (tmp_path / "tree" / ".git").write_text(text)
    return tmp_path / "tree", main


def by_a_relative_path(tmp_path: Path) -> tuple[Path, Path | None]:
    return linked(tmp_path, "gitdir: ../main/.git/worktrees/tree\n")


def main_itself(tmp_path: Path) -> tuple[Path, Path | None]:
    linked(tmp_path)
    return tmp_path / "main", None


def below_the_top(tmp_path: Path) -> tuple[Path, Path | None]:
    top, _ = linked(tmp_path)
    (top / "sub").mkdir()
    return top / "sub", None


def submodule(tmp_path: Path) -> tuple[Path, Path | None]:
    main = repository(tmp_path / "main")
    (main / ".git" / "modules" / "sub").mkdir(parents=True)
    (main / "sub").mkdir()
    (main / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    return main / "sub", None


def bare_with_a_project_beside_it(tmp_path: Path) -> tuple[Path, Path | None]:
    source, place = repository(tmp_path / "source"), tmp_path / "place"
    (place / ".harness").mkdir(parents=True)
    (place / ".harness" / "config.toml").write_text('project_id = "beside"\n')
    git(tmp_path, "clone", "-q", "--bare", str(source), str(place / "bare.git"))
    git(place / "bare.git", "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    return tmp_path / "tree", None


def leads_to_itself(tmp_path: Path) -> tuple[Path, Path | None]:
    (tmp_path / ".git").write_text("gitdir: own\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "commondir").write_text("../.git\n")
    return tmp_path, None


def commondir_is_a_folder(tmp_path: Path) -> tuple[Path, Path | None]:
    (tmp_path / "own" / "commondir").mkdir(parents=True)
    (tmp_path / ".git").write_text("gitdir: own\n")
    return tmp_path, None


def links_in_a_circle(tmp_path: Path) -> tuple[Path, Path | None]:
    (tmp_path / ".git").write_text("gitdir: own\n")
    (tmp_path / "own").symlink_to("own")
    return tmp_path, None


PLACES = (
    linked,
    by_a_relative_path,
    main_itself,
    below_the_top,
    submodule,
    bare_with_a_project_beside_it,
    leads_to_itself,
    commondir_is_a_folder,
    links_in_a_circle,
)


def both_say(folder: Path) -> Path | None:
    """The main worktree of `folder`, as hooks and commands find it alike."""
    said = main_worktree(str(folder))
    assert settings.main_worktree(folder) == (None if said is None else Path(said))
    return None if said is None else Path(said)


@pytest.mark.parametrize("made", PLACES, ids=lambda made: made.__name__)
def test_hooks_and_commands_find_the_same_main_worktree(tmp_path: Path, made):
    folder, main = made(tmp_path)
    assert both_say(folder) == main


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"gitdir:",
        b"gitdir: /nowhere\n",
        b"gitdir: a\0b",
        b"gitdir: \xff",
        b"\xff\0",
        b"something else\n",
        b"x" * 9000,
    ],
)
def test_a_git_file_of_another_kind(tmp_path: Path, text: bytes):
    (tmp_path / ".git").write_bytes(text)
    assert both_say(tmp_path) is None


def test_commands_and_hooks_find_no_project_from_a_worktree_of_a_bare_repository(tmp_path: Path):
    tree, _ = bare_with_a_project_beside_it(tmp_path)
    assert Projects().containing(str(tree / "a")) is None
    with pytest.raises(NotFoundError):
        settings.find_root(tree)
    assert settings.in_main_worktree(tree) is None


def test_installation_is_found_from_the_programs_file(project: HookProject):
    program = str(project.programs / "run.py")
    for environment in ({}, {"CLAUDE_PROJECT_DIR": "/x", "CLAUDE_PLUGIN_ROOT": "/y"}):
        found = installation(program, environment)
        assert (found.root, found.folder) == (str(project.root), str(project.programs))
        assert found.library == str(project.programs / "lib" / "harness")


def test_a_linked_settings_folder_belongs_to_the_project_that_it_is_used_in(project: HookProject):
    (project.root / ".claude").rename(project.folder / "shared settings")
    (project.root / ".claude").symlink_to(project.folder / "shared settings")
    assert installation(str(project.programs / "run.py"), {}).root == str(project.root)


def test_a_plugins_root_is_no_project(tmp_path: Path):
    program = tmp_path / "hooks" / "run.py"
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
