"""Where one experiment is open, no command needs its id; it says which one it took."""

import pytest

from harness.cli.chosen import require_id
from harness.errors import UsageError
from tests.cli.journey import Journey, make_project

VERBS = (
    ("train",),
    ("evaluate",),
    ("experiment", "show"),
    ("experiment", "result", "--summary", "As measured."),
    ("gate", "check"),
)


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("default")
    made = make_project(base / "project", base / "home")
    assert made.harness("init").exit_code == 0
    assert made.harness("plan", "approve").exit_code == 0
    return made


def test_the_only_open_one_is_taken_from_training_to_the_gate(journey: Journey) -> None:
    for words in VERBS:
        answer = journey.harness(*words, "--json")
        error = answer.document["error"]
        assert (answer.exit_code, error["code"]) == (2, "no_experiment")
        assert '`harness try "IDEA"` opens one' in error["hint"]
    assert journey.harness("experiment", "new", "--hypothesis", "centroids").exit_code == 0
    for words in VERBS:
        answer = journey.harness(*words)
        assert answer.exit_code == 0, (words, answer.stderr)
        assert "exp-0001 is the open experiment" in answer.stderr
        assert "exp-0001" in answer.stdout
    config = (journey.root / ".harness/experiments/exp-0001/config.yaml").read_text()
    assert config.splitlines()[1:] == ['command: "python train.py"']
    named = journey.harness("experiment", "show", "exp-0001")
    assert (named.exit_code, named.stderr) == (0, "")


def test_a_command_after_the_dashes_is_no_id(journey: Journey) -> None:
    answer = journey.harness("train", "--json", "--", "python", "trian.py")
    error = answer.document["error"]
    assert (answer.exit_code, error["code"]) == (2, "command_not_found")
    assert error["hint"] == "Did you mean `harness train exp-0001 -- python train.py`?"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("1", "`harness gate check exp-0001`"), ("exp-012", "`harness gate check exp-0012`")]
    + [(text, "one of those that `harness experiment list` names") for text in ("0", "exp-0")],
)
def test_the_number_of_an_experiment_begins_with_one(text: str, meant: str) -> None:
    with pytest.raises(UsageError) as error:
        require_id(text, "harness gate check")
    assert error.value.hint == f"You may mean {meant}."
