"""The table of Claude Code's settings keys: what each can do to the guards, and what counts."""

import copy
import json
from typing import Any

import pytest

from harness.guard.hooks import settings_keys as table
from harness.guard.hooks.settings_keys import DANGEROUS, HARMLESS, counts, effect, parts
from harness.guard.hooks.table import EVENTS, hooks_section

OURS = hooks_section("/usr/bin/python3", "${CLAUDE_PROJECT_DIR}/.claude/hooks/harness")
THEIRS = {"hooks": [{"type": "command", "command": "./mine.sh", "timeout": 5}]}
IN_SHARED = [f"hooks.{event.name}" for event in EVENTS]


def local(settings: dict[str, Any]) -> list[str]:
    return list(parts(settings, carries=False))


def shared(settings: dict[str, Any]) -> list[str]:
    """Without the parts that our own hooks are."""
    found = list(parts({"hooks": OURS, **settings}, carries=True))
    return [part for part in found if part not in IN_SHARED]


def of_form(form: Any) -> Any:
    """A value that has it."""
    if isinstance(form, dict):
        return {name: of_form(inner) for name, inner in form.items() if name != "*"}
    if isinstance(form, tuple):
        return form[-1]
    values = {"a flag": True, "text": "x", "texts": ["x"], "a number": 0.5, "a count": 7}
    return values.get(form, "x")


@pytest.mark.parametrize("key", HARMLESS)
def test_a_harmless_key_is_no_part_of_what_counts(key: str) -> None:
    value = of_form(HARMLESS[key])
    assert local({key: value}) == []
    # Of some the form is not known so closely that Claude Code surely reads the file.
    unsure = HARMLESS[key] == table.UNCHECKED
    assert shared({key: value}) == ([key] if unsure else [])


@pytest.mark.parametrize("key", sorted(set(HARMLESS) - set(table._FORGIVEN.split())))
def test_of_a_wrong_form_it_counts_where_our_hooks_stand(key: str) -> None:
    assert shared({key: None}) == [key]
    assert "take no hook from the file" in effect(key)
    assert counts(key)
    assert local({key: None}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanupPeriodDays", 10**30),
        ("cleanupPeriodDays", 2**53),
        ("statusLine", {"type": "command", "command": "date", "padding": float("inf")}),
    ],
)
def test_a_number_that_is_none_in_javascript_counts(key: str, value: Any) -> None:
    assert shared({key: value}) == [key]


@pytest.mark.parametrize(("timeout", "counted"), [(0, True), (-1, True), (0.5, False)])
def test_a_timeout_of_anothers_hook_is_above_zero(timeout: float, counted: bool) -> None:
    entry = {"type": "command", "command": "date", "timeout": timeout}
    found = parts({"hooks": {"PostToolUse": [{"hooks": [entry]}]}}, carries=True)
    assert bool(found) is counted


@pytest.mark.parametrize("key", DANGEROUS)
def test_a_dangerous_key_counts_in_both(key: str) -> None:
    for value in (True, ["x"], {"x": "y"}, "x"):
        assert local({key: value}) == shared({key: value}) == [key]
    assert counts(key)
    assert DANGEROUS[key] in effect(key)
    assert local({key: False}) == shared({key: False}) == []
    assert local({key: None}) == []
    assert shared({key: None}) == [key]


@pytest.mark.parametrize(
    ("variable", "counted"),
    [
        ("WANDB_PROJECT", False),
        ("PATH", False),
        ("HTTPS_PROXY", False),
        ("ANTHROPIC_MODEL", False),
        ("BASH_DEFAULT_TIMEOUT_MS", False),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", False),
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", False),
        ("HOME", True),
        ("XDG_STATE_HOME", True),
        ("LD_PRELOAD", True),
        ("OPENSSL_CONF", True),
        ("NODE_OPTIONS", True),
        ("HARNESS_JUDGE", True),
        ("CLAUDE_CONFIG_DIR", True),
        ("CLAUDE_PLUGIN_ROOT", True),
        ("CLAUDE_CODE_SHELL_PREFIX", True),
        ("CLAUDE_CODE_PROCESS_WRAPPER", True),
        ("CLAUDE_CODE_MANAGED_SETTINGS_PATH", True),
        ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", True),
        ("CLAUDE_CODE_SAFE_MODE", True),
    ],
)
def test_of_the_variables_those_that_steer_or_switch_off(variable: str, counted: bool) -> None:
    settings = {"env": {variable: "1", "A": "b"}}
    assert local(settings) == shared(settings) == ([f"env.{variable}"] if counted else [])


