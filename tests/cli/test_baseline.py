"""`harness baseline`: the noise of seeds, and how many of them a gain needs."""

import sys
from pathlib import Path

import pytest

from harness.decisions.experiments import open_experiment
from harness.evaluation.seed_noise import seed_noise
from harness.ledger.project import open_project
from harness.plans.approved import seeds_for, seeds_of
from tests.cli.journey import Again, Answer, Journey, make_project
from tests.screen import Screen

WORDS = ("baseline", "--gain", "0.01")
MADE = ("baseline", "--seeds", "4", "--json")
"""One more than the plan's."""


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    base = tmp_path_factory.mktemp("baseline")
    return Again(base, ("init",), ("plan", "approve"), MADE, one_key=True)


@pytest.fixture
def journey(again: Again) -> Journey:
    """With a baseline of four seeds, where the plan has three."""
    return again.journey()


def asked(journey: Journey, *words: str, code: int = 0) -> Answer:
    answer = journey.harness(*words)
    assert answer.exit_code == code, (answer.stdout, answer.stderr)
    return answer


def test_the_spread_of_the_seeds_is_shown_and_what_a_gain_needs(journey: Journey) -> None:
    answer = asked(journey, *WORDS, "--json")
    noise, rows = answer.document["noise"], answer.document
    shown = asked(journey, "experiment", "show", "exp-0001", "--json").document
    values = [one["value"] for one in shown["evaluations"]]
    assert sorted(noise["values"]) == sorted(values)
    assert noise["spread"] == pytest.approx(shown["spread"])
    low, high = noise["between"]
    assert low < noise["spread"] < high
    assert noise["power"]["gain"] == 0.01
    assert noise["power"]["measured"].startswith("4 seeds have a spread of")
    assert (rows["parent"], rows["hypothesis"]) == (None, "The starting code, as it is")
    assert rows["steps"]["train"]["runs"], "the runs that were there"
    runs = [run["run"] for run in shown["runs"]]
    assert len(runs) == 4, "a second call trains nothing"


def test_a_person_reads_it(journey: Journey) -> None:
    answer = asked(journey, *WORDS)
    assert "noise: 4 seeds score 0." in answer.stdout
    assert "power: a gain of 0.01 is found in" in answer.stdout
    assert "next: " in answer.stdout


def test_more_seeds_than_the_plans_are_its_next_ones_and_all_count(journey: Journey) -> None:
    shown = asked(journey, "experiment", "show", "exp-0001", "--json").document
    with open_project(journey.root, journey.environment(), read_only=True) as project:
        basis = project.plan().basis
    assert [run["seed"] for run in shown["runs"]] == seeds_for(basis, 4)
    assert (shown["n_seeds"], shown["verdict"], shown["findings"]) == (4, "PASS", [])


@pytest.mark.parametrize("seeds", ["3", "5"])
def test_how_many_is_said_when_it_is_opened(journey: Journey, seeds: str) -> None:
    refused = asked(journey, "baseline", "--seeds", seeds, "--json", code=2).document["error"]
    assert "exp-0001 was opened with 4 seeds" in refused["message"]
    same = asked(journey, "baseline", "--seeds", "4", "--json").document
    assert same["noise"]["seeds"] == 4


