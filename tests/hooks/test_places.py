"""Wherever the session, the hook and the path are: the project that contains a path judges it, and
notes it once."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hook_project import PYTHON, REPOSITORY, HookProject, copy_library, git, other_project
from test_reported_cases import add_worktree

from harness.guard.hooks.table import BY_NAME

OWN = ".harness/experiments/exp-0002/hypothesis.md"


@pytest.fixture
def other(project: HookProject) -> Path:
    return other_project(project.folder / "other", project.folder / "other_state")


def lines_of(folder: Path, session: str = "s-1") -> list[dict]:
    path = folder / ".harness" / "receipts" / f"{session}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_same_decision_from_everywhere(project: HookProject, other: Path):
    places = [project.root, project.root / "sub", other, Path("/"), project.folder / "gone"]
    targets = {"plan.md": True, "model.py": False, ".claude/settings.json": True}
    for cwd in places:
        for name, denied in targets.items():
            assert (
                project.call("Write", {"file_path": str(project.root / name)}, cwd=cwd).denied
                is denied
            )
            assert project.shell(f"rm '{project.root / name}'", cwd=cwd).denied is denied
    assert len(project.receipts()) == len(places) * len(targets) * 2


def test_a_cwd_that_was_deleted_under_the_hook(project: HookProject):
    gone = project.root / "gone"
    gone.mkdir()
    payload = json.dumps(
        {"tool_name": "Bash", "tool_input": {"command": "rm ../plan.md"}, "cwd": str(gone)}
    )
    script = 'cd "$1" && rmdir "$1" && exec "$2" -I -S "$3" PreToolUse'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", str(gone), PYTHON, str(project.programs / "run.py")],
        input=payload.encode(),
        capture_output=True,
        env=project.environment,
        timeout=60,
    )
    assert ended.returncode == 2
    assert b"plan.md" in ended.stderr


@pytest.mark.parametrize("cwd", [None, 3, "", "relative", "/nowhere\0"])
def test_without_a_usable_cwd_relative_paths_are_denied(project: HookProject, cwd):
    call = {
        "tool_name": "Write",
        "tool_input": {"file_path": "model.py"},
        "session_id": "s-1",
        "cwd": cwd,
    }
    assert project.start("PreToolUse", json.dumps(call).encode()).denied
    call["tool_input"] = {"file_path": str(project.root / "model.py")}
    assert not project.start("PreToolUse", json.dumps(call).encode()).denied


def test_another_project_judges_what_lies_in_it(project: HookProject, other: Path):
    assert project.call("Write", {"file_path": str(other / "plan.md")}).denied
    assert project.call("Write", {"file_path": "plan.md"}, cwd=other).denied
    assert not project.call("Write", {"file_path": str(other / OWN)}).denied
    assert not project.call("Write", {"file_path": "train.py"}, cwd=other).denied
    assert project.call("mcp__files__write", {"path": str(other / ".harness/policy.json")}).denied
    assert project.call("mcp__shell__run", {"command": f"cd {other} && rm plan.md"}).denied
    assert len(lines_of(other)) == len(project.receipts()) == 6


@pytest.mark.parametrize(
    "command",
    [
        "rm {other}/plan.md",
        "cd {other} && rm plan.md",
        "cd ../other; rm plan.md",
        "cd ..; cd other; rm plan.md",
        "bash -c 'cd ../other && rm plan.md'",
        "make -C ../other && rm ../other/plan.md",
        "git -C ../other rm plan.md",
        "env -C ../other rm plan.md",
        "cp notes.txt ../other/plan.md",
        "cd ../other && python -c \"open('plan.md','w')\"",
        "tar -xf x.tar -C../other/.harness",
    ],
)
def test_a_command_is_judged_by_each_project_that_it_names(
    project: HookProject, other: Path, command: str
):
    assert project.shell(command.format(other=other)).denied
    assert lines_of(other)[-1]["permission"] == "deny"


def test_a_command_run_in_another_project_is_judged_by_both(project: HookProject, other: Path):
    assert project.shell("rm plan.md", cwd=other).denied
    assert project.shell(f"rm '{project.root}/plan.md'", cwd=other).denied
    assert not project.shell("ls", cwd=other).denied


def test_a_project_without_a_snapshot_is_read_and_not_written(project: HookProject, other: Path):
    (other / ".harness" / "policy.json").unlink()
    assert not project.call("Read", {"file_path": str(other / "train.py")}).denied
    answer = project.call("Write", {"file_path": str(other / "train.py")})
    assert answer.denied
    assert f"harness render --project {other}" in answer.errors


def test_a_link_into_another_project_counts_as_both(project: HookProject, other: Path):
    (project.root / "link").symlink_to(other)
    assert project.call("Write", {"file_path": "link/plan.md"}).denied
    assert not project.call("Write", {"file_path": "link/train.py"}).denied


def test_worktree_within_the_project(project: HookProject):
    """As Claude Code makes them for a subagent of its own: below .claude/, which is protected
    otherwise."""
    add_worktree(project)
    inner = project.root / ".claude" / "worktrees" / "agent-1"
    git(project.root, "worktree", "add", "-q", "-b", "inner", str(inner))
    assert not project.call("Edit", {"file_path": "train.py"}, cwd=inner).denied
    assert not project.call("Write", {"file_path": OWN}, cwd=inner).denied
    assert not project.shell("sed -i s/a/b/ train.py && git add train.py", cwd=inner).denied
    for name in (
        "plan.md",
        ".harness/config.toml",
        ".claude/settings.json",
        ".git",
        ".harness/policy.json",
    ):
        assert project.call("Write", {"file_path": name}, cwd=inner).denied, name
        assert project.shell(f"rm {name}", cwd=inner).denied, name
    assert project.shell("rm ../../settings.json", cwd=inner).denied
    assert project.shell(
        "rm -rf ../agent-1", cwd=project.root / ".claude/worktrees/agent-1"
    ).denied
    assert not (inner / ".harness" / "receipts").exists()


def test_worktree_of_a_project_that_git_does_not_hold(project: HookProject):
    """Nothing of .harness/ is in the worktree, and the main one's rules still hold there."""
    shutil.rmtree(project.root / ".git")
    git(project.root, "init", "-q")
    git(project.root, "add", "train.py", "plan.md")
    git(project.root, "commit", "-q", "-m", "x")
    git(project.root, "worktree", "add", "-q", "-b", "other", str(project.folder / "tree"))
    assert project.call("Write", {"file_path": "plan.md"}, cwd=project.folder / "tree").denied
    assert not project.call("Write", {"file_path": "train.py"}, cwd=project.folder / "tree").denied


