"""Settings that would switch a guard off are not loaded."""

import copy
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from hook_project import PREFIX, PYTHON, HookProject

from harness.guard.hooks.table import BY_NAME, EVENTS, GUARD, entry, hooks_section

SETTINGS = ".claude/settings.json"
LOCAL = ".claude/settings.local.json"


def changed(project: HookProject, value: Any, name: str = SETTINGS, **fields: Any):
    path = project.write(name, value if isinstance(value, str) else json.dumps(value))
    given = {
        "source": "local_settings" if name == LOCAL else "project_settings",
        "file_path": str(path),
        **fields,
    }
    return project.event("ConfigChange", hook_event_name="ConfigChange", **given)


def guards() -> dict[str, Any]:
    return {"hooks": hooks_section(PYTHON, PREFIX)}


@pytest.mark.parametrize("name", [SETTINGS, LOCAL])
@pytest.mark.parametrize("value", [True, 1, "yes"])
def test_all_hooks_disabled(project: HookProject, name: str, value):
    answer = changed(project, {**guards(), "disableAllHooks": value}, name)
    assert answer.denied
    assert "disableAllHooks" in answer.errors
    assert name in answer.errors
    # `harness init` would leave the key where it is.
    assert f"A person takes that out of {project.root / name}" in answer.errors
    assert project.receipts()[-1]["rule"] == "guard_switched_off"


def test_a_persons_own_settings_count_too(project: HookProject):
    path = project.folder / "home" / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"disableAllHooks": true}')
    assert project.event("ConfigChange", source="user_settings", file_path=str(path)).denied
    path.write_text('{"env": {"HOME": "/x"}}')
    assert not project.event("ConfigChange", source="user_settings", file_path=str(path)).denied


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", "{'a': 1}", '{"a":' * 100_000])
@pytest.mark.parametrize("name", [SETTINGS, LOCAL])
def test_what_is_no_json_object(project: HookProject, name: str, text: str):
    if text == "null" and name == LOCAL:
        return
    assert changed(project, text, name).denied


def test_a_byte_order_mark_is_no_fault(project: HookProject):
    assert not changed(project, "\ufeff" + json.dumps(guards())).denied
    assert not changed(project, "\ufeff{}", LOCAL).denied
    assert changed(project, "\ufeff{}").denied


def test_a_pipe_is_no_settings_file(project: HookProject):
    os.mkfifo(project.root / LOCAL)
    assert project.event(
        "ConfigChange", source="local_settings", file_path=str(project.root / LOCAL)
    ).denied


def test_the_installed_file_is_gone(project: HookProject):
    (project.root / SETTINGS).unlink()
    fields = {"source": "project_settings", "file_path": str(project.root / SETTINGS)}
    assert project.event("ConfigChange", **fields).denied
    assert not project.event(
        "ConfigChange", source="local_settings", file_path=str(project.root / LOCAL)
    ).denied


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no hooks": lambda hooks: hooks.clear(),
    "no PreToolUse": lambda hooks: hooks.pop("PreToolUse"),
    "no ConfigChange": lambda hooks: hooks.pop("ConfigChange"),
    "an empty group": lambda hooks: hooks["PreToolUse"][0]["hooks"].clear(),
    "another matcher": lambda hooks: hooks["PreToolUse"][0].update(matcher="Bash"),
    "a matcher of no tool": lambda hooks: hooks["PreToolUse"][0].update(matcher="Nothing"),
    "fails open": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].pop("onFailure"),
    "continues": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update(onFailure="continue"),
    "no time": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update(timeout=0),
    "milliseconds": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update(timeout=30000),
    "another program": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update(
        args=["-I", "-S", "/tmp/x.py"]
    ),
    "another event": lambda hooks: hooks["PreToolUse"][0]["hooks"][0]["args"].__setitem__(
        -1, "Stop"
    ),
    "no event": lambda hooks: hooks["PreToolUse"][0]["hooks"][0]["args"].pop(),
    "other options": lambda hooks: hooks["PreToolUse"][0]["hooks"][0]["args"].pop(0),
    "as a shell line": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].pop("args"),
    "only for some": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update(
        {"if": "Bash(git *)"}
    ),
    "in the background": lambda hooks: hooks["PreToolUse"][0]["hooks"][0].update({"async": True}),
    "hooks as a list": lambda hooks: hooks.update(PreToolUse=3),
    "group as text": lambda hooks: hooks.update(
        PreToolUse=["x", None, {"hooks": "x"}, {"hooks": [None, 3]}]
    ),
}


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("edit", EDITS)
def test_a_guard_that_no_longer_guards(project: HookProject, edit: str, manifest: bool):
    if manifest:
        project.write(
            ".claude/hooks/harness/MANIFEST.json",
            json.dumps({"settings": hooks_section(PYTHON, PREFIX)}),
        )
    settings = guards()
    assert not changed(project, settings).denied
    EDITS[edit](settings["hooks"])
    answer = changed(project, settings)
    assert answer.denied
    assert (
        "ConfigChange" in answer.errors
        if edit == "no ConfigChange"
        else "PreToolUse" in answer.errors
    )