def test_a_predict_that_is_mended_scores_all_its_seeds_and_no_others(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    asked(journey, "init")
    asked(journey, "plan", "approve")
    predict = journey.root / "predict.py"
    sound = predict.read_text("utf-8")
    predict.write_text("raise SystemExit('there is no model in it')\n", "utf-8")
    stopped = asked(journey, "baseline", "--seeds", "5", "--json", code=1).document["stopped"]
    assert stopped["step"] == "evaluate"
    for seeds in ("3", "4", "6"):  # its logs are all that anybody saw
        refused = asked(journey, "baseline", "--seeds", seeds, "--json", code=2)
        assert "was opened with 5 seeds" in refused.document["error"]["message"]
    predict.write_text(sound, "utf-8")
    checked = asked(journey, "evaluate", "exp-0001", "--check")
    assert "`harness evaluate exp-0001 --predict-from .` scores it so" in checked.stdout
    assert asked(journey, "baseline", "--json").document["noise"]["seeds"] == 5
    with open_project(journey.root, journey.environment(), read_only=True) as project:
        runs = project.ledger.runs("exp-0001")
        wanted = seeds_for(project.plan().basis, 5)
    assert [run.seed for run in runs] == [*wanted, *wanted]
    assert [bool(run.taken_from) for run in runs] == [False] * 5 + [True] * 5
    shown = asked(journey, "experiment", "show", "exp-0001", "--json").document
    assert (shown["n_seeds"], shown["verdict"]) == (5, "PASS")


def test_fewer_than_it_was_opened_with_are_no_baseline(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    asked(journey, "init")
    asked(journey, "plan", "approve")
    train = journey.root / "train.py"
    sound = train.read_text("utf-8")
    with open_project(journey.root, journey.environment()) as project:
        open_experiment(
            project,
            hypothesis="The starting code, as it is",
            rationale="r",
            parent=None,
            by="a person",
            seeds=4,
        )
        first = seeds_for(project.plan().basis, 3)[-1]
    stops = f"import os\nif os.environ['HARNESS_SEED'] == '{first}': raise SystemExit(3)\n"
    train.write_text(stops + sound, "utf-8")
    asked(journey, "train", "exp-0001", code=1)
    judged = asked(journey, "gate", "check", "exp-0001", "--json", code=1).document
    told = [one["message"] for one in judged["findings"] if one["code"] == "seeds_outstanding"]
    assert [text[:12] for text in told] == ["2 of 4 seeds"]


def test_its_words_alone_make_no_baseline(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    asked(journey, "init")
    asked(journey, "plan", "approve")
    asked(journey, "experiment", "new", "--hypothesis", "The starting code, as it is")
    # An agent may have one open, and that one is no baseline.
    refused = journey.harness("baseline", "--seeds", "6", "--json", CLAUDECODE="1")
    assert refused.document["error"]["code"] == "experiment_undecided"
    with open_project(journey.root, journey.environment(), read_only=True) as project:
        (one,) = project.ledger.experiments()
        planned = seeds_for(project.plan().basis, 3)
        assert seeds_of(project, one) == set(planned)


def test_fewer_than_the_plans_are_refused(journey: Journey) -> None:
    plan = (journey.root / "plan.md").read_text("utf-8").replace("seeds: 3", "seeds: 4")
    (journey.root / "plan.md").write_text(plan, "utf-8")
    journey.approve_changes()
    answer = asked(journey, "baseline", "--seeds", "3", "--json", code=2)
    assert "at least 4" in answer.document["error"]["hint"]
    asked(journey, "baseline", "--seeds", "2", "--json", code=2)


def out_of_reach(journey: Journey) -> tuple[tuple[str, ...], int]:
    """The call with the first gain that three seeds do not find and more do, and how many do."""
    with open_project(journey.root, journey.environment(), read_only=True) as project:
        for gain in range(60, 4, -1):
            noise = seed_noise(project, project.plan(), "exp-0001", gain / 1000)
            wanted = None if noise.power is None else noise.power.seeds_wanted
            if wanted is None or wanted > 3:
                assert wanted is not None, "the rows alone are too few from here on"
                return ("baseline", "--gain", f"{gain / 1000}"), wanted
    raise AssertionError("three seeds find every gain")


def test_the_seeds_go_into_a_draft_that_a_person_approves(journey: Journey) -> None:
    words, wanted = out_of_reach(journey)
    wrote = asked(journey, *words, "--write")
    draft = journey.root / "plans" / "plan.draft.md"
    was, now = ((journey.root / "plan.md"), draft)
    one, other = (path.read_text("utf-8").splitlines() for path in (was, now))
    differ = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    (line,) = differ
    assert line[1] == line[0].replace("seeds: 3", f"seeds: {wanted}")
    assert f"oracle.seeds 3 -> {wanted}. It begins a new comparison" in wrote.stdout
    assert "next: a person approves it: `harness plan approve plans/plan.draft.md`" in wrote.stdout
    shown = asked(journey, "plan", "approve", "plans/plan.draft.md", "--json", code=2).document
    assert f"oracle.seeds: 3 -> {wanted}" in shown["error"]["message"]
    draft.write_text("mine", "utf-8")
    refused = asked(journey, *words, "--write", "--json", code=2)
    assert refused.document["error"]["code"] == "draft_exists"
    assert draft.read_text("utf-8") == "mine"


@pytest.mark.parametrize(("typed", "there"), [("yes\n", True), ("\n", False)])
def test_on_a_terminal_it_is_asked_for(journey: Journey, typed: str, there: bool) -> None:
    words = [sys.executable, "-m", "harness", *out_of_reach(journey)[0]]
    here = {"PYTHONPATH": str(Path(__file__).parents[2])}
    screen = Screen(words, journey.environment(**here), journey.root)
    screen.wait_for("anything else leaves it")
    screen.write(typed)
    assert screen.end() == 0, screen.seen
    assert "into a draft of the plan?" in screen.seen
    assert (journey.root / "plans" / "plan.draft.md").is_file() is there


def test_of_a_hidden_validation_no_spread_is_told(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    plan = (journey.root / "plan.md").read_text("utf-8")
    hidden = plan.replace("validation: data/validation.npz", "validation: hidden")
    (journey.root / "plan.md").write_text(hidden, "utf-8")
    data = journey.root / "data"
    (data / "validation.npz").rename(data / "train.validation.npz")
    asked(journey, "init")
    asked(journey, "plan", "approve")
    first = asked(journey, "baseline", "--gain", "0.02").stderr
    assert first.index("the labels of validation are hidden") < first.index("exp-0001/run-01")
    answer = asked(journey, "baseline", "--gain", "0.02", "--json")
    noise = answer.document["noise"]
    assert (noise["sealed"], noise["seeds"]) == (True, 3)
    assert (noise["values"], noise["spread"], noise["between"]) == ([], None, None)
    assert noise["power"]["measured"] == ""
    told = asked(journey, "status", "--json").document["plan"]["bits_told"]
    assert told > 0, "its one answer is counted"
    shown = asked(journey, "baseline", "--gain", "0.01")
    assert "how far they lie apart is sealed" in shown.stdout
    assert "`harness experiment show exp-0001 --exact`" in shown.stdout
    assert asked(journey, "status", "--json").document["plan"]["bits_told"] == told
    assumed = asked(journey, "plan", "check", "--json").document["power"]
    default = asked(journey, "baseline", "--json").document["noise"]["power"]
    assert default == assumed, "what was measured is in no figure"
