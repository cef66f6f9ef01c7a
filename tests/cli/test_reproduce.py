"""`harness reproduce`: a kept experiment is trained again from its snapshot."""

from dataclasses import replace

import pytest

from harness.ledger.project import open_project
from tests.centroids import TRAIN
from tests.cli.journey import PLAN
from tests.cli.test_try import IDEA, Story, begun

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
    story.write("train.py", OUTSIDE)
    story("same", "try", "another name for the same training")
    story("as JSON", "train", "exp-0004", "--json")
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


def test_the_same_configuration_is_told_before_it_is_trained(story: Story) -> None:
    told = "exp-0004: exp-0003 trained the same code, command, configuration and data"
    lines = story.said["same"].stderr.splitlines()
    at = [place for place, line in enumerate(lines) if told in line]
    assert len(at) == 1, lines
    runs = [place for place, line in enumerate(lines) if "run-01" in line]
    assert at[0] < min(runs)
    found = story.said["as JSON"].document["findings"]
    assert [one["code"] for one in found] == ["configuration_tried_before"]


def test_a_changed_judge_is_told_before_an_experiment_is_opened(story: Story) -> None:
    journey = story.journey
    before = journey.harness("experiment", "list", "--json").document["total"]
    with open_project(journey.root, journey.environment()) as project:
        recorded = project.ledger.recorded_judge(project.ledger.writer)
        assert recorded is not None
        project.ledger.append(replace(recorded, sha256="0" * 64))
    refused = journey.harness("reproduce", "exp-0001", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "judge_changed")
    assert journey.harness("experiment", "list", "--json").document["total"] == before
