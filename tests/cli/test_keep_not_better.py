"""`harness keep` of what is not better asks for a reason before anything is spent; of a plan that was
changed it says so first. And what `--set` and `experiment compare` say of the same two."""

import sys
from pathlib import Path

import pytest

from tests.centroids import TRAIN
from tests.cli.journey import PLAN
from tests.cli.test_try import IDEA, Story, begun
from tests.screen import Screen

EVEN = TRAIN.replace("// 4", "// 3")
WHY = "It is as good, and simpler"
KEEP = ("keep", "exp-0002")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    story = begun(tmp_path_factory.mktemp("even"), PLAN)
    story("approve", "plan", "approve")
    story("first", "try", IDEA, "--set", "lr=0.01")
    story.write("plan.md", PLAN.replace("patience: 3", "patience: 4"))
    story("changed", "keep", "--json", code=2)
    story("after change", "experiment", "show", "exp-0001", "--json")
    story.write("plan.md", PLAN)
    story("kept", "keep")
    story.write("train.py", EVEN)
    story("second", "try", "more rows", "--json")
    story("asked", *KEEP, code=2)
    story("asked as JSON", *KEEP, "--json", code=2)
    story("looks", "report", "--json")
    story("compared", "experiment", "compare", "exp-0002", "exp-0001", code=1)
    story("turned", "experiment", "compare", "exp-0001", "exp-0002", code=1)
    story("turned as JSON", "experiment", "compare", "exp-0001", "exp-0002", "--json", code=1)
    return story


def test_a_changed_plan_is_told_first_and_nothing_is_recorded(story: Story) -> None:
    error = story.error("changed")
    assert error["code"] == "plan_changed"
    assert "plan.md has SHA-256" in error["message"]
    assert "Nothing was recorded." in error["hint"]
    assert "`harness plan approve plan.md` shows what changed" in error["hint"]
    assert "then `harness keep exp-0001`" in error["hint"]
    shown = story.said["after change"].document
    assert [one["verdict"] for one in shown["verdicts"]] == ["PASS"]
    assert story.said["kept"].exit_code == 0


def test_a_value_of_set_that_no_program_reads_is_named(story: Story) -> None:
    text = " ".join(story.said["first"].stdout.split())
    assert "noticed [value_not_read] --set lr=0.01 stands in config.yaml" in text
    assert "`-- python train.py --lr 0.01`" in text
    lines = story.said["first"].stderr.splitlines()
    told = [
        next(place for place, line in enumerate(lines) if words in line)
        for words in (
            "no file of the code has the word lr",
            "run-01 seed",
            "nothing shows that training used it",
            "run-02 seed",
        )
    ]
    assert told == sorted(told), "before the training, and again before its second seed"


def test_without_a_reason_what_is_not_better_is_not_kept_and_no_look_is_spent(
    story: Story,
) -> None:
    gate = story.said["second"].document["steps"]["gate"]
    assert (gate["verdict"], gate["comparison"]["better"]) == ("PASS", False)
    for name in ("asked", "asked as JSON"):
        answer = story.said[name]
        text = answer.stderr if name == "asked" else str(story.error(name))
        assert "exp-0002 is not shown to be better than exp-0001" in text
        assert 'harness keep exp-0002 --reason "' in text
    assert story.error("asked as JSON")["code"] == "no_reason"
    assert story.said["looks"].document["looks"]["held_out"] == 1


def on_terminal(story: Story, typed: str) -> tuple[int, str]:
    words = [sys.executable, "-m", "harness", *KEEP]
    here = {"PYTHONPATH": str(Path(__file__).parents[2])}
    screen = Screen(words, story.journey.environment(**here), story.journey.root)
    screen.wait_for("Why do you keep it all the same")
    screen.write(typed)
    code = screen.end()
    return code, screen.seen


def test_on_a_terminal_the_reason_is_asked_for(story: Story) -> None:
    code, text = on_terminal(story, "\n")
    assert (code, "It was not kept." in text) == (2, True)
    code, text = on_terminal(story, f"{WHY}\n")
    assert code == 0, text
    rows = story.journey.harness("decisions", "exp-0002", "--json").document["decisions"]
    assert {row["reason"] for row in rows} == {WHY}


def test_both_sides_stand_as_they_were_typed(story: Story) -> None:
    for name, first, second in (
        ("compared", "exp-0002", "exp-0001"),
        ("turned", "exp-0001", "exp-0002"),
    ):
        text = story.said[name].stdout
        head = text.splitlines()[0].split()
        assert head == ["A", first, "B", second]
        names = [line.split()[0] for line in text.splitlines()[1:] if line[1:2].strip()]
        for row in ("idea", "builds", "validation", "held-out", "verdict"):
            assert row in names, text
        assert "A against B: " in text
    turned = story.said["turned"].stdout
    assert "A is the parent of B: `harness experiment compare exp-0002 exp-0001` asks" in turned
    assert "is the parent of" not in story.said["compared"].stdout
    scores = story.said["turned as JSON"].document["scores"]
    assert list(scores) == ["exp-0001", "exp-0002"]
    assert scores["exp-0001"]["held_out"]["split"] == "held_out"
    assert scores["exp-0002"]["held_out"]["score"] is None


def test_an_idea_that_was_tried_before_is_told(tmp_path: Path) -> None:
    story = begun(tmp_path, PLAN)
    story("approve", "plan", "approve")
    first = story("first", "experiment", "new", "--hypothesis", "a wider MLP", "--json")
    assert first.document["findings"] == []
    story("dropped", "gate", "reject", "exp-0001", "--reason", "It learned nothing.")
    again = story("again", "experiment", "new", "--hypothesis", "Wider: a MLP!")
    told = "The same idea was tried as exp-0001, which is discarded: It learned nothing."
    assert f"[idea_tried_before] {told}" in again.stdout
    assert "`harness experiment show exp-0001`" in again.stdout
    story("dropped too", "gate", "reject", "exp-0002", "--reason", "Neither.")
    story.write("train.py", "raise SystemExit('not now')\n")
    tried = story("tried", "try", "a wider mlp", code=1)
    assert "exp-0003  The same idea was tried as exp-0002" in tried.stderr
    assert "noticed" in tried.stdout
    assert story("other", "try", "--continue", code=1).stderr.count("same idea") == 0
