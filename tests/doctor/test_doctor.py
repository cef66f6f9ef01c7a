"""What the doctor says of projects that are as they should be, and of what is not the project's own
doing."""

import json
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.doctor.doctor import OF_THE_HOOKS, OF_THE_PLACE, OF_THE_REST, WITH_THE_CLI, examine
from harness.doctor.enclosing_session import EnclosingSession
from harness.doctor.report import NO_GUARD, DoctorCheck, Report, broken, good
from harness.doctor.start_hooks import guards_answer, interpreter, others_answer
from harness.doctor.subject import look
from harness.domain.statuses import HooksMode
from harness.errors import NotFoundError
from tests.doctor.made import REPOSITORY, Made, make
from tests.install.repository import git

CASE_01 = Path(__file__).parent / "inputs/case-01/settings_relative.json"
STARTING = (guards_answer, others_answer, interpreter)
WORDS = st.sampled_from(
    [
        "PreToolUse",
        "ConfigChange",
        "command",
        "/usr/bin/python3",
        ".claude/hooks/harness/run.py",
        "*",
        "(",
        "\ud800",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | WORDS, inner, max_size=3)
    ),
    max_leaves=6,
)
HOOK_KEYS = ("type", "command", "args", "timeout", "onFailure", "async", "if")
HOOKS = st.dictionaries(st.sampled_from(HOOK_KEYS), VALUES, max_size=7) | VALUES
GROUPS = (
    st.fixed_dictionaries(
        {}, optional={"matcher": VALUES, "hooks": st.lists(HOOKS, max_size=3) | VALUES}
    )
    | VALUES
)
SECTION = st.dictionaries(WORDS, st.lists(GROUPS, max_size=3) | VALUES, max_size=4) | VALUES
SETTINGS = st.fixed_dictionaries(
    {"hooks": SECTION}, optional={"disableAllHooks": VALUES, "env": VALUES}
)


def named(checks: tuple[DoctorCheck, ...]) -> dict[str, DoctorCheck]:
    return {check.name: check for check in checks}


def test_an_untouched_project_has_no_dead_guard_and_nothing_amiss(made: Made):
    report = made.doctor()
    assert [check.message for check in report.checks if check.ok is False] == []
    assert not report.broken
    assert {check.name for check in report.checks if not check.guard} == NO_GUARD
    assert report.lines()[-1] == "all guards work"


def test_nothing_is_left_in_the_project(made: Made):
    before = made.files()
    made.doctor()
    assert made.files() == before


def test_receipts_of_sessions_stay(made: Made):
    receipts = made.root / ".harness/receipts"
    receipts.mkdir()
    (receipts / "s-1.jsonl").write_text("{}\n")
    made.doctor()
    assert [path.name for path in receipts.iterdir()] == ["s-1.jsonl"]


def test_an_approved_plan_and_settings_of_ones_own_are_no_fault(made: Made):
    made.approve()
    settings = made.settings()
    settings["permissions"] = {"allow": ["Bash(pytest:*)"]}
    settings["hooks"]["PreToolUse"].append(
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "/bin/true"}]}
    )
    made.write(settings)
    assert [check.message for check in made.doctor().checks if check.ok is False] == []


def test_case_01_a_relative_hook_of_somebody_else_is_named(made: Made):
    settings = made.settings()
    settings["hooks"]["PreToolUse"] += json.loads(CASE_01.read_text("utf-8"))["hooks"][
        "PreToolUse"
    ]
    made.write(settings)
    report = made.doctor()
    check = named(report.checks)["other_hooks"]
    assert (check.ok, report.broken) == (False, False)
    assert "python3 .claude/hooks/guard.py" in check.message
    assert "CLAUDE_PROJECT_DIR" in check.hint


def test_a_plugin_that_may_change_a_judged_call_is_named_and_breaks_nothing(made: Made):
    folder = made.home / ".claude"
    (folder / "wide/hooks").mkdir(parents=True)
    (folder / "wide/hooks/hooks.json").write_text('{"hooks": {"PreToolUse": [{}]}}')
    (folder / "plugins").mkdir()
    lies = {"plugins": {"wide@shop": [{"installPath": str(folder / "wide")}]}}
    (folder / "plugins/installed_plugins.json").write_text(json.dumps(lies))
    assert named(made.doctor().checks)["other_plugins"].ok is True
    (folder / "settings.json").write_text('{"enabledPlugins": {"wide@shop": true}}')
    report = made.doctor()
    check = named(report.checks)["other_plugins"]
    assert (check.ok, report.broken) == (None, False)
    assert "wide@shop (PreToolUse)" in check.message