def test_hooks_that_came_with_a_worktree_use_the_main_ones_policy(project: HookProject):
    add_worktree(project)
    tree = project.folder / "work tree"
    shutil.copytree(project.programs, tree / ".claude" / "hooks" / "harness")
    project.programs = tree / ".claude" / "hooks" / "harness"
    assert project.call("Write", {"file_path": "plan.md"}, cwd=tree).denied
    assert not project.call("Write", {"file_path": "train.py"}, cwd=tree).denied
    assert len(project.receipts()) == 2


def test_a_project_in_a_subfolder_of_a_repository(project: HookProject):
    top = project.folder / "mono"
    shutil.move(project.root, top / "packages" / "model")
    project.root = top / "packages" / "model"
    shutil.rmtree(project.root / ".git")
    git(top, "init", "-q")
    project.programs = project.root / ".claude" / "hooks" / "harness"
    project.save(
        {**project.snapshot, "root": str(project.root), "mode": "interactive", "role": None}
    )
    assert project.call("Write", {"file_path": "packages/model/plan.md"}, cwd=top).denied
    assert not project.call("Write", {"file_path": "packages/model/train.py"}, cwd=top).denied
    assert not project.call("Write", {"file_path": "packages/other.py"}, cwd=top).denied


@pytest.mark.parametrize("what", [".harness", ".harness/config.toml"])
def test_hooks_of_a_project_that_is_gone_deny_and_say_what_a_person_does(
    project: HookProject, what: str
):
    path = project.root / what
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    for answer in (
        project.shell("ls"),
        project.call("Read", {"file_path": "/etc/hosts"}),
        project.shell("ls", cwd="/"),
    ):
        assert answer.denied
        assert "in their own terminal" in answer.errors
        assert "`harness init`" in answer.errors
        assert "`harness init --remove`" in answer.errors
    assert project.event("ConfigChange", source="project_settings").denied
    said = project.event("SessionStart", source="startup")
    assert "every tool call is denied" in said.context
    assert said.person.startswith("harness: every tool call is denied")
    assert "harness init" in said.person
    for event in ("Stop", "PostToolUse", "SessionEnd"):
        assert project.event(event).code == 0
    assert path.parent.exists()
    assert not path.exists()


