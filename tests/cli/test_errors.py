"""Wrong input gets a sentence, a hint, the right exit code and, with --json, one object."""

from pathlib import Path

import pytest

from harness.cli.main import COMMANDS, SUMMARIES, after_interrupt
from tests.cli.journey import Journey, make_project


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    return make_project(tmp_path / "project", tmp_path / "home")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Never initialised; for calls that leave it as it is."""
    base = tmp_path_factory.mktemp("bare")
    return make_project(base / "project", base / "home")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """With an experiment in which nothing was tried; for calls that leave it so."""
    base = tmp_path_factory.mktemp("opened")
    made = make_project(base / "project", base / "home")
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "nothing"),
    ):
        assert made.harness(*words).exit_code == 0
    return made


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("status",), "no_project"),
        (("frobnicate",), "usage"),
        (("gate", "check"), "no_project"),
        (("status", "--sandbox", "x"), "usage"),
    ],
)
def test_errors_are_documents(bare: Journey, words: tuple[str, ...], code: str) -> None:
    answer = bare.harness(*words, "--json")
    assert answer.exit_code == 2
    assert answer.document["error"]["code"] == code
    assert answer.document["error"]["message"]
    assert answer.document["error"]["hint"]
    assert "Traceback" not in answer.stderr


def test_errors_for_people_are_on_stderr(bare: Journey) -> None:
    answer = bare.harness("status")
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert "harness init" in answer.stderr
    assert f"at or above {bare.root.resolve()}:" in answer.stderr


def test_the_form_of_a_plan_is_not_a_plan(journey: Journey) -> None:
    (journey.root / "plan.md").unlink()
    assert journey.harness("init").exit_code == 0
    answer = journey.harness("plan", "approve", "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "plan_invalid")
    assert (journey.root / "data" / "held_out.npz").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "approve"),
        ("gate", "approve", "exp-0001", "--reason", "x"),
        ("gate", "reject", "exp-0001", "--reason", "x"),
        ("ledger", "import"),
    ],
)
def test_human_verbs_refuse_below_an_agent(opened: Journey, words: tuple[str, ...]) -> None:
    answer = opened.harness(*words, "--json", CLAUDECODE="1")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "human_verb")


def test_an_unfinished_experiment_cannot_be_approved(opened: Journey) -> None:
    refused = opened.harness("gate", "approve", "exp-0001", "--reason", "trust me", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "validation_not_passed")
    checked = opened.harness("gate", "check", "exp-0001", "--json")
    assert checked.exit_code == 1
    missing = {finding["data"].get("artifact") for finding in checked.document["findings"]}
    assert {"config", "result"} <= missing


def test_a_failing_command_is_exit_one(journey: Journey) -> None:
    journey.harness("init")
    journey.harness("plan", "approve")
    journey.harness("experiment", "new", "--hypothesis", "crash")
    answer = journey.harness(
        "train", "exp-0001", "--json", "--", "python", "-c", "raise MemoryError"
    )
    assert answer.exit_code == 1
    assert answer.document["ok"] is False
    assert "MemoryError" in str(answer.document)


def test_every_verb_has_a_summary() -> None:
    assert set(SUMMARIES) == set(COMMANDS)


def test_a_null_byte_in_a_plans_path_is_a_plan_error(opened: Journey) -> None:
    text = (
        (opened.root / "plan.md")
        .read_text("utf-8")
        .replace("train: data/train.npz", 'train: "data/tr\\0ain.npz"')
    )
    (opened.root / "odd.md").write_text(text, "utf-8")
    answer = opened.harness("plan", "check", "odd.md", "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "plan_invalid")
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--json", "exp-0002", "--", "python", "train.py"], "`harness train exp-0002`"),
        (["evaluate", "exp-0002", "--split", "held-out"], "`harness evaluate exp-0002`"),
        (["try", "exp-0003", "--continue"], "`harness try exp-0003 --continue`"),
        (
            ["try", "a wider MLP", "--parent", "exp-0002"],
            "`harness status` lists open experiments; resume",
        ),
        (["run", "plan.md"], "`harness continue`"),
        (["continue"], "`harness continue`"),
        (["demo"], "`harness demo --help`"),
    ],
)
def test_what_was_interrupted_goes_on_by_its_own_verb(words: list[str], said: str) -> None:
    assert said in after_interrupt(words)


def test_decisions_of_an_experiment_that_is_not_there(opened: Journey) -> None:
    answer = opened.harness("decisions", "exp-0009", "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "not_found")
