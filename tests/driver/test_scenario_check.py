"""What `harness scenario check` finds, one fault each, with its line."""

import json
from pathlib import Path

import pytest
import yaml
from toy_project import builder, oracle, tool, write_scenario

from harness.contract.roles import ROLES, TOOL_PREFIX
from harness.driver.scenario_check import Checked, Reached, check_scenario
from harness.driver.tools.table import EXPERIMENT_TOOLS, tool_of

OPENING = tool("open", f"{TOOL_PREFIX}open_experiment", hypothesis="h", rationale="r")
START = tool("start", f"{TOOL_PREFIX}start_run")
DONE = {"text": "Done."}


def checked(tmp_path: Path, *sessions: dict, so_far: Reached | None = None) -> Checked:
    apart = json.loads(json.dumps(sessions))  # no alias where a turn is used twice
    return check_scenario(write_scenario(tmp_path / "s.yaml", *apart), so_far or Reached())


def one(*turns: dict, role: str = "model-builder", **more: object) -> dict:
    return {"role": role, "turns": list(turns), **more}


def test_what_a_loop_plays_is_found_right(tmp_path: Path) -> None:
    found = checked(tmp_path, builder(1), oracle(1), builder(2), oracle(2))
    assert (found.problems, found.notes, found.sessions) == ((), (), 4)


@pytest.mark.parametrize(
    ("session", "code", "words"),
    [
        (one(DONE, role="post-trainer"), "role_unknown", "expected one of research-scout"),
        (one(DONE, role="data-engineer"), "never_reached", "its experiment is 0"),
        (
            one({"tools": [tool("x", f"{TOOL_PREFIX}open_experimnt")]}, DONE),
            "tool_unknown",
            "model-builder has Bash",
        ),
        (
            one({"tools": [tool("open", f"{TOOL_PREFIX}open_experiment", hypothesis="h")]}, DONE),
            "arguments",
            "'rationale' is a required property",
        ),
        (
            one({"tools": [OPENING, tool("s", f"{TOOL_PREFIX}start_run", experiment=2)]}, DONE),
            "arguments",
            "experiment: 2 is not of type 'string'",
        ),
        (
            one({"tools": [tool("w", "Write", file_path="a.py")]}, DONE),
            "arguments",
            "Write: 'content' is a required property",
        ),
        (
            one({"tools": [OPENING]}, {"tools": [START], "text": "${opened.folder}"}, DONE),
            "reference_unknown",
            "known here: open",
        ),
        (
            one({"tools": [OPENING]}, {"tools": [START], "text": "${open.id}"}, DONE),
            "field_unknown",
            "expected one of experiment, status",
        ),
        (one({"tools": [OPENING]}, {"tools": [START]}), "turn_missing", "end with a turn of text"),
        (one({"tools": [OPENING]}, DONE), "turn_missing", "is reminded of it once"),
        (
            one({"tools": [OPENING, START]}, DONE, {"text": "And more."}),
            "never_reached",
            "this turn is never asked for",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_has_its_line(tmp_path: Path, session: dict, code: str, words: str) -> None:
    found = checked(tmp_path, session, oracle(1))
    about = [problem for problem in found.problems if problem.code == code]
    assert about, found.problems
    assert words in about[0].message
    line = int(about[0].where.rpartition(":")[2])
    first = (tmp_path / "s.yaml").read_text().splitlines()[line - 1]
    assert first.strip(" -"), "the line is one of the session's"
    role = (tmp_path / "s.yaml").read_text().index("role: oracle")
    assert line <= (tmp_path / "s.yaml").read_text()[:role].count("\n")


def test_after_a_reminder_there_is_one_more_turn(tmp_path: Path) -> None:
    reminded = one({"tools": [OPENING]}, DONE, {"tools": [START]}, DONE)
    assert checked(tmp_path, reminded, oracle(1)).problems == ()


def test_what_a_reference_stands_for_is_known_only_when_it_is_played(tmp_path: Path) -> None:
    turns = one(
        {"tools": [OPENING]},
        {"tools": [tool("start", f"{TOOL_PREFIX}start_run", experiment="${open.experiment}")]},
        {
            "tools": [
                tool("wait", f"{TOOL_PREFIX}run_status", wait_seconds="${start.seeds_wanted}")
            ]
        },
        DONE,
    )
    assert checked(tmp_path, turns, oracle(1)).problems == ()


@pytest.mark.parametrize(
    ("sessions", "so_far", "code", "words"),
    [
        ([builder(1)], Reached(), "role_missing", "the loop asks for an oracle"),
        ([builder(2), oracle(2)], Reached(), "never_reached", "opens experiment 1"),
        ([oracle(1)], Reached(), "never_reached", "opens experiment 1"),
        (
            [builder(1), oracle(1), {**builder(1), "attempt": 3}],
            Reached(),
            "never_reached",
            "attempt 2 comes before it",
        ),
        (
            [builder(1), oracle(1), builder(2), oracle(2)],
            Reached(most=1),
            "never_reached",
            "the plan allows 1 experiments",
        ),
        ([{**builder(1), "experiment": "x"}, oracle(1)], Reached(), "never_reached", "from 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sessions_that_the_loop_never_asks_for(
    tmp_path: Path, sessions: list, so_far: Reached, code: str, words: str
) -> None:
    found = checked(tmp_path, *sessions, so_far=so_far)
    assert [problem.code for problem in found.problems].count(code) >= 1, found.problems
    assert any(words in problem.message for problem in found.problems), found.problems


def test_in_a_project_it_goes_on_from_where_the_loop_is(tmp_path: Path) -> None:
    so_far = Reached(experiments=1, most=8, played={("model-builder", "1"): 1})
    assert checked(tmp_path, builder(2), oracle(2), so_far=so_far).problems == ()
    found = checked(tmp_path, builder(1), oracle(1), so_far=so_far)
    assert [note.code for note in found.notes] == ["played_before"]


def test_a_tool_of_another_role_is_told_and_plays(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        builder(1, before=(tool("own", f"{TOOL_PREFIX}record_result", summary="mine"),)),
        oracle(1),
    )
    assert found.problems == ()
    assert [note.code for note in found.notes] == ["tool_of_others"]


def test_a_file_of_another_form_is_named_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump({"sessions": [{"rolle": "oracle", "turns": []}]}))
    found = check_scenario(path, Reached())
    assert {problem.code for problem in found.problems} == {"form"}
    assert any("rolle: unknown key" in problem.message for problem in found.problems)


def test_the_demo_is_right() -> None:
    import harness.demo.run as demo

    found = check_scenario(demo.SCENARIO, Reached())
    assert (found.problems, found.notes) == ((), ())


def test_every_tool_of_the_loop_declares_what_it_answers() -> None:
    loop = {name for role in ROLES if role.step for name in role.mcp_tools}
    assert loop <= set(EXPERIMENT_TOOLS)
    assert [name for name in sorted(loop) if not tool_of(name).answers] == []