def test_hooks_of_ones_own_that_have_the_names_of_ours_are_not_ours(made: Made):
    """Many repositories have a .claude/hooks/run.py; a fault of it is no dead guard of ours."""
    settings = made.settings()
    theirs = {
        "type": "command",
        "command": "python3 .claude/hooks/run.py",
        "timeout": 60000,
    }
    settings["hooks"]["PreToolUse"].append({"matcher": "bash", "hooks": [theirs]})
    made.write(settings)
    report = made.doctor()
    assert [check.name for check in report.checks if check.ok is False] == ["other_hooks"]


def test_a_session_whose_folder_cannot_be_seen_is_not_accused(made: Made):
    (made.root / "src").mkdir()
    report = made.doctor(start=made.root / "src", CLAUDECODE="1")
    assert named(report.checks)["start_folder"].ok is None
    assert not report.broken


def test_case_03_a_missing_hook_is_no_policy(made: Made):
    """Python ends with 2 when its script is not there, which looks like a denial; the doctor says
    what it is."""
    (made.hooks / "run.py").unlink()
    checks = named(made.doctor().checks)
    assert "hook not found: .claude/hooks/harness/run.py" in checks["hook_files_present"].message
    assert "hook not found" in checks["guards_answer"].message
    assert "no rule denied anything" in checks["guards_answer"].message
    assert "harness init" in checks["guards_answer"].hint


def test_without_a_project_it_says_so(made: Made):
    shutil.rmtree(made.root / ".harness")
    with pytest.raises(NotFoundError) as raised:
        made.doctor()
    assert "harness init" in raised.value.hint


def test_through_a_link_it_is_the_same_project(made: Made, tmp_path: Path):
    (tmp_path / "link").symlink_to(made.root)
    report = made.doctor(start=tmp_path / "link")
    assert (report.project, report.broken) == (made.root, False)


def test_a_worktree_has_the_main_ones_policy_and_needs_hooks_of_its_own(
    made: Made, tmp_path: Path
):
    git(made.root, "init", "--quiet")
    git(made.root, "add", "--all", "--force", "--", ".harness/config.toml", ".claude")
    git(made.root, "commit", "--quiet", "--message", "A project")
    worktree = tmp_path / "a worktree"
    git(made.root, "worktree", "add", "--quiet", "-b", "side", str(worktree))
    report = made.doctor(start=worktree)
    assert [check.message for check in report.checks if check.ok is False] == []
    shutil.rmtree(worktree / ".claude")
    report = made.doctor(start=worktree)
    assert report.broken
    assert "git" in named(report.checks)["entries_present"].hint


def test_this_repository_guards_itself(made: Made):
    """Its hooks are its own, not copies; what depends on this machine's ledger is left out."""
    checks = named(made.doctor(start=REPOSITORY).checks)
    assert [
        check.message
        for check in checks.values()
        if check.ok is False and check.name.startswith("entr")
    ] == []
    assert checks["hook_files_present"].ok is True
    assert checks["hook_files_unchanged"].ok is None


def test_managed_settings_that_leave_out_the_projects_hooks(made: Made, tmp_path: Path):
    for number, values in enumerate(
        (
            {"disableAllHooks": True},
            {"allowManagedHooksOnly": True},
            {"strictPluginOnlyCustomization": ["hooks"]},
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "managed-settings.json").write_text(json.dumps(values))
        scene = look(made.root, made.environment, home=made.home, managed_folder=folder)
        check = named(examine(scene, start_cli=False).checks)["hooks_enabled"]
        assert (check.ok, check.guard) == (False, True)
        assert f"{folder}/managed-settings.json has {next(iter(values))}" in check.message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bare",), "--bare"),
        (("--model", "opus", "--safe-mode"), "--safe-mode"),
        (("--setting-sources", "user,local"), "--setting-sources user,local"),
        (("--setting-sources=user",), "--setting-sources user"),
        (("--settings", '{"disableAllHooks": true}'), "disableAllHooks"),
        (("--setting-sources", "user, project"), ""),
        (("--settings", '{"disableAllHooks": false}'), ""),
        (("-p", "do it", "--", "--bare"), ""),
    ],
)
def test_the_options_of_the_running_session(made: Made, words: tuple[str, ...], said: str):
    session = EnclosingSession(words=("/usr/local/bin/claude", *words), folder=made.root)
    scene = made.scene(session=session)
    check = named(examine(scene, start_cli=False).checks)["cli_mode"]
    assert check.ok is (said == "")
    assert said in check.message


