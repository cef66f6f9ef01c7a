"""`harness train EXP --from OTHER`: the ledger says whose weights they are, and nothing trains."""

import json
from pathlib import Path

import pytest

from harness.domain.statuses import RunStatus
from harness.evaluation.scores import trained_seconds
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import open_project
from tests.cli.journey import Answer, Journey, make_project


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
        ("train", "exp-0001"),
        ("gate", "reject", "exp-0001", "--reason", "The next one."),
        ("experiment", "new", "--hypothesis", "another threshold", "--parent", "exp-0001"),
    ):
        answer = made.harness(*words)
        assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
    predict = made.root / "predict.py"
    predict.write_text(predict.read_text("utf-8") + "# another threshold\n", "utf-8")
    return made


def code_of(answer: Answer) -> str:
    return str(json.loads(answer.stdout)["error"]["code"])


def test_checkpoints_are_taken_with_their_origin_and_only_as_they_were_recorded(
    journey: Journey,
) -> None:
    refused = journey.harness("train", "exp-0002", "--from", "exp-0002", "--json")
    assert code_of(refused) == "nothing_to_take"
    refused = journey.harness("train", "exp-0002", "--from", "exp-0001", "--resume", "--json")
    assert code_of(refused) == "usage"
    taken = journey.harness("train", "exp-0002", "--from", "exp-0001", "--json")
    assert taken.exit_code == 0, taken.stderr
    with open_project(journey.root, journey.environment()) as project:
        assert isinstance(project.plan(), ApprovedPlan)
        ledger = project.ledger
        theirs, own = ledger.runs("exp-0001"), ledger.runs("exp-0002")
        assert [run.taken_from for run in theirs] == [()] * 3
        assert [run.taken_from for run in own] == [(f"exp-0001/{run.id}",) for run in theirs]
        assert [run.seed for run in own] == [run.seed for run in theirs]
        assert {(run.status, run.seconds, run.rows) for run in own} == {
            (RunStatus.COMPLETED, 0.0, 0)
        }
        assert {run.code for run in own} != {run.code for run in theirs}
        finals = [
            [point.id for point in ledger.checkpoints(name)] for name in ("exp-0001", "exp-0002")
        ]
        assert finals[0] == finals[1]
        # Predict's time is measured against what trained its weights.
        assert [trained_seconds(ledger, run) for run in own] == [run.seconds for run in theirs]
        first = project.layout.root / ledger.checkpoints("exp-0001")[0].path
        left = project.layout.workspaces / "exp-0002"
    # Once more: nothing is registered anew, and what a killed call copied goes.
    left.mkdir(parents=True)
    (left / "weights.npz").write_bytes(b"of a call that was killed")
    again = journey.harness("train", "exp-0002", "--from", "exp-0001", "--json")
    assert json.loads(again.stdout)["runs"] == json.loads(taken.stdout)["runs"]
    assert not left.exists()
    first.chmod(0o644)
    first.write_bytes(b"other weights")
    refused = journey.harness("train", "exp-0002", "--from", "exp-0001", "--json")
    assert code_of(refused) == "checkpoint_changed"
    # What was taken once may be taken again, from its own copy, for other code.
    predict = journey.root / "predict.py"
    predict.write_text(predict.read_text("utf-8") + "# and another\n", "utf-8")
    open_now = ("--sandbox", "none", "--reason", "Nothing trains.")
    both = journey.harness("train", "exp-0002", "--from", "exp-0002", "--json", *open_now)
    assert both.exit_code == 0, both.stderr
    with open_project(journey.root, journey.environment()) as project:
        runs = project.ledger.runs("exp-0002")
        assert len(runs) == 6
        assert [run.taken_from for run in runs[3:]] == [run.taken_from for run in own]
        assert [run.sandbox for run in runs[3:]] == ["none"] * 3
