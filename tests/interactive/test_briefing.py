"""The briefing reaches the model at the start, after /clear, after compaction and when a session is
resumed."""

from pathlib import Path

from harness.model_gateway.wire import newest_text
from tests.cli.journey import Journey
from tests.interactive.gateway import shown
from tests.interactive.lab import Lab, must
from tests.interactive.sdk import FROM_PROJECT, play

LONGEST = 8000


def briefing(root: Path) -> str:
    return (root / ".harness/memory/BRIEFING.md").read_text("utf-8").strip()


def test_the_briefing_comes_first_and_again_after_clear_and_compaction(lab: Lab) -> None:
    text = briefing(lab.root)
    assert 0 < len(text) <= LONGEST
    assert "exp-0001" in text
    asked = {f"PLEASE ANSWER {letter}": [f"Answer {letter}."] for letter in "ABC"}
    order = ["PLEASE ANSWER A", "/clear", "PLEASE ANSWER B", "/compact", "PLEASE ANSWER C"]
    played = play(lab.root, lab.home, asked, send=order)
    by_prompt = {
        letter: next(
            item for item in played.requests if f"PLEASE ANSWER {letter}" in newest_text(item.body)
        )
        for letter in "ABC"
    }
    assert by_prompt["A"] is played.requests[0]
    for letter, request in by_prompt.items():
        assert shown(request).count(text) == 1, letter
    assert "Answer A." not in str(by_prompt["B"].body["messages"])
    assert "Answer B." not in str(by_prompt["C"].body["messages"])


def test_a_resumed_session_has_the_briefing_of_now(fresh: Journey) -> None:
    first = play(fresh.root, fresh.home, {"PLEASE BEGIN": ["Begun."]})
    must(fresh.harness("experiment", "new", "--hypothesis", "centroids"))
    options = {**FROM_PROJECT, "resume": first.document["init"]["session_id"]}
    again = play(fresh.root, fresh.home, {"PLEASE GO ON": ["Going on."]}, options=options)
    assert "Begun." in str(again.requests[0].body["messages"])
    assert "exp-0001" in briefing(fresh.root)
    assert briefing(fresh.root) in newest_text(again.requests[0].body)