class TestPlugin:
    """The programs of a plugin: this repository's layout, somewhere else."""

    @pytest.fixture
    def plugin(self, project: HookProject) -> HookProject:
        place = project.folder / "plug in"
        shutil.copytree(
            REPOSITORY / "hooks", place / "hooks", ignore=shutil.ignore_patterns("__pycache__")
        )
        copy_library(place / "harness")
        shutil.rmtree(project.root / ".claude")
        project.programs = place / "hooks"
        project.environment["CLAUDE_PLUGIN_ROOT"] = str(place)
        return project

    def test_is_silent_where_there_is_no_project(self, plugin: HookProject, tmp_path: Path):
        empty = tmp_path / "empty"
        empty.mkdir()
        plugin.environment["CLAUDE_PROJECT_DIR"] = str(empty)
        for event in BY_NAME:
            given = {"tool_name": "Bash", "tool_input": {"command": "rm -rf x"}, "tool_calls": []}
            answer = plugin.event(event, cwd=empty, source="startup", **given)
            assert (answer.code, answer.output, answer.errors) == (0, "", ""), event
            broken = plugin.start(event, b"half")
            assert (broken.code, broken.output) == (0, ""), event
        assert list(empty.iterdir()) == []

    def test_is_not_switched_off_by_a_project(self, plugin: HookProject):
        for on, denied in ((True, False), (False, True), (None, True)):
            settings = {"enabledPlugins": {"harness@tools": on, "x@y": False}}
            path = plugin.write(".claude/settings.json", json.dumps(settings))
            fields = {"source": "project_settings", "file_path": str(path)}
            answer = plugin.event("ConfigChange", **fields)
            assert answer.denied is denied
            assert ("harness@tools" in answer.errors) is denied

    @pytest.mark.parametrize("variable", ["set", "unset"])
    def test_enforces_in_a_project(self, plugin: HookProject, variable: str):
        if variable == "unset":
            del plugin.environment["CLAUDE_PROJECT_DIR"]
        assert plugin.call("Write", {"file_path": "plan.md"}).denied
        assert plugin.shell("cd sub; rm ../plan.md").denied
        assert not plugin.call("Write", {"file_path": "model.py"}).denied
        assert len(plugin.receipts()) == 3
        assert plugin.start("PreToolUse", b"half", cwd=plugin.root / "sub").denied

    def test_reaches_a_project_from_outside(self, plugin: HookProject, tmp_path: Path):
        plugin.environment["CLAUDE_PROJECT_DIR"] = str(tmp_path / "elsewhere")
        assert plugin.call(
            "Write", {"file_path": str(plugin.root / "plan.md")}, cwd=tmp_path
        ).denied
        assert plugin.shell(f"rm '{plugin.root}/plan.md'", cwd=tmp_path).denied

    def test_guards_its_own_files(self, plugin: HookProject):
        for name in (
            "hooks/run.py",
            "harness/guard/policy/decide.py",
            "harness/guard/hooks/frame.py",
        ):
            assert plugin.call(
                "Write", {"file_path": str(plugin.programs.parent / name)}
            ).denied, name

    @pytest.mark.parametrize(
        "name",
        [
            "__init__.py",
            "guard/__init__.py",
            "domain/__init__.py",
            "domain/plain_text/__init__.py",
            "guard.py",
        ],
    )
    def test_runs_nothing_that_stands_beside_the_library(self, plugin: HookProject, name: str):
        planted = plugin.programs.parent / "harness" / name
        planted.parent.mkdir(exist_ok=True)
        planted.write_text("raise SystemExit(0)\n")
        assert plugin.call("Write", {"file_path": "plan.md"}).denied
        assert plugin.shell("rm plan.md").denied
        plugin.write(".harness/memory/BRIEFING.md", "café\x07\n")  # it is the filter's to show
        assert plugin.event("SessionStart", source="startup").context.endswith("café\n")
        server = plugin.program(["mcp.py"], b"")
        assert (server.code, "cannot be run" in server.errors) == (1, True)

    def test_refuses_settings_that_switch_it_off(self, plugin: HookProject):
        path = plugin.write(".claude/settings.json", '{"disableAllHooks": true}')
        assert plugin.event("ConfigChange", source="project_settings", file_path=str(path)).denied
        path.write_text("{}")
        assert not plugin.event(
            "ConfigChange", source="project_settings", file_path=str(path)
        ).denied


def test_hooks_of_this_repository_belong_to_it(project: HookProject):
    """hooks/ at the top of the project, with the library beside it, as in a clone of this
    repository."""
    shutil.rmtree(project.root / ".claude")
    shutil.copytree(
        REPOSITORY / "hooks", project.root / "hooks", ignore=shutil.ignore_patterns("__pycache__")
    )
    copy_library(project.root / "harness")
    project.programs = project.root / "hooks"
    assert project.call("Write", {"file_path": str(project.root / "plan.md")}, cwd="/").denied
    assert project.shell("rm hooks/run.py").denied
    assert project.shell("echo x > harness/guard/policy/decide.py").denied
    assert not project.shell("ls").denied
    assert not list((project.root / "harness").rglob("*.pyc"))


