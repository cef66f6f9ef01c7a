"""Training rows of states: what is paired, hinted and labelled, and in what context."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.domain.row_forms import one_form
from harness.errors import UsageError
from harness.traces.contexts import StateFile, said
from harness.traces.dataset import part_of, write_dataset
from harness.traces.training_rows import Kind, Made, Settings, training_rows

Row = dict[str, Any]


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def call(name: str = "Bash", **given: Any) -> Row:
    return {"type": "tool_use", "id": f"t-{name}-{given}", "name": name, "input": given}


def state(identifier: str, after: str | None, *action: Row, **more: Any) -> Row:
    made: Row = {
        "id": identifier,
        "session": "s",
        "thread": "main",
        "kind": "main",
        "after": after,
        "compacted": False,
        "added": [],
        "action": list(action),
        "results": [],
        "outcome": {},
        "model": "m-1",
        "provenance": {"source": "s.jsonl"},
        "licence": "MIT",
        "consent": True,
    }
    return made | more


def asked(words: str, kind: str = "prompt") -> list[Row]:
    return [{"role": "user", "content": words, "kind": kind}]


def failed(block: Row, told: str) -> Row:
    result = {"call": block["id"], "is_error": True, "content": told}
    return {"results": [result], "outcome": {"errors": 1}}


def judged(status: str) -> Row:
    verdicts = [{"gate": "validation", "verdict": "FAIL", "findings": ["nan_loss"], "at": ""}]
    decisions = [{"kind": "DISCARD", "reason": "It diverged.", "at": ""}]
    told = {"status": status, "verdicts": verdicts, "decisions": decisions}
    return {"outcome": {"experiments": [told]}}


def made_of(
    folder: Path, states: list[Row], kind: Kind = Kind.PAIRS, *, as_text: bool = False
) -> list[Row]:
    path = folder / "states.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in states))
    settings = Settings(kind=kind, text=as_text, budget=8_000)
    return list(training_rows(StateFile(path), settings, Made()))


WRONG, RIGHT = call(command="pytset"), call(command="pytest")
THINKS = {"type": "thinking", "thinking": "run the tests"}
MENDED = [
    state("a", None, THINKS, WRONG, added=asked("test it"), **failed(WRONG, "not found: pytset")),
    state("b", "a", RIGHT),
]
CORRECTED = [
    state(
        "a",
        None,
        text("I delete it."),
        added=asked("tidy up"),
        outcome={"feedback": "No, keep the data."},
    ),
    state("b", "a", text("I keep the data."), added=asked("No, keep the data.")),
]


def test_a_call_that_failed_and_was_mended_is_a_pair_with_the_error_as_the_hint(tmp_path: Path):
    (row,) = made_of(tmp_path, MENDED)
    assert row["prompt"] == [{"role": "user", "content": "test it"}]
    (worse,), (better,) = row["rejected"], row["chosen"]
    assert worse["tool_calls"][0]["function"] == {
        "name": "Bash",
        "arguments": {"command": "pytset"},
    }
    assert better["tool_calls"][0]["function"]["arguments"] == {"command": "pytest"}
    assert worse["reasoning_content"] == "run the tests"
    assert row["hint"] == "not found: pytset"
    assert row["provenance"] == {
        "sessions": ["s"],
        "states": ["a", "b"],
        "sources": ["s.jsonl"],
        "generator": "m-1",
        "reason": "mended call",
    }
    assert (row["licence"], row["consent"]) == ("MIT", True)


def test_a_correction_is_a_pair_of_what_was_done_and_what_was_wanted(tmp_path: Path):
    (row,) = made_of(tmp_path, CORRECTED, as_text=True)
    assert (row["chosen"], row["rejected"]) == ("I keep the data.", "I delete it.")
    assert (row["prompt"], row["hint"]) == ("User: tidy up", "No, keep the data.")


def test_a_prompt_that_corrects_nothing_is_no_pair(tmp_path: Path):
    thanked = [CORRECTED[0] | {"outcome": {"feedback": "Thanks. Now the docs."}}, CORRECTED[1]]
    assert made_of(tmp_path, thanked) == []
    other = [MENDED[0], state("b", "a", call("Read", path="x"))]
    assert made_of(tmp_path, other) == []


def test_a_sibling_that_the_ledger_kept_is_better_than_one_it_did_not(tmp_path: Path):
    lost = state("a", None, text("lr 10"), added=asked("train"), **judged("discarded"))
    kept = state("b", None, text("lr 0.1"), added=asked("train"), **judged("kept"), session="t")
    (row,) = made_of(tmp_path, [lost, kept])
    assert (row["chosen"][0]["content"], row["rejected"][0]["content"]) == ("lr 0.1", "lr 10")
    assert row["provenance"]["sessions"] == ["s", "t"]
    assert "lr 0.1" in row["hint"]
    (hint, alone) = (made_of(tmp_path, states, Kind.HINTS)[0] for states in ([lost, kept], [lost]))
    assert hint["completion"][0]["content"] == "lr 10"
    assert "The gate validation said FAIL: nan_loss." in alone["hint"]
    assert "It diverged." in alone["hint"]


def test_labels_and_completions_follow_what_happened(tmp_path: Path):
    tests = call(command="pytest")
    passed = [{"call": tests["id"], "is_error": False, "content": "== 3 passed in 1 s =="}]
    states = [
        *MENDED,
        state("c", "b", tests, results=passed),
        state("d", "c", text("done"), outcome={"interrupted": True}),
        state("e", "d", text("well")),
        state("w", None, text("x"), added=asked("y"), kind="prompt suggestion"),
    ]
    labels = {row["id"]: row["label"] for row in made_of(tmp_path, states, Kind.KTO)}
    assert labels == {"a-errors": False, "c-tests-passed": True, "d-interrupted": False}
    taken = [row["id"][0] for row in made_of(tmp_path, states, Kind.SFT)]
    assert taken == ["b", "c", "e"]


def test_a_context_is_all_that_led_there_without_thinking(tmp_path: Path):
    states = [*MENDED, state("c", "b", text("done"), added=asked("and?"))]
    row = made_of(tmp_path, states, Kind.SFT)[-1]
    roles = [message["role"] for message in row["prompt"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert "reasoning_content" not in row["prompt"][1]
    assert row["prompt"][2]["content"] == "not found: pytset"
    assert one_form(row)["prompt"] == row["prompt"]


def test_a_long_context_keeps_the_question_and_the_newest(tmp_path: Path):
    path, states = tmp_path / "states.jsonl", [state("0", None, text("x"), added=asked("why?"))]
    states += [state(str(n), str(n - 1), text(f"step {n} " + "y" * 300)) for n in range(1, 20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in states))
    opened = StateFile(path)
    messages, cut, told_by = opened.context(opened.row("19"), budget=1_000)
    assert cut
    assert [row["id"] for row in told_by] == ["19", "18", "17", "16", "0"]
    assert [message["content"][:7] for message in messages] == [
        "why?",
        "step 16",
        "step 17",
        "step 18",
    ]
    anew = opened.row("19") | {"compacted": True, "added": asked("it was so", "summary")}
    assert opened.context(anew, budget=1_000) == (
        [{"role": "user", "content": "it was so"}],
        False,
        [anew],
    )


def test_what_was_asked_last_is_cut_to_the_budget_where_nothing_else_can_go(tmp_path: Path):
    first = asked("why? " + "a" * 3_000) + asked("and " + "b" * 900 + " now?", "note")
    path = tmp_path / "states.jsonl"
    path.write_text(json.dumps(state("0", None, text("x"), added=first)) + "\n")
    opened = StateFile(path)
    (message,), _, _ = opened.context(opened.row("0"), budget=600)
    assert len(message["content"]) <= 600
    assert message["content"].startswith("why? aa")
    assert message["content"].endswith("b now?")
    assert "characters]" in message["content"]


def test_what_is_cut_is_counted_from_what_was_said(tmp_path: Path):
    path, words = tmp_path / "states.jsonl", "a" * 5_000
    path.write_text(json.dumps(state("0", None, text("x"), added=asked(words))) + "\n")
    opened = StateFile(path)
    (message,), cut, _ = opened.context(opened.row("0"), budget=600)
    assert (len(message["content"]), cut) == (500 + len("\n[... 4500 characters]\n"), False)
    assert "[... 4500 characters]" in message["content"]


def test_many_short_results_leave_the_question_and_the_newest(tmp_path: Path):
    """A cut would make none of them shorter."""
    told = [
        {"role": "tool", "content": f"{n:03} " + "y" * 76, "kind": "note", "call": str(n)}
        for n in range(100)
    ]
    calls = [call(f"t{n}") for n in range(3)]
    results = [{"call": one["id"], "is_error": False, "content": "z" * 70} for one in calls]
    states = [
        state("0", None, *calls, added=asked("why?"), results=results),
        state("1", "0", text("x"), added=told),
        state("2", None, *calls, added=asked("why?"), results=results),
        state("3", "2", text("x"), added=asked("?" * 3_000)),
    ]
    path = tmp_path / "states.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in states))
    opened = StateFile(path)
    (first, *others), cut, _ = opened.context(opened.row("1"), budget=4_000)
    assert (first["content"], cut) == ("why?", True)
    assert [one["content"] for one in others] == [one["content"] for one in told[-49:]]
    for budget in (200, 300, 4_000):
        messages, _, _ = opened.context(opened.row("3"), budget=budget)
        assert sum(map(len, map(said, messages))) <= budget


def test_a_context_that_was_cut_begins_with_a_question(tmp_path: Path):
    states = [state("0", None, text("x"), added=asked("first?"))]
    states += [state(str(n), str(n - 1), text(f"step {n} " + "y" * 300)) for n in (1, 2, 3)]
    states += [state("4", "3", text("well"), added=asked("second?"))]
    path = tmp_path / "states.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in states))
    opened = StateFile(path)
    messages, cut, _ = opened.context(opened.row("4"), budget=800)
    assert (cut, messages) == (True, [{"role": "user", "content": "second?"}])


def test_a_row_names_each_session_that_its_context_and_its_hint_tell(tmp_path: Path):
    """Each of them can then be withdrawn, and is on one side of the split."""
    first = state("f", None, text("Mistral it is"), added=asked("a launch word?"), session="old")
    first |= {"licence": "CC0-1.0", "consent": False}
    fork = [MENDED[0] | {"after": "f"}, MENDED[1]]
    (row,) = made_of(tmp_path, [first, *fork], as_text=True)
    assert "Mistral" in row["prompt"]
    assert row["provenance"]["sessions"] == ["old", "s"]
    assert (row["licence"], row["consent"]) == ("CC0-1.0 AND MIT", False)
    assert row["provenance"]["generator"] == "m-1"
    lost = state("a", None, text("lr 10"), added=asked("train"), **judged("discarded"))
    kept = state("b", None, text("lr 0.1"), added=asked("train"), **judged("kept"), session="t")
    (hinted,) = made_of(tmp_path, [lost, kept], Kind.HINTS)
    assert "lr 0.1" in hinted["hint"]
    assert hinted["provenance"]["sessions"] == ["s", "t"]


def test_sessions_are_split_whole_and_no_row_is_of_both_sides(tmp_path: Path):
    path, out = tmp_path / "states.jsonl", tmp_path / "out.jsonl"
    states = []
    for number in range(40):
        pair = json.loads(json.dumps(CORRECTED).replace('"a"', f'"a{number}"'))
        states += [
            row | {"session": f"s{number}", "id": f"{row['id'][0]}{number}"} for row in pair
        ]
    path.write_text("".join(json.dumps(row) + "\n" for row in states))
    settings = Settings(kind=Kind.PAIRS, text=True, budget=8_000)
    manifest = write_dataset(path, out, settings, held_out=0.3)
    aside = out.with_suffix(".held_out.jsonl")
    found = [
        {row["provenance"]["sessions"][0] for row in map(json.loads, each.open())}
        for each in (out, aside)
    ]
    assert (len(found[0]), len(found[1])) == (manifest["rows"], manifest["held_out"])
    assert found[0] | found[1] == {f"s{number}" for number in range(40)}
    assert not found[0] & found[1]
    assert all(part_of(name, 0.3) == "held_out" for name in found[1])
    with pytest.raises(UsageError, match="exists"):
        write_dataset(path, out, settings, held_out=0.3)


@pytest.mark.parametrize(
    "row", ['{"prompt": "a"}', '{"id": "a", "after": null, "added": [], "action": []}', "[]", "{"]
)
def test_a_file_that_holds_no_states_is_refused(tmp_path: Path, row: str):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{row}\n")
    with pytest.raises(UsageError, match=r"x\.jsonl:1 is no state"):
        StateFile(path)
    path.write_text("")
    settings = Settings(kind=Kind.SFT, text=False, budget=8_000)
    with pytest.raises(UsageError, match="No row of the kind sft"):
        write_dataset(path, tmp_path / "out.jsonl", settings, held_out=0.0)
    assert not (tmp_path / "out.jsonl").exists()
