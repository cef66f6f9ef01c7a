"""Several experiments open at once, by hand: each is named, and each keeps its own code."""

from pathlib import Path

import pytest

from tests.centroids import TRAIN
from tests.cli.journey import PLAN, Journey, make_project

ONE_SEED = PLAN.replace("seeds: 3", "seeds: 1")


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("several")
    journey = make_project(base / "project", base / "home")
    (journey.root / "plan.md").write_text(ONE_SEED, "utf-8")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "half of the rows do"),
        ("experiment", "new", "--hypothesis", "a quarter of the rows does"),
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
    return journey


def write_train(root: Path, share: str, mark: str) -> None:
    text = TRAIN.replace("// 4", share) + f"print('{mark}')\n"
    (root / "train.py").write_text(text, "utf-8")


def test_two_are_opened_tried_and_kept_each_by_its_name(journey: Journey) -> None:
    unnamed = journey.harness("try", "--continue", "--json")
    assert unnamed.exit_code == 2
    error = unnamed.document["error"]
    assert "open are exp-0001, exp-0002" in error["message"]
    assert "`harness try --continue exp-0001`" in error["hint"]
    assert '`harness try "IDEA"` opens another.' in error["hint"]
    for name, share in (("exp-0001", "// 2"), ("exp-0002", "// 4")):
        write_train(journey.root, share, f"OF-{name}")
        answer = journey.harness("try", name, "--continue", "--json")
        assert answer.exit_code == 0, answer.stdout + answer.stderr
        assert answer.document["experiment"] == name
    # While both wait for a decision a third is tried.
    third = journey.harness("try", "the same again, to see", "--json")
    assert third.document["experiment"] == "exp-0003", third.stdout
    kept = journey.harness("keep", "exp-0002", "--reason", "It is as good.", "--json")
    assert kept.exit_code == 0, kept.stdout + kept.stderr
    rows = journey.harness("experiment", "list", "--json").document["experiments"]
    status = {row["experiment"]: row["status"] for row in rows}
    assert status == {"exp-0001": "judged", "exp-0002": "kept", "exp-0003": "judged"}
    for name in ("exp-0001", "exp-0002"):
        folder = journey.root / ".harness/experiments" / name / "runs/run-01"
        assert f"OF-{name}" in (folder / "stdout.log").read_text("utf-8")


def test_an_agent_has_one_open(journey: Journey) -> None:
    for words in (
        ("experiment", "new", "--hypothesis", "one more"),
        ("try", "one more"),
    ):
        refused = journey.harness(*words, "--json", CLAUDECODE="1")
        assert refused.document["error"]["code"] == "experiment_undecided", refused.stdout


def test_a_folder_that_was_removed_is_named_wherever_experiments_are(
    journey: Journey, tmp_path: Path
) -> None:
    folder = journey.root / ".harness/experiments/exp-0001"
    said = "Its folder .harness/experiments/exp-0001 is gone"
    views = (("status",), ("experiment", "list"), ("experiment", "show", "exp-0001"))

    def shown() -> list[str]:
        return [" ".join(journey.harness(*words).stdout.split()) for words in views]

    assert all(said not in text for text in shown())
    away = folder.rename(tmp_path / "away")
    try:
        assert all(said in text for text in shown())
        rows = journey.harness("experiment", "list", "--json").document["experiments"]
        gone = {row["experiment"]: row["gone"] for row in rows}
        assert gone.pop("exp-0001") == ".harness/experiments/exp-0001"
        assert not any(gone.values())
    finally:
        away.rename(folder)