def test_an_off_switch_that_is_off_does_nothing() -> None:
    assert local({"env": {"CLAUDE_CODE_SIMPLE": "0"}}) == []
    assert shared({"env": {"PORT": 3000}}) == ["env.PORT"], "then the whole file is not read"
    assert "take no hook" in effect("env.PORT")


def test_our_own_hooks_are_parts_and_each_change_of_one_is_seen() -> None:
    before = parts({"hooks": OURS}, carries=True)
    assert list(before) == IN_SHARED
    for event in EVENTS:
        for change in (
            lambda group: group["hooks"][0].update(timeout=1),
            lambda group: group.update(matcher="Nothing"),
            lambda group: group["hooks"].clear(),
        ):
            hooks = copy.deepcopy(OURS)
            change(hooks[event.name][0])
            after = parts({"hooks": hooks}, carries=True)
            assert after.get(f"hooks.{event.name}") != before[f"hooks.{event.name}"]


def test_hooks_of_others_count_where_they_may_change_a_judged_call() -> None:
    for event in ("Notification", "PostToolUse", "Stop", "SessionStart", "ConfigChange"):
        assert local({"hooks": {event: [THEIRS]}}) == []
        assert shared({"hooks": {**OURS, event: [*OURS.get(event, []), THEIRS]}}) == []
    for event in table.CHANGES_CALLS:
        named = f"hooks.{event} of others"
        assert local({"hooks": {event: [THEIRS]}}) == [named]
        assert shared({"hooks": {**OURS, event: [*OURS.get(event, []), THEIRS]}}) == [named]
        assert "may change a call after the guards judged it" in effect(named)
    order = parts({"hooks": {"Stop": [THEIRS, *OURS["Stop"]]}}, carries=True)
    assert order == parts({"hooks": {"Stop": [*OURS["Stop"], THEIRS]}}, carries=True)


@pytest.mark.parametrize(
    "groups",
    [
        3,
        ["x"],
        [{"hooks": "x"}],
        [{"matcher": 5, "hooks": []}],
        [{"hooks": [{"type": "command"}]}],
        [{"hooks": [{"type": "command", "command": "x", "timeout": "long"}]}],
        [{"hooks": [{"type": "of next year", "command": "x"}]}],
    ],
)
def test_hooks_that_may_keep_ours_from_being_read_count(groups: Any) -> None:
    (named,) = shared({"hooks": {**OURS, "Notification": groups}})
    assert named.startswith("hooks.Notification")
    assert counts(named)
    (named,) = shared({"hooks": {**OURS, "AnEventOfNextYear": [THEIRS]}})
    assert named == "hooks.AnEventOfNextYear"


def test_of_the_plugins_ours_counts() -> None:
    theirs = {"formatter@tools": True, "other@tools": False, "third@tools": ["1.2"]}
    assert local({"enabledPlugins": theirs}) == shared({"enabledPlugins": theirs}) == []
    assert local({"enabledPlugins": {"harness@x": False}}) == ["enabledPlugins.harness@x"]
    assert shared({"enabledPlugins": {"formatter@tools": 3}}) == ["enabledPlugins.formatter@tools"]


def test_an_unknown_key_is_named_and_counts_only_when_it_speaks_of_hooks() -> None:
    assert local({"nextYear": 1}) == shared({"nextYear": 1}) == ["nextYear"]
    assert not counts("nextYear")
    assert "does not know" in effect("nextYear")
    assert counts("disableProjectHooks")
    long = "x" * 5000
    (named,) = local({long: 1})
    assert len(named) < 100


def test_a_key_that_looks_like_a_part_hides_none() -> None:
    alone = parts({"env.LD_PRELOAD": "x"}, carries=False)
    both = parts({"env": {"LD_PRELOAD": "x"}, "env.LD_PRELOAD": "x"}, carries=False)
    assert list(alone) == list(both) == ["env.LD_PRELOAD"]
    assert alone != both


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "3",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a":' * 9999,
        b"\xff{}",
        "\ufeff\ufeff{}",
    ],
)
def test_what_claude_code_does_not_read_is_no_settings(text: str | bytes) -> None:
    assert table.settings_of(text if isinstance(text, bytes) else text.encode()) is None


def test_what_claude_code_reads_is() -> None:
    assert table.settings_of(b"") == table.settings_of(b" \n") == {}
    assert table.settings_of(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_the_parts_are_text_that_hooks_and_judge_write_alike() -> None:
    found = parts({"disableAllHooks": ["b", {"y": 1, "x": 2}]}, carries=False)
    assert json.loads(found["disableAllHooks"]) == ["b", {"x": 2, "y": 1}]
    assert found == parts({"disableAllHooks": ["b", {"x": 2, "y": 1}]}, carries=False)
