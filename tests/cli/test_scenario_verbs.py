"""`harness scenario new | record | check`, as a person types them."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.ledger.project import open_project
from harness.plans.rehearsal import rehearse
from tests.cli.journey import Again, Answer, Journey

CASE = """\
sessions:
  - role: model-builder
    experiment: 2
    attempt: 4
    turns:
      - text: I open an experiment.
        tools: [{id: open, name: mcp__harness__open_experiment, input: {hypothesis: a tree}}]
      - tools: [{id: train, name: mcp__harness__start_run, input: {experiment: "${open.experiment_id}"}}]
      - text: done
"""
"""As a newcomer wrote it after an example of the documents."""


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("scenario"), ("init",), ("plan", "approve"))


@pytest.fixture
def journey(again: Again) -> Journey:
    return again.journey()


def sessions_of(journey: Journey, name: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((journey.root / name).read_text("utf-8"))
    found: list[dict[str, Any]] = document["sessions"]
    return found


def test_the_smallest_scenario_is_right_and_is_not_written_over(journey: Journey) -> None:
    wrote = journey.harness("scenario", "new", "ci/scenario.yaml")
    assert wrote.exit_code == 0, wrote.stderr
    assert "next: `harness scenario check ci/scenario.yaml`" in wrote.stdout
    checked = journey.harness("scenario", "check", "ci/scenario.yaml", "--json")
    assert (checked.exit_code, checked.document["problems"]) == (0, [])
    assert (checked.document["sessions"], checked.document["turns"]) == (2, 7)
    (_, oracle) = sessions_of(journey, "ci/scenario.yaml")
    (record,) = oracle["turns"][1]["tools"]
    assert record["input"]["claims"] == {"accuracy": "${report.claim}"}
    refused = journey.harness("scenario", "new", "ci/scenario.yaml", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "file_exists")
    assert journey.harness("scenario", "new", "ci/scenario.yaml", "--replace").exit_code == 0
    outside = journey.harness("scenario", "new", "../s.yaml", "--json")
    assert outside.document["error"]["code"] == "outside_project"


def test_writing_one_is_a_persons_and_checking_is_everybodys(journey: Journey) -> None:
    journey.harness("scenario", "new", "s.yaml")
    for verb in ("new", "record"):
        refused = journey.harness("scenario", verb, "t.yaml", "--json", CLAUDECODE="1")
        assert (refused.exit_code, refused.document["error"]["code"]) == (2, "human_verb")
    assert journey.harness("scenario", "check", "s.yaml", CLAUDECODE="1").exit_code == 0


def said(journey: Journey, *words: str) -> tuple[Answer, list[str]]:
    answer = journey.harness(*words)
    return answer, [line for line in answer.stderr.splitlines() if ".yaml:" in line]


def test_a_wrong_one_is_refused_line_by_line_before_anything_runs(journey: Journey) -> None:
    (journey.root / "s.yaml").write_text(CASE, "utf-8")
    checked, lines = said(journey, "scenario", "check", "s.yaml")
    assert checked.exit_code == 2
    for line, code, words in (
        (7, "arguments", "'rationale' is a required property"),
        (8, "field_unknown", "answers no 'experiment_id'; expected one of experiment,"),
        (2, "never_reached", "opens experiment 1"),
    ):
        assert any(f"s.yaml:{line}: [{code}]" in text and words in text for text in lines), lines
    played, same = said(journey, "run", "--scenario", "s.yaml")
    assert (played.exit_code, same) == (2, lines)
    listed = journey.harness("experiment", "list", "--json").document
    assert listed["experiments"] == []
    assert not any((journey.state / "sessions").glob("*"))


def test_outside_a_project_it_is_checked_as_a_fresh_clone_plays_it(
    journey: Journey, tmp_path: Path
) -> None:
    journey.harness("scenario", "new", "s.yaml")
    shutil.copy(journey.root / "s.yaml", tmp_path)
    other = Journey(tmp_path, journey.home)
    assert other.harness("scenario", "check", "s.yaml").exit_code == 0
    absent = other.harness("scenario", "check", "t.yaml", "--json")
    assert absent.exit_code == 2
    assert "cannot be read" in absent.document["error"]["message"]


def transcript(journey: Journey, path: Path) -> None:
    """Of a session that read a key, opened an experiment and wrote below the project."""
    root, session = str(journey.root), str(uuid.uuid4())
    key = "sk-ant-" + "a1" * 20
    answer = {
        "experiment": "exp-0007",
        "project": root,
        "folder": f"{root}/.harness/experiments/exp-0007",
    }
    opening = {"hypothesis": "h", "rationale": "r"}
    turns: list[tuple[str, list[Any]]] = [
        ("assistant", [use("a", "Read", file_path=f"{root}/train.py")]),
        ("user", [result("a", f"API_KEY={key}")]),
        ("assistant", [use("b", "mcp__harness__open_experiment", **opening)]),
        ("user", [result("b", json.dumps(answer))]),
        (
            "assistant",
            [
                {"type": "text", "text": f"The key is {key}, of exp-0007."},
                use("c", "Write", file_path=f"{answer['folder']}/next.md", content="$${a.b}"),
                use("d", "mcp__harness__start_run", experiment="exp-0007"),
            ],
        ),
        ("user", [result("c", "ok"), result("d", "{}")]),
        ("assistant", [{"type": "text", "text": "Trained."}]),
    ]
    rows = [
        {
            "type": kind,
            "sessionId": session,
            "uuid": str(uuid.uuid4()),
            "message": {"role": kind, "id": f"m{number}", "content": content},
        }
        for number, (kind, content) in enumerate(turns)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", "utf-8")


def use(identifier: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{identifier}", "name": name, "input": given}


def result(identifier: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{identifier}", "content": text}


def test_a_transcript_becomes_a_scenario_without_its_secrets_and_paths(
    journey: Journey, tmp_path: Path
) -> None:
    transcript(journey, tmp_path / "session.jsonl")
    wrote = journey.harness(
        "scenario", "record", "s.yaml", "--from", str(tmp_path / "session.jsonl"), "--json"
    )
    assert wrote.exit_code == 0, wrote.stderr
    codes = [problem["code"] for problem in wrote.document["problems"]]
    assert codes == ["role_missing"], "an oracle is to be added"
    text = (journey.root / "s.yaml").read_text("utf-8")
    assert "sk-ant" not in text
    assert str(journey.root) not in text
    assert "exp-0007" not in text
    (session,) = sessions_of(journey, "s.yaml")
    reading, _, writing, end = session["turns"]
    assert reading["tools"][0]["input"] == {"file_path": "train.py"}
    assert writing["text"] == "The key is [secret], of ${turn-2-1.experiment}."
    write, start = writing["tools"]
    assert write["input"]["file_path"] == "${turn-2-1.folder}/next.md"
    assert write["input"]["content"] == "$$${a.b}", "text that looks like a reference stays text"
    assert start["input"] == {"experiment": "${turn-2-1.experiment}"}
    assert end == {"text": "Trained."}


def test_without_a_session_there_is_nothing_to_record(journey: Journey) -> None:
    refused = journey.harness("scenario", "record", "s.yaml", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "no_session")
    assert not (journey.root / "s.yaml").exists()


@pytest.mark.parametrize("verb", ["run", "continue"])
def test_no_live_loop_runs_under_the_plan_of_a_rehearsal(journey: Journey, verb: str) -> None:
    with open_project(journey.root, journey.environment()) as project:
        rehearse(project)
    refused = journey.harness(verb, "--json")
    error = refused.document["error"]
    assert (refused.exit_code, error["code"]) == (2, "rehearsal")
    assert "`harness plan approve plan.md`" in error["hint"]
    assert journey.harness("plan", "approve").exit_code == 0
    again = journey.harness(verb, "--json")
    assert again.document["error"]["code"] != "rehearsal"