@pytest.mark.parametrize(("option", "code"), [("--bare", 1), ("--verbose", 0)])
def test_the_running_session_is_found_among_the_processes_above(
    made: Made, option: str, code: int
):
    """The doctor runs below a process that is called claude and was started with `option`."""
    doctor = f'"{sys.executable}" -m harness doctor --quick --json; exit $?'
    line = ["/bin/bash", "-c", 'exec -a claude /bin/bash -c "$@"', "x", doctor, "x", option]
    done = subprocess.run(
        line,
        cwd=made.root,
        env=made.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (check,) = [
        check for check in json.loads(done.stdout)["checks"] if check["name"] == "cli_mode"
    ]
    assert "the running session was" in check["message"]
    assert (option in check["message"], done.returncode) == (code == 1, code)


def test_a_session_that_was_started_elsewhere_is_named(made: Made):
    session = EnclosingSession(words=("claude",), folder=made.root.parent)
    scene = made.scene(session=session)
    check = named(examine(scene, start_cli=False).checks)["start_folder"]
    assert (check.ok, str(made.root.parent) in check.message) == (False, True)
    other = EnclosingSession(words=("claude",), folder=made.home)
    scene = made.scene(session=other)
    assert named(examine(scene, start_cli=False).checks)["start_folder"].ok is True


def test_hooks_of_the_plugin_are_seen_only_by_what_the_plugin_starts(tmp_path: Path):
    made = make(tmp_path, HooksMode.PLUGIN)
    report = made.doctor()
    check = named(report.checks)["hooks_installed"]
    assert (check.ok, report.broken) == (None, False)
    assert "CLAUDE_PLUGIN_ROOT" in check.message
    assert "No session has written receipts yet" in check.message
    assert "/plugin" in check.hint
    report = made.doctor(CLAUDE_PLUGIN_ROOT=str(REPOSITORY))
    checks = named(report.checks)
    assert [check.message for check in report.checks if check.ok is False] == []
    assert checks["hooks_installed"].ok is True
    assert checks["guards_answer"].ok is True


def test_a_project_may_choose_to_have_no_hooks(tmp_path: Path):
    made = make(tmp_path, HooksMode.NONE)
    report = made.doctor()
    check = named(report.checks)["hooks_installed"]
    assert (check.ok, report.broken) == (None, False)
    assert "not guarded" in check.message


def test_a_broken_agent_file_is_named(made: Made):
    (made.root / ".claude/agents").mkdir(exist_ok=True)
    (made.root / ".claude/agents/mine.md").write_text("---\nname: mine\ntool: Read\n---\nRead.\n")
    check = named(made.doctor().checks)["agent_files"]
    assert (check.ok, check.guard) == (False, False)
    assert "mine.md" in check.message


@given(settings=SETTINGS)
@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_no_settings_make_the_doctor_fall(made: Made, settings: dict[str, Any]):
    made.settings_file.write_text(json.dumps(settings), "utf-8")
    scene = made.scene()
    checks = tuple(
        check(scene) for check in (*OF_THE_PLACE, *OF_THE_HOOKS) if check not in STARTING
    )
    report = Report(project=scene.root, checks=checks)
    assert json.loads(json.dumps(report.document(), ensure_ascii=False).encode("utf-8"))["checks"]
    assert "\n".join(report.lines()).encode("utf-8")


def test_the_documented_names_are_those_of_the_checks(made: Made):
    text = (REPOSITORY / "docs/cli.md").read_text("utf-8")
    names = re.search(r"^- `doctor`:.*?Names: `(.*?)`", text, re.DOTALL | re.MULTILINE)
    assert names is not None
    documented = re.split(r",\s+", names[1])
    functions = (*OF_THE_PLACE, *OF_THE_HOOKS, *WITH_THE_CLI, *OF_THE_REST)
    assert documented == [function.__name__ for function in functions]
    assert [check.name for check in made.doctor().checks] == [
        name for name in documented if name != "cli_denies"
    ]


def command(made: Made, *words: str, cwd: Path | None = None) -> tuple[int, Any]:
    line = [sys.executable, "-m", "harness", "doctor", "--quick", "--json", *words]
    done = subprocess.run(
        line,
        cwd=cwd or made.root,
        env=made.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_exit_codes_and_json(made: Made, tmp_path: Path):
    code, document = command(made)
    assert (code, document["broken"], document["project"]) == (0, False, str(made.root))
    assert all(
        set(check) == {"name", "ok", "guard", "message", "hint"} for check in document["checks"]
    )
    (made.hooks / "run.py").chmod(stat.S_IXUSR)
    code, document = command(made)
    assert (code, document["broken"]) == (1, True)
    code, document = command(made, "--project", str(tmp_path))
    assert (code, document["error"]["code"]) == (2, "no_project")


def test_what_is_in_order_is_a_line_a_group_unless_every_check_is_asked_for():
    names = ("entries_once", "entries_type", "settings_readable", "sandbox")
    sound = Report(project=None, checks=tuple(replace(good("fine"), name=name) for name in names))
    assert sound.lines() == [
        "ok    hook entries         2 checks",
        "ok    settings             1 check",
        "ok    sandbox              1 check",
        "all guards work",
    ]
    assert [line.split()[1] for line in sound.lines(verbose=True)[:-1]] == list(names)
    failing = Report(
        project=None,
        checks=(
            *sound.checks,
            replace(broken("It is gone.", "Install it."), name="interpreter"),
        ),
    )
    assert failing.lines()[:2] == ["FAIL  interpreter          It is gone.", f"{'':27}Install it."]
