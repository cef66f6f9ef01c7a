"""Scenario files: what is read, and what is said about mistakes."""

import pytest

from harness.errors import UsageError
from harness.model_gateway.scenario import read_scenario
from tests.model_gateway.kept import parse_scenario

GOOD = """
sessions:
  - role: model-builder
    experiment: 1
    attempt: 2
    turns:
      - text: on
        tools: [{id: open, name: Bash, input: {n: 1e-3, flag: true, words: "1"}}]
      - {text: done, expect: one}
"""


def test_a_scenario_is_read():
    session = parse_scenario(GOOD, where="s.yaml").session("model-builder", "1", "2")
    assert session.turns[0].text == "on"
    assert session.turns[0].tools[0].input == {"n": 0.001, "flag": True, "words": "1"}
    assert session.turns[1].expect == ("one",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("role: model-builder", "rolle: x"),
            ["s.yaml:3: sessions.0.role: missing", "sessions.0.rolle: unknown key"],
        ),
        (
            ("name: Bash", "name: 5"),
            ["s.yaml:8: sessions.0.turns.0.tools.0.name: found 5", "valid string"],
        ),
        (
            ("id: open", "id: a.b"),
            ["s.yaml:8: sessions.0.turns.0.tools.0.id: found 'a.b'", "expected a letter"],
        ),
        (
            ("{text: done, expect: one}", "{expect: one}"),
            ["s.yaml:9: sessions.0.turns.1:", "expected text, tools or both"],
        ),
        (
            ("{text: done, expect: one}", "tools: [{id: open, name: B}]"),
            ["sessions.0: found", "the tool id 'open' is used twice"],
        ),
        (("attempt: 2", "attempt: true"), ["s.yaml:5: sessions.0.attempt: found True"]),
    ],
)
def test_mistakes_are_named_with_line_and_field(change, words):
    with pytest.raises(UsageError) as raised:
        parse_scenario(GOOD.replace(*change), where="s.yaml")
    for word in words:
        assert word in raised.value.message
    assert raised.value.code == "scenario_invalid"


def test_two_sessions_for_one_place_are_refused():
    twice = (
        "sessions: [{role: a, turns: [{text: x}]}, {role: a, experiment: 1, turns: [{text: y}]}]"
    )
    with pytest.raises(UsageError, match="two sessions for role a, experiment 1, attempt 1"):
        parse_scenario(twice, where="s.yaml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent\.yaml cannot be read"):
        read_scenario(tmp_path / "absent.yaml")
    (tmp_path / "s.yaml").write_text(GOOD)
    assert len(read_scenario(tmp_path / "s.yaml").sessions) == 1
