"""Our entries in a person's settings: added once, nothing else touched, taken out again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.install.merged_settings import (
    with_hooks,
    with_rules,
    with_server,
    without_hooks,
    without_rules,
    without_server,
)
from harness.rendering.claude_files import allowed_rules, project_hooks, project_server

SECTION = project_hooks("/usr/bin/python3")
SERVER = project_server("/usr/bin/python3")
MINE = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]}
PERSONS = [
    "{}",
    '{"permissions": {"allow": ["Bash(ls:*)"]}}\n',
    (
        '{\n    "model": "opus",\n    "hooks": {\n        "PreToolUse": [\n            {"matcher":'
        ' "Bash", "hooks": []}\n        ]\n    },\n    "unknown key": 1e3\n}'
    ),
    (
        '{\r\n\t"hooks" : { "Stop": [ { "hooks": [ { "type": "command", "command": "./done" } ] } ]'
        ' },\r\n\t"x": "\\u00e9é"\r\n}\r\n'
    ),
    '\ufeff{\n  "env": {"A": "b"}\n}\n',
]
each = pytest.mark.parametrize("text", PERSONS)


def merged(text: str | None) -> str:
    return with_hooks(text, SECTION, "settings.json")


def cleaned(text: str) -> str:
    return without_hooks(text, "settings.json")


def value(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff"))


def groups(text: str, event: str) -> list[Any]:
    found: list[Any] = value(text)["hooks"][event]
    return found


def test_a_new_file_holds_the_section_and_nothing_else() -> None:
    assert value(merged(None)) == {"hooks": SECTION}


@each
def test_no_key_of_the_persons_is_lost_and_their_order_stays(text: str) -> None:
    before, after = value(text), value(merged(text))
    assert list(before) == [key for key in after if key in before]
    assert {key: item for key, item in after.items() if key != "hooks"} == {
        key: item for key, item in before.items() if key != "hooks"
    }
    for event in {*before.get("hooks", {}), *SECTION}:
        assert groups(merged(text), event) == before.get("hooks", {}).get(event, []) + SECTION.get(
            event, []
        )


@each
def test_every_byte_of_theirs_stays_where_it_is(text: str) -> None:
    more = iter(merged(text))
    assert all(letter in more for letter in text), (
        "the old text is what is left when ours is struck out"
    )
    assert ("\r\n" in text) is ("\r\n" in merged(text))
    assert "\n" not in merged(text).replace("\r\n", "") or "\r\n" not in text


@each
def test_it_is_added_once_and_taken_out_exactly(text: str) -> None:
    assert merged(merged(text)) == merged(text)
    assert cleaned(merged(text)) == text
    assert cleaned(text) == text


def test_an_older_or_weakened_entry_of_ours_is_replaced() -> None:
    old = json.loads(json.dumps(SECTION))
    old["PreToolUse"][0]["hooks"][0].pop("onFailure")
    old["Notification"] = [{"hooks": [old["Stop"][0]["hooks"][0]]}]
    old["Stop"][0]["hooks"].append({"type": "command", "command": "./done"})
    text = json.dumps({"hooks": old}, indent=2)
    assert groups(merged(text), "PreToolUse") == SECTION["PreToolUse"]
    assert "Notification" not in value(merged(text))["hooks"]
    assert groups(merged(text), "Stop") == [
        {"hooks": [{"type": "command", "command": "./done"}]},
        *SECTION["Stop"],
    ]
    assert value(cleaned(text)) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./done"}]}]}
    }


def test_two_of_ours_become_one() -> None:
    twice = {event: [*found, *found] for event, found in SECTION.items()}
    assert value(merged(json.dumps({"hooks": twice}))) == {"hooks": SECTION}


@given(
    st.dictionaries(
        st.sampled_from(["PreToolUse", "Stop", "Other"]),
        st.lists(
            st.sampled_from([MINE, SECTION["Stop"][0], SECTION["PreToolUse"][0]]), max_size=4
        ),
    ),
    st.sampled_from([None, 2, "\t"]),
)
def test_any_mix_ends_with_the_persons_entries_and_ours_once(
    hooks: dict[str, Any], indent: Any
) -> None:
    text = json.dumps({"a": 1, "hooks": hooks}, indent=indent)
    after = value(merged(text))["hooks"]
    for event in SECTION:
        mine = [group for group in hooks.get(event, []) if group == MINE]
        assert sorted(map(str, after[event])) == sorted(map(str, mine + SECTION[event]))
    assert value(cleaned(text)).get("hooks", {}) == {
        event: mine
        for event, found in hooks.items()
        if (mine := [group for group in found if group == MINE]) or not found
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1"),
        ('{\n  // mine\n  "hooks": {}\n}', "line 2, column 3"),
        ("[]", "the whole file is a list; Claude Code expects an object"),
        ('{"hooks": []}', "hooks is a list"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is an object"),
        ('{"hooks": {"Stop": ["x"]}}', r"hooks.Stop\[\] is text"),
        ('{"hooks": {"Stop": [{"hooks": 3}]}}', "Stop hooks is a number"),
    ],
)
def test_what_claude_code_would_not_read_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        merged(text)
    assert (refused.value.code, refused.value.exit_code) == ("settings_invalid", 2)


@pytest.mark.parametrize(
    "text", ["{}", '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n', '{"a": 1}']
)
def test_the_server_is_added_once_and_taken_out_exactly(text: str) -> None:
    more = with_server(text, SERVER, ".mcp.json")
    assert more is not None
    assert value(more)["mcpServers"]["harness"] == SERVER
    assert with_server(more, SERVER, ".mcp.json") == more
    assert without_server(more, ".mcp.json") == text
    older = more.replace("/usr/bin/python3", "/old/python3")
    assert value(str(with_server(older, SERVER, ".mcp.json"))) == value(more)


def test_another_server_of_that_name_is_left_alone() -> None:
    text = '{"mcpServers": {"harness": {"command": "other"}}}'
    assert with_server(text, SERVER, ".mcp.json") is None
    assert without_server(text, ".mcp.json") == text


RULES = allowed_rules()


@each
def test_rules_are_added_beside_the_persons_and_taken_out_exactly(text: str) -> None:
    more = with_rules(text, RULES, "settings.json")
    theirs = value(text).get("permissions", {}).get("allow", [])
    assert value(more)["permissions"]["allow"] == [*theirs, *RULES]
    assert with_rules(more, RULES, "settings.json") == more
    assert without_rules(more, RULES, "settings.json") == text
    assert without_rules(text, RULES, "settings.json") == text


def test_other_permissions_stay_and_a_rule_that_is_there_is_not_repeated() -> None:
    text = json.dumps({"permissions": {"deny": ["WebFetch"], "allow": [RULES[1]]}})
    more = with_rules(text, RULES, "settings.json")
    assert value(more)["permissions"] == {
        "deny": ["WebFetch"],
        "allow": [RULES[1], RULES[0], *RULES[2:]],
    }
    left = without_rules(more, [RULES[0], *RULES[2:]], "settings.json")
    assert left == text
    assert value(without_rules(more, RULES, "settings.json")) == {
        "permissions": {"deny": ["WebFetch"]}
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"permissions": []}', "permissions is a list"),
        ('{"permissions": {"allow": "x"}}', "permissions.allow is text"),
    ],
)
def test_permissions_of_another_form_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        with_rules(text, RULES, "settings.json")
