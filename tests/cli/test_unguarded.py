"""A command below a session in which no hook of the project runs says so, and answers as ever."""

import json
from pathlib import Path

import pytest

from tests.cli.journey import Journey, make_project

INSIDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "5b0c"}
SAID = "no hook of this project guards this session"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("unguarded")
    journey = make_project(base / "project", base / "home")
    assert journey.harness("init").exit_code == 0
    (journey.root / "sub").mkdir()
    return journey


def test_started_below_the_project(installed: Journey) -> None:
    answer = installed.harness("status", "--json", cwd=installed.root / "sub", **INSIDE)
    assert answer.exit_code == 0
    assert SAID in answer.stderr
    assert f"starts `claude` in {installed.root}" in answer.stderr
    assert answer.document["project"]
    changing = installed.harness("render", **INSIDE)
    assert SAID in changing.stderr


def test_a_session_whose_hooks_ran_hears_nothing_of_it(installed: Journey) -> None:
    folder = installed.root / ".harness/receipts"
    folder.mkdir(exist_ok=True)
    line = {"session": "9a", "event": "SessionStart"}
    Path(folder / "9a.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    guarded = installed.harness("status", **{**INSIDE, "CLAUDE_CODE_SESSION_ID": "9a"})
    assert (guarded.exit_code, guarded.stderr) == (0, "")


def test_a_person_hears_nothing_of_it(installed: Journey) -> None:
    assert installed.harness("status").stderr == ""


def test_where_hooks_are_not_wanted_it_is_not_said(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init", "--hooks", "none").exit_code == 0
    assert SAID not in journey.harness("status", **INSIDE).stderr
