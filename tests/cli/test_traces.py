"""`harness traces` as a person types it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.files import sha256_file
from tests.cli.journey import Answer, Journey
from tests.posttrain import programs
from tests.traces.rows import Transcript

pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
COLLECTED = Path(__file__).parents[1] / "traces/inputs/collected"


@pytest.fixture
def tuning(tmp_path: Path) -> Journey:
    (tmp_path / "home").mkdir()
    return Journey(programs.make_root(tmp_path / "tuning"), tmp_path / "home")


def typed(journey: Journey, *words: str | Path, code: int = 0) -> Answer:
    done = journey.harness(*map(str, words))
    assert done.exit_code == code, done.stdout + done.stderr
    return done


def asked(journey: Journey, *words: str | Path) -> dict[str, Any]:
    return typed(journey, *words, "--json").document


def session(journey: Journey, name: str, *, priced: bool = True) -> Path:
    """A session of the project, where Claude Code keeps it."""
    folder = journey.home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(journey.root))
    main = Transcript(folder / f"{name}.jsonl", session=name, cwd=journey.root)
    main.prompt("train it")
    main.call("t1", "Bash", command="harness train")
    main.rows[-1]["message"]["model"] = "claude-opus-5-5" if priced else "unknown-1"
    main.path.write_text("".join(json.dumps(row) + "\n" for row in main.rows))
    main.result("t1", "boom", error=True)
    return main.path


def test_the_sessions_of_the_project_are_listed_and_one_is_shown(tuning: Journey):
    session(tuning, "aaaa-1")
    session(tuning, "bbbb-2", priced=False)
    listed = asked(tuning, "traces", "show")
    assert [row["session"] for row in listed["sessions"]] == ["aaaa-1", "bbbb-2"]
    (shown,) = asked(tuning, "traces", "show", "aaaa")["sessions"]
    assert (shown["prompts"], shown["answers"], shown["seconds"]) == (1, 1, 2.0)
    assert shown["tools"] == {"Bash": {"calls": 1, "errors": 1}}
    assert shown["models"]["claude-opus-5-5"]["usd"] == pytest.approx(20 / 1e6)
    text = typed(tuning, "traces", "show", "bbbb", "--messages").stdout
    assert "price unknown" in text
    assert "Bash(command=harness train)" in text
    assert "no session and no file" in typed(tuning, "traces", "show", "zzzz", code=2).stderr


def test_a_folder_without_a_session_says_so(tuning: Journey):
    (tuning.root / "empty").mkdir()
    assert typed(tuning, "traces", "show", "empty").stdout == "no sessions found\n"


def test_a_folder_of_other_peoples_transcripts_is_shown(tuning: Journey):
    shown = asked(tuning, "traces", "show", COLLECTED)
    agents = {agent["id"]: agent for row in shown["sessions"] for agent in row["subagents"]}
    assert agents["aae161c"]["answers"] == 21
    assert {agent["kind"] for agent in agents.values()} == {
        "task",
        "compaction",
        "prompt suggestion",
    }


def test_states_are_written_and_one_session_is_withdrawn_again(tuning: Journey):
    session(tuning, "aaaa-1")
    other = session(tuning, "bbbb-2222")
    told = asked(tuning, "traces", "ingest", other.parent, "-o", "rows.jsonl", "--licence", "MIT")
    assert (told["rows"], told["sessions"]) == (2, ["aaaa-1", "bbbb-2222"])
    assert (
        "nothing is overwritten"
        in typed(tuning, "traces", "ingest", other, "-o", "rows.jsonl", code=2).stderr
    )
    before = sha256_file(tuning.root / "rows.jsonl")
    dry = asked(tuning, "traces", "withdraw", "aaaa-1", "rows.jsonl", "--dry-run")
    assert dry["datasets"][0]["rows"] == 1
    assert sha256_file(tuning.root / "rows.jsonl") == before
    asked(tuning, "traces", "withdraw", "aaaa-1", "rows.jsonl")
    (row,) = map(json.loads, (tuning.root / "rows.jsonl").read_text().splitlines())
    assert row["session"] == "bbbb-2222"
    manifest = json.loads((tuning.root / "rows.jsonl.manifest.json").read_text())
    assert (manifest["sessions"], manifest["rows"]) == (["bbbb-2222"], 1)
    assert "aaaa-1" not in json.dumps(manifest)
    assert manifest["withdrawn"][0]["from_sha256"] == before
    again = typed(tuning, "traces", "withdraw", "aaaa-1", "rows.jsonl", code=1)
    assert "rows.jsonl holds no row of aaaa-1" in again.stdout
    asked(tuning, "traces", "withdraw", "bbbb-222", "rows.jsonl")  # the beginning of an id
    assert (tuning.root / "rows.jsonl").read_bytes() == b""


def test_the_beginning_of_several_ids_withdraws_nothing(tuning: Journey):
    session(tuning, "aaaa-1")
    folder = session(tuning, "aaaa-2").parent
    asked(tuning, "traces", "ingest", folder, "-o", "rows.jsonl")
    before = sha256_file(tuning.root / "rows.jsonl")
    refused = typed(tuning, "traces", "withdraw", "aaaa", "rows.jsonl", code=2)
    assert "aaaa begins the ids of 2 sessions: aaaa-1, aaaa-2" in refused.stderr
    assert sha256_file(tuning.root / "rows.jsonl") == before


def test_strict_refuses_and_leaves_nothing(tuning: Journey):
    path = session(tuning, "aaaa-1")
    path.write_text(path.read_text().replace("train it", "mail me: ada@example.com"))
    refused = typed(tuning, "traces", "ingest", path, "-o", "rows.jsonl", "--strict", code=2)
    assert "e-mail address (1)" in refused.stderr
    assert not (tuning.root / "rows.jsonl").exists()


def test_a_file_without_a_state_is_refused(tuning: Journey):
    (tuning.root / "loss.jsonl").write_text('{"loss": 1}\n')
    refused = typed(tuning, "traces", "ingest", "loss.jsonl", "-o", "rows.jsonl", code=2)
    assert "loss.jsonl is foreign" in refused.stderr


def mended(journey: Journey, name: str) -> None:
    """A session in which a call failed and the next one did not."""
    main = Transcript(journey.root / f"sessions/{name}.jsonl", session=name, cwd=journey.root)
    main.prompt(f"run the tests of part {name}")
    main.call(f"{name}-1", "Bash", command="pytset")
    main.result(f"{name}-1", f"no program pytset for {name}", error=True)
    main.call(f"{name}-2", "Bash", command=f"pytest {name}")
    main.result(f"{name}-2", "3 passed")


def test_from_transcripts_to_a_specification_and_back(tuning: Journey):
    for number in range(6):
        mended(tuning, f"part{number}")
    typed(tuning, "traces", "ingest", "sessions", "--licence", "MIT", "--consent")
    told = asked(tuning, "traces", "rows", "traces.jsonl", "-o", "pairs.jsonl", "--text")
    assert (told["rows"], told["reasons"]) == (6, {"mended call": 6})
    card = (tuning.root / "pairs.card.md").read_text()
    assert "license: mit" in card
    assert "| consent given | 6 |" in card
    asked(tuning, "traces", "rows", "traces.jsonl", "-o", "split.jsonl", "--held-out", "0.5")
    few = typed(tuning, "traces", "rows", "traces.jsonl", "-o", "few.jsonl", "--held-out", "0.5")
    assert "a benchmark needs 20 held-out rows; 6 sessions gave" in few.stdout
    parts = [
        json.loads((tuning.root / f"split.{name}.manifest.json").read_text())["sessions"]
        for name in ("jsonl", "held_out.jsonl")
    ]
    assert sorted(parts[0] + parts[1]) == [f"part{number}" for number in range(6)]
    assert parts[0]
    assert parts[1]
    asked(tuning, "traces", "withdraw", parts[1][0], "split.held_out.jsonl")
    assert not any(
        parts[1][0] in path.read_text() for path in tuning.root.glob("split.*") if path.is_file()
    )
    assert "A session was withdrawn at" in (tuning.root / "split.card.md").read_text()
    (tuning.root / "judge.py").write_text(programs.EVALUATOR)
    spec = (
        *("posttrain", "spec", "--backend", "command", "--mode", "orpo"),
        *("--trainer", '["python", "trainer.py"]', "--model", programs.MODEL),
        *("--profile", "local-reader", "--benchmark", "held_out.jsonl"),
        *("--evaluator", '["python", "judge.py"]', "--dataset", "pairs.jsonl"),
    )
    made = asked(tuning, *spec)
    exported = asked(tuning, "posttrain", "export", "pairs.jsonl", "public.jsonl")
    assert (exported["rows"], exported["left_out"]) == (6, [])
    (tuning.root / "pairs.answers.jsonl").write_text("")
    gone = asked(tuning, "traces", "withdraw", "part3", "pairs.jsonl", "public.jsonl")
    assert gone["answers"] == [str(Path("pairs.answers.jsonl"))]
    once_more = asked(tuning, "traces", "withdraw", "part3", "pairs.jsonl", "public.jsonl")
    assert [one["experiment"] for one in once_more["programs"]] == [made["experiment"]]
    never = typed(tuning, "traces", "withdraw", "part9", "pairs.jsonl", code=1)
    assert "used it" not in never.stdout
    assert [one["rows"] for one in gone["datasets"]] == [1, 1]
    assert [one["experiment"] for one in gone["programs"]] == [made["experiment"]]
    assert "part3" not in (tuning.root / "pairs.jsonl").read_text()
    rewritten = tuning.root / "pairs.jsonl"
    rewritten.write_text(rewritten.read_text() + "\n")
    (tuning.root / "pairs.jsonl.manifest.json").unlink()
    unsure = asked(tuning, "traces", "withdraw", "part1", "pairs.jsonl")
    assert (unsure["programs"], unsure["unsure"]) == ([], [made["experiment"]])
