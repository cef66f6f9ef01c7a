"""Transcripts of Claude Code as states: what the agent knew, did and got, each once."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.traces.book import Book
from harness.traces.forms import claude_code
from harness.traces.ingest import Reading, Terms, ingest, sources
from harness.traces.redaction import Redactor
from harness.traces.states import State, replayed
from harness.traces.tally import Tally
from tests.traces.rows import MODEL, Transcript

INPUTS = Path(__file__).parent / "inputs"
COLLECTED = INPUTS / "collected"
SHARED = Path(__file__).parents[3] / "shared" / "cases" / "traces"
NAMES = ["first ask", "second ask"]


def read(path: Path) -> tuple[list[State], Tally]:
    tally = Tally(path.name, form="claude-code")
    return list(claude_code.read(path, tally, Book(files=1))), tally


def of_files(*paths: Path) -> tuple[list[State], Reading]:
    reading = Reading(sources(paths))
    return [state for _, _, state in reading.states()], reading


def oracle(folder: Path) -> list[dict[str, str]]:
    with (folder / "oracle.tsv").open() as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def answer(main: Transcript, identifier: str, *blocks: dict[str, Any], **more: Any) -> None:
    message = {
        "id": identifier,
        "model": MODEL,
        "content": list(blocks),
        "usage": {"output_tokens": 5},
    }
    main.row("assistant", message=message, **more)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("row", oracle(COLLECTED), ids=lambda row: row["file"])
def test_every_count_of_a_collected_transcript_is_another_programs(row: dict[str, str]):
    states, tally = read(COLLECTED / row["file"])
    counted = tally.plain()
    assert {name: str(counted[name]) for name in row} == row
    assert len({state.id for state in states}) == len(states)
    assert sum(state.usage.get("output_tokens", 0) for state in states) == int(
        row["out_tokens_last_wins"]
    )


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the collected transcripts are not beside this repository"
)
@pytest.mark.parametrize("row", oracle(SHARED) if SHARED.is_dir() else [], ids=lambda r: r["file"])
def test_every_count_of_a_large_transcript_is_another_programs(row: dict[str, str]):
    counted = read(SHARED / row["file"])[1].plain()
    assert {name: str(counted[name]) for name in row} == row


def test_a_state_is_what_was_known_done_and_got(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("list it")
    thinking = {"type": "thinking", "thinking": "ls will do", "signature": "long"}
    answer(main, "m1", thinking)
    main.call("m1-call", "Bash", command="ls")
    main.rows[-1]["message"]["id"] = "m1"
    write(main)
    main.result("m1-call", "a b", error=True)
    main.prompt("no, the other folder")
    answer(main, "m2", text("sorry"))
    first, second = read(main.path)[0]
    assert first.added == [{"role": "user", "content": "list it", "kind": "prompt"}]
    assert [block["type"] for block in first.action] == ["thinking", "tool_use"]
    assert first.action[0] == {"type": "thinking", "thinking": "ls will do"}
    assert [block["type"] for block in replayed(first.action)] == ["tool_use"]
    assert first.results == [{"call": "m1-call", "is_error": True, "content": "a b"}]
    assert first.outcome == {"feedback": "no, the other folder", "then": "prompt", "errors": 1}
    assert (second.after, second.number, second.outcome) == (first.id, 1, {"then": "end"})
    assert second.added[0]["content"] == "no, the other folder"


def write(main: Transcript) -> None:
    main.path.write_text("".join(json.dumps(row) + "\n" for row in main.rows))


def test_case_42_the_last_usage_of_an_answer_counts():
    states, tally = read(INPUTS / "case-42/stream.jsonl")
    assert [state.usage["output_tokens"] for state in states] == [159, 7]
    assert tally.out_tokens_last_wins == 166


def test_case_43_a_compaction_loses_nothing_and_a_replayed_row_counts_once():
    states, tally = read(INPUTS / "case-43/compact.jsonl")
    prompts = [m["content"] for s in states for m in s.added if m["kind"] == "prompt"]
    assert prompts == NAMES
    assert [state.compacted for state in states] == [False, True]
    assert states[1].after == states[0].id
    assert [m["kind"] for m in states[1].added] == ["summary", "prompt"]
    states, tally = read(INPUTS / "case-43/compact_twice_replayed.jsonl")
    assert (len(states), tally.compact_boundaries) == (1, 2)
    assert tally.repeated > 0


def test_case_44_a_subagent_is_joined_to_its_call():
    states, reading = of_files(INPUTS / "case-44")
    agents = {s.thread.name: s.thread for s in states if s.thread.name != "main"}
    assert {thread.session for thread in agents.values()} == {"S"}
    assert {name: thread.kind for name, thread in agents.items()} == {"ag1": "task"}
    assert (agents["ag1"].call, agents["ag1"].agent_type) == ("toolu_T", "x")
    assert sum(state.usage["output_tokens"] for state in states) == 54
    assert reading.book.sessions["S"].prompts == 1


def test_a_fork_and_a_copy_count_once_and_go_on_after_what_they_copied(tmp_path: Path):
    main = Transcript(tmp_path / "a.jsonl", session="a", cwd="/p")
    for number in range(2):
        main.prompt(f"ask {number}")
        answer(main, f"msg_{number:030}", text(f"said {number}"))
    number_rows(main.rows)
    write(main)
    fork = [row | {"sessionId": "b"} for row in main.rows]
    for row in fork:
        row["forkedFrom"] = {"sessionId": "a", "messageUuid": row["uuid"]}
        row["uuid"] = row["uuid"].replace("0000", "ffff", 1)
    other = Transcript(tmp_path / "b.jsonl", session="b", cwd="/p")
    other.rows = [*fork]
    other.prompt("another way")
    answer(other, "msg_" + "9" * 30, text("done"))
    write(other)
    alone, _ = of_files(other.path)
    assert [state.forked_from for state in alone] == ["a", "a", None]
    (tmp_path / "copy.jsonl").write_bytes(main.path.read_bytes())
    states, reading = of_files(tmp_path)
    assert [state.action[0]["text"] for state in states] == ["said 0", "said 1", "done"]
    assert states[2].after == states[1].id
    assert [state.forked_from for state in states] == [None] * 3
    assert [message["content"] for message in states[2].added] == ["another way"]
    assert {name: notes.prompts for name, notes in reading.book.sessions.items()} == {
        "a": 2,
        "b": 1,
    }


def number_rows(rows: list[dict[str, Any]]) -> None:
    """Uuids as Claude Code makes them."""
    for number, row in enumerate(rows):
        row["uuid"] = f"00000000-0000-4000-8000-{number:012}"


@pytest.mark.parametrize("uuid", ["", "x", None, 7, "00000000-0000-0000-0000-000000000000"])
def test_a_row_whose_uuid_is_unusable_shadows_no_good_one(tmp_path: Path, uuid: Any):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    for words in ("one", "two"):
        main.prompt(words)
        answer(main, f"m-{words}", text(words))
    for row in main.rows:
        row["uuid"] = uuid
    write(main)
    states, tally = read(main.path)
    assert [state.action[0]["text"] for state in states] == ["one", "two"]
    assert tally.human_prompts == 2


def test_a_broken_row_shadows_no_good_one_with_its_uuid(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.row("user", message=None)
    main.row("progress")
    main.prompt("good")
    answer(main, "m", text("yes"))
    for row in main.rows[:3]:
        row["uuid"] = "00000000-0000-4000-8000-000000000001"
    write(main)
    (state,) = read(main.path)[0]
    assert [message["content"] for message in state.added] == ["good"]


def test_glued_torn_foreign_and_empty_files_are_named(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("one")
    answer(main, "m", text("yes"))
    one, two = main.path.read_text().splitlines()
    for name, held in {
        "glued": f"{one}{two}\n",
        "torn": f"{one}\n{two[:-9]}",
        "damaged": f"{one[:-9]}\n{two}\n",
        "empty": "",
        "foreign": '{"loss": 1}\n',
    }.items():
        (tmp_path / f"{name}.jsonl").write_text(held)
    main.path.unlink()
    reading = of_files(tmp_path)[1]
    verdicts = {Path(tally.file).stem: tally.verdict for tally in reading.tallies}
    assert verdicts == {name: name for name in verdicts}
    assert len(verdicts) == 5


def test_images_errors_of_the_service_and_hooks_are_told(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 4_000}}
    main.row("user", message={"role": "user", "content": [text("look"), image]})
    answer(main, "m", text("yes"))
    main.row("system", subtype="api_error")
    failed = {"id": "e", "model": "<synthetic>", "content": [text("API Error")]}
    main.row("assistant", message=failed, isApiErrorMessage=True)
    main.row("attachment", attachment={"type": "hook_blocking_error"})
    said = [{"content": "<system-reminder>be brief</system-reminder>"}]
    main.row("attachment", attachment={"type": "x"}, rendered=said)
    main.row("system", subtype="microcompact_boundary")
    answer(main, "n", text("again"))
    (state, last), tally = read(main.path)
    assert state.added[0]["content"][1] == {"type": "image", "bytes": 3_000}
    assert state.outcome == {"api_errors": 1, "blocked_by_hook": 1, "then": "answer"}
    assert [message["kind"] for message in last.added] == ["note"]
    counts = (tally.images, tally.api_errors, tally.hooks, tally.microcompactions)
    assert counts == (1, 2, {"hook_blocking_error": 1}, 1)


def test_side_conversations_in_the_main_file_are_threads_of_their_own(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("mine")
    main.prompt("to an agent", isSidechain=True, parentUuid=None)
    answer(main, "side", text("of the agent"), isSidechain=True)
    answer(main, "m", text("of the main one"))
    states = {state.thread.name[:9]: state for state in read(main.path)[0]}
    assert [message["kind"] for message in states["sidechain"].added] == ["instruction"]
    assert [message["content"] for message in states["main"].added] == ["mine"]


def test_a_longer_line_than_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module in ("file_lines", "forms.claude_code"):
        monkeypatch.setattr(f"harness.traces.{module}.LONGEST", 1_000)
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("x" * 5_000)
    main.prompt("short")
    tally = read(main.path)[1]
    assert (tally.lines, tally.rows, tally.bad, tally.human_prompts) == (2, 1, 1, 1)
    assert "longer than" in tally.problems[0]


@pytest.mark.parametrize("levels", [240, 400, 1_000, 3_000])
def test_a_row_that_nests_too_deep_to_be_written_is_named_and_left_out(
    tmp_path: Path, levels: int
):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    for words in ("one", "two"):
        main.prompt(words)
        answer(main, f"m-{words}", text(words))
    write(main)
    deep = '{"a":' * levels + "1" + "}" * levels
    row = '{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":"d","content":[%s]}}'
    block = f'{{"type":"tool_use","id":"t","name":"x","input":{deep}}}'
    beside = tmp_path / "messages.jsonl"
    beside.write_text(f'{{"role":"user","content":"x","metadata":{deep}}}')
    with main.path.open("a") as stream:
        stream.write(row % block + "\n")
    out = tmp_path / "out" / "states.jsonl"
    manifest = ingest(
        sources([tmp_path]), out, redactor=Redactor(scan=False), terms=Terms(), outcomes={}
    )
    assert manifest["rows"] == 2
    told = {Path(file["file"]).name: file for file in manifest["files"]}
    assert (told["s.jsonl"]["verdict"], told["s.jsonl"]["bad"]) == ("damaged", 1)
    assert "line 5" in told["s.jsonl"]["problems"][0]
    assert told["messages.jsonl"]["verdict"] == "foreign"


def test_a_copy_with_other_uuids_counts_once_by_the_ids_of_its_answers(tmp_path: Path):
    main = Transcript(tmp_path / "a.jsonl", session="a", cwd="/p")
    main.prompt("ask")
    answer(main, "msg_" + "1" * 30, text("said"))
    number_rows(main.rows)
    write(main)
    other = Transcript(tmp_path / "b.jsonl", session="b", cwd="/p")
    other.rows = [
        row | {"sessionId": "b", "uuid": row["uuid"].replace("0000", "eeee", 1)}
        for row in main.rows
    ]
    other.prompt("more")
    answer(other, "msg_" + "2" * 30, text("well"))
    write(other)
    states, reading = of_files(tmp_path)
    assert [state.action[0]["text"] for state in states] == ["said", "well"]
    assert states[1].after == states[0].id
    assert [notes.prompts for notes in reading.book.sessions.values()] == [1, 1]


def test_two_sessions_that_ask_the_same_at_the_same_time_are_two(tmp_path: Path):
    for name in ("a", "b"):
        main = Transcript(tmp_path / f"{name}.jsonl", session=name, cwd="/p")
        main.prompt("ask")
        answer(main, "m1", text("said"))
    states, reading = of_files(tmp_path)
    assert len({state.id for state in states}) == 2
    assert [notes.prompts for notes in reading.book.sessions.values()] == [1, 1]


def test_a_copy_without_any_id_counts_once(tmp_path: Path):
    main = Transcript(tmp_path / "a.jsonl", session="a", cwd="/p")
    main.prompt("ask")
    answer(main, "m1", text("said"))
    for row in main.rows:
        row["uuid"] = None
    write(main)
    (tmp_path / "copy.jsonl").write_bytes(main.path.read_bytes())
    assert len(of_files(tmp_path)[0]) == 1


def test_one_file_brings_its_subagents_wherever_they_lie():
    states, _ = of_files(INPUTS / "case-44/S.jsonl")
    assert {state.thread.name for state in states} >= {"main", "ag1"}
    named = [source.name for source in sources([INPUTS / "case-44/S.jsonl"])]
    assert "agent-warm.jsonl" in named


@pytest.mark.parametrize("odd", [b'"NaN": NaN', b'"x": "\\ud800"', b'"x": "\xe9"'])
def test_a_row_that_is_no_strict_json_is_a_row(tmp_path: Path, odd: bytes):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("one")
    held = main.path.read_bytes().replace(b'"isSidechain": false', odd)
    assert odd in held
    main.path.write_bytes(held)
    tally = read(main.path)[1]
    assert (tally.rows, tally.bad, tally.human_prompts, tally.verdict) == (1, 0, 1, "read")


def test_of_two_commands_that_write_one_file_the_first_keeps_it(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("one")
    answer(main, "m", text("yes"))
    write(main)
    out = tmp_path / "out/states.jsonl"
    left = out.with_name(".states.jsonl.0123abcd.tmp")  # of one that was killed
    out.parent.mkdir()
    left.write_text("half")

    class Meanwhile(Redactor):
        def value(self, value: Any) -> Any:
            out.write_text("of the other one")
            return super().value(value)

    with pytest.raises(UsageError, match=r"states\.jsonl exists"):
        ingest(
            sources([main.path]), out, redactor=Meanwhile(scan=False), terms=Terms(), outcomes={}
        )
    assert {path.name: path.read_text() for path in out.parent.iterdir()} == {
        out.name: "of the other one"
    }