def test_modules_of_the_project_are_never_imported_by_a_hook(project: HookProject):
    for name in ("json", "os", "_json", "typing", "signal", "re", "harness"):
        for folder in (project.root, project.programs, project.programs / "lib"):
            (folder / f"{name}.py").write_text("raise SystemExit(0)\n")
    assert project.shell("rm plan.md", cwd=project.root).denied
    assert project.shell('python -c \'open("plan.md", "w")\'').denied


def test_compiled_modules_lie_outside_the_project_and_are_guarded(project: HookProject):
    project.shell("ls")
    cache = Path(project.environment["XDG_STATE_HOME"]) / "harness" / "pycache"
    compiled = [path for path in cache.rglob("*.pyc") if "decide" in path.name]
    assert compiled
    assert not list(project.root.rglob("*.pyc"))
    assert project.call("Write", {"file_path": str(compiled[0])}).denied
    assert project.shell(f"cp x.pyc '{compiled[0]}'").denied
    compiled[0].write_bytes(b"not the harness's")
    (cache / "more.pyc").touch()
    project.event("SessionStart", source="startup")
    assert not (cache / "more.pyc").exists()
    assert compiled[0].read_bytes() != b"not the harness's", (
        "a session starts with none but its own"
    )


def test_a_link_in_the_place_of_the_cache_is_taken_away(project: HookProject):
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    cache = Path(project.environment["XDG_STATE_HOME"]) / "harness" / "pycache"
    if cache.exists():
        shutil.rmtree(cache)
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.symlink_to(elsewhere)
    project.event("SessionStart", source="startup")
    assert not cache.is_symlink()
    assert not list(elsewhere.iterdir())


def test_a_link_of_the_project_is_not_taken_for_the_cache(project: HookProject):
    link = project.root / "relative" / "harness" / "pycache"
    link.parent.mkdir(parents=True)
    link.symlink_to(project.folder)
    project.environment["XDG_STATE_HOME"] = "relative"
    call = json.dumps({"session_id": "s-1", "cwd": str(project.root), "source": "startup"})
    assert project.start("SessionStart", call.encode(), cwd=project.root).code == 0
    assert link.is_symlink()


@pytest.mark.parametrize("state", ["/proc/nothing", "relative/path"])
def test_a_cache_that_cannot_be_written_changes_no_answer(project: HookProject, state: str):
    project.environment["XDG_STATE_HOME"] = state
    assert project.shell("rm plan.md").denied
    assert not project.shell("ls").denied
    assert not list(project.root.rglob("*.pyc"))


def test_with_next_to_no_environment(project: HookProject):
    project.environment = {"XDG_STATE_HOME": str(project.folder / "state_home")}
    assert project.shell("rm plan.md").denied


@pytest.mark.parametrize("below", [".claude", "data", ".harness"])
def test_a_project_planted_in_a_protected_folder_lifts_nothing(project: HookProject, below: str):
    """What the outer project protects and freezes stays so, whatever the inner one's snapshot
    says."""
    planted = other_project(project.root / below, project.folder / "planted_state")
    told = json.loads((planted / ".harness" / "policy.json").read_text())
    told.update(
        protected=[],
        frozen=[],
        roles={**told["roles"], "main": {"tools": None, "writes": [], "code": True}},
    )
    (planted / ".harness" / "policy.json").write_text(json.dumps(told))
    kept = {".claude": "settings.json", "data": "train.npz", ".harness": "config.toml"}[below]
    for cwd in (project.root, planted):
        assert project.call(
            "Write", {"file_path": str(planted / kept), "content": "x"}, cwd=cwd
        ).denied
        assert project.shell(f"rm '{planted / kept}'", cwd=cwd).denied


def test_a_project_around_another_one_is_asked_too(project: HookProject, other: Path):
    inner = other_project(other / ".claude", project.folder / "inner_state")
    (inner / "settings.json").write_text("{}")
    assert project.call(
        "Write", {"file_path": str(inner / "settings.json"), "content": "x"}
    ).denied


def test_a_nested_project_keeps_its_own_ordinary_files(project: HookProject):
    nested = other_project(project.root / "packages" / "b", project.folder / "nested_state")
    for name in ("train.py", "src/new.py"):
        assert not project.call("Write", {"file_path": str(nested / name), "content": "x"}).denied