@pytest.mark.parametrize("manifest", [True, False])
def test_what_a_person_adds_is_loaded(project: HookProject, manifest: bool):
    if manifest:
        project.write(
            ".claude/hooks/harness/MANIFEST.json",
            json.dumps({"settings": hooks_section(PYTHON, PREFIX)}),
        )
    settings = guards()
    settings["permissions"] = {"allow": ["Bash(ls:*)"]}
    own = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
    settings["hooks"]["PreToolUse"].insert(0, own)
    settings["hooks"]["Notification"] = [own]
    settings["hooks"].pop("Stop")
    assert not changed(project, settings).denied
    joined = copy.deepcopy(settings)
    joined["hooks"]["ConfigChange"] = [
        {"hooks": [{"type": "command", "command": "true"}, *guard("ConfigChange")]}
    ]
    assert not changed(project, joined).denied
    assert not changed(project, {"env": {"FOO": "1"}}, LOCAL).denied


def guard(name: str) -> list[dict[str, Any]]:
    return [entry(BY_NAME[name], PYTHON, PREFIX)]


@pytest.mark.parametrize("name", [SETTINGS, LOCAL])
@pytest.mark.parametrize(
    "variable",
    [
        "XDG_STATE_HOME",
        "HOME",
        "LD_PRELOAD",
        "GCONV_PATH",
        "CLAUDE_PLUGIN_ROOT",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_SHELL_PREFIX",
        "CLAUDE_CODE_PERSONAL_HOOKS_OFF",
        "LD_BIND_NOW",
        "HARNESS_JUDGE",
    ],
)
def test_variables_that_steer_the_guards(project: HookProject, name: str, variable: str):
    answer = changed(project, {**guards(), "env": {variable: "/tmp/x"}}, name)
    assert answer.denied
    assert variable in answer.errors


@pytest.mark.parametrize("name", [SETTINGS, LOCAL, "home"])
@pytest.mark.parametrize("variable", ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"])
def test_variables_with_which_no_hook_runs(project: HookProject, name: str, variable: str):
    fields = {"source": "user_settings"} if name == "home" else {}
    for value, denied in (("1", True), (True, True), ("0", False), ("", False)):
        answer = changed(
            project,
            {**guards(), "env": {variable: value}},
            "u/settings.json" if fields else name,
            **fields,
        )
        assert answer.denied == denied
        assert (variable in answer.errors) == denied


def test_other_changes_are_not_its_business(project: HookProject):
    for source, name in (("skills", ".claude/skills/x/SKILL.md"), ("skills", "notes.txt")):
        path = project.write(name, "disableAllHooks")
        assert not project.event("ConfigChange", source=source, file_path=str(path)).denied


@pytest.mark.parametrize("path", [None, "", 3, SETTINGS, "./.claude/../.claude/settings.json"])
def test_the_file_is_found_without_an_absolute_path(project: HookProject, path):
    project.write(SETTINGS, '{"disableAllHooks": true}')
    assert project.event("ConfigChange", source="project_settings", file_path=path).denied


def test_every_guard_of_the_table_is_checked(project: HookProject):
    for event in (event for event in EVENTS if event.kind == GUARD):
        settings = guards()
        settings["hooks"].pop(event.name)
        assert changed(project, settings).denied


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanupPeriodDays", 0),
        ("verbose", "yes"),
        ("model", None),
        ("permissions", {"allow": "Bash(ls)"}),
        ("statusLine", {"type": "command"}),
        ("tui", "wide"),
    ],
)
def test_a_value_with_which_claude_code_reads_no_hook(project: HookProject, key: str, value: Any):
    answer = changed(project, {**guards(), key: value})
    assert answer.denied
    assert key in answer.errors
    assert not changed(project, {key: value}, LOCAL).denied, "no hook of ours stands there"
