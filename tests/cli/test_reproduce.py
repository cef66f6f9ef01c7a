"""`harness reproduce`: a kept experiment is trained again from its snapshot."""

import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction
from harness.evaluation.reproduction import Outcome, judged
from tests.centroids import TRAIN
from tests.cli.journey import PLAN
from tests.cli.test_try import IDEA, Story, begun

OBJECTIVE = Objective(
    metric="accuracy", direction=Direction.MAXIMIZE, tiers={}, seeds=3, queries=3
)
# What no seed and no snapshot says: a training that reads it is not reproducible.
OUTSIDE = TRAIN.replace(
    "centroids = np",
    "centroids = (-1 if __import__('os').environ.get('OMP_NUM_THREADS') == '2' else 1) * np",
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    story = begun(tmp_path_factory.mktemp("reproduce"), PLAN)
    assert OUTSIDE != TRAIN
    story.write("train.py", OUTSIDE)
    story("approve", "plan", "approve")
    story("first", "try", IDEA, "--json")
    story("too early", "reproduce", "exp-0001", "--json", code=2)
    story("kept", "keep")
    story.write("train.py", "raise SystemExit('these files are no longer those of exp-0001')\n")
    story("again", "reproduce", "exp-0001", "--json")
    story("elsewhere", "reproduce", "exp-0001", "--json", code=1, OMP_NUM_THREADS="2")
    story("show", "experiment", "show", "exp-0001")
    story("report", "report", "exp-0001")
    story("list", "experiment", "list", "--json")
    story("verify", "ledger", "verify")
    return story


def test_only_what_is_kept_is_reproduced(story: Story) -> None:
    assert story.said["too early"].document["error"]["code"] == "not_kept"


def test_the_snapshot_is_trained_and_gives_the_same_score(story: Story) -> None:
    document = story.said["again"].document
    assert (document["outcome"], document["ok"]) == ("exact", True)
    assert (document["experiment"], document["reproduction"]) == ("exp-0001", "exp-0002")
    assert len(document["scores"]) == 3
    assert all(row["first"] == row["again"] for row in document["scores"])
    folder = story.journey.root / ".harness/experiments/exp-0002"
    before = story.journey.root / ".harness/experiments/exp-0001"
    assert (folder / "config.yaml").read_bytes() == (before / "config.yaml").read_bytes()
    rows = {row["experiment"]: row for row in story.said["list"].document["experiments"]}
    assert rows["exp-0002"]["status"] == "discarded"
    assert rows["exp-0001"]["status"] == "kept"


def test_another_score_is_told_and_changes_no_decision(story: Story) -> None:
    document = story.said["elsewhere"].document
    assert (document["outcome"], document["ok"]) == ("differs", False)
    assert document["difference"] < -document["floor"]
    assert document["changed"] == ["threads"]
    shown = story.said["show"].stdout
    assert "exact as exp-0002" in shown
    assert "differs as exp-0003: the means differ by -" in shown
    assert "differs as exp-0003" in story.said["report"].stdout


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ({1: 0.90, 2: 0.91, 3: 0.92}, Outcome.EXACT),
        ({1: 0.91, 2: 0.90, 3: 0.92}, Outcome.REPRODUCED),
        ({1: 0.80, 2: 0.81, 3: 0.82}, Outcome.DIFFERS),
        ({1: 0.99, 2: 0.98, 3: 0.99}, Outcome.DIFFERS),
        ({1: 0.90, 2: 0.91}, Outcome.INCONCLUSIVE),
        ({}, Outcome.INCONCLUSIVE),
    ],
)
def test_the_noise_of_the_seeds_decides(again: dict[int, float], outcome: Outcome) -> None:
    result = judged({1: 0.90, 2: 0.91, 3: 0.92}, again, OBJECTIVE)
    assert result.outcome is outcome
    assert result.why


def test_two_seeds_tell_nothing_but_equality() -> None:
    assert judged({1: 0.9, 2: 0.8}, {1: 0.9, 2: 0.8}, OBJECTIVE).outcome is Outcome.EXACT
    assert judged({1: 0.9, 2: 0.8}, {1: 0.9, 2: 0.7}, OBJECTIVE).outcome is Outcome.INCONCLUSIVE
