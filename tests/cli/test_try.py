"""`harness try`: a whole experiment in one call, and on from where one stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.artifacts.experiment_files import render_result
from harness.cli.tried import Attempt
from harness.cli.try_ import _AS_MEASURED, _as_measured, _naming
from harness.errors import Interrupted
from tests.centroids import PREDICT, TRAIN, slow_train
from tests.cli.journey import PLAN, Answer, Journey, make_project
from tests.screen import Screen

ONE_SEED = PLAN.replace("seeds: 3", "seeds: 1")
BROKEN_TRAIN = "raise SystemExit('there is no table of that name')\n"
BROKEN_PREDICT = "raise SystemExit('there is no model in it')\n"
IDEA = "centroids tell the blobs apart"
STEPS = ["new", "train", "evaluate", "result", "gate"]


@dataclass
class Story:
    journey: Journey
    said: dict[str, Answer] = field(default_factory=dict)

    def __call__(self, name: str, *words: str, code: int = 0, **extra: str) -> Answer:
        answer = self.said[name] = self.journey.harness(*words, **extra)
        assert answer.exit_code == code, (words, answer.stdout, answer.stderr)
        return answer

    def write(self, name: str, text: str) -> None:
        (self.journey.root / name).write_text(text, "utf-8")

    def error(self, name: str) -> dict[str, str]:
        error: dict[str, str] = self.said[name].document["error"]
        return error


def begun(base: Path, plan: str) -> Story:
    story = Story(make_project(base / "project", base / "home"))
    story.write("plan.md", plan)
    story("init", "init")
    return story


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """What is refused before anything is opened."""
    story = begun(tmp_path_factory.mktemp("wrong"), ONE_SEED)
    story("no plan", "try", IDEA, "--json", code=2)
    story("approve", "plan", "approve")
    typo = ("--", "python", "trian.py")
    for name, words in {
        "typo": (IDEA, *typo),
        "no parent": (IDEA, "--parent", "exp-0009"),
        "not quoted": ("a", "wider", "MLP"),
        "no idea": ("--continue",),
        "an id": ("exp-0001",),
        "both": (IDEA, "--continue"),
        "parent alone": ("--parent", "exp-0001"),
        "reason alone": ("--rationale", "It has room."),
        "empty": ("",),
        "no value": (IDEA, "--set", "lr"),
    }.items():
        story(name, "try", "--json", *words, code=2)
    story("list", "experiment", "list", "--json")
    return story


def test_bad_input_opens_nothing(wrong: Story) -> None:
    assert wrong.said["list"].document == {"experiments": [], "total": 0}


@pytest.mark.parametrize(
    ("name", "code", "way"),
    [
        ("no plan", "no_plan", "`harness plan approve plan.md`"),
        ("typo", "command_not_found", f"`harness try '{IDEA}' -- python train.py`"),
        ("no parent", "not_found", "harness experiment list"),
        ("not quoted", "usage", "`harness try 'a wider MLP' -- python train.py`"),
        ("no idea", "no_experiment", '`harness try "a wider MLP"`'),
        ("an id", "usage", "`harness try --continue`"),
        ("both", "usage", "`harness try --continue`"),
        ("parent alone", "usage", '`harness try "a wider MLP" --parent EXP`'),
        ("reason alone", "usage", '`harness try "a wider MLP" --rationale TEXT`'),
        ("empty", "usage", "one line"),
        ("no value", "usage", "`--set lr=0.1`"),
    ],
)
def test_bad_input_says_what_leads_on(wrong: Story, name: str, code: str, way: str) -> None:
    error = wrong.error(name)
    assert error["code"] == code
    assert way in error["hint"]


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Training fails, then predict does; each is mended, and one word goes on."""
    story = begun(tmp_path_factory.mktemp("mended"), ONE_SEED)
    story("approve", "plan", "approve")
    story.write("train.py", BROKEN_TRAIN)
    story.write("predict.py", BROKEN_PREDICT)
    story("untrained", "try", IDEA, "--set", "kind=centroids", "--", "python", "train.py", code=1)
    story("status", "status")
    story.write("train.py", TRAIN)
    story("unscored", "try", "--json", code=1)
    story.write("plot.py", "# Nobody runs this\n")
    story("again", "try", code=1)
    story.write("predict.py", PREDICT)
    story("passed", "try", "--continue", "--json")
    story("shown", "experiment", "show", "--json")
    story("once more", "try", "--continue")
    story("shown later", "experiment", "show", "--json")
    return story


def test_a_failed_training_says_its_own_error_and_what_there_is(mended: Story) -> None:
    answer = mended.said["untrained"]
    text = " ".join(answer.stdout.split())
    assert f"experiment exp-0001 {IDEA}" in text
    assert "stopped at train: [run_not_completed]" in text
    assert "there is no table of that name" in text
    assert "exp-0001 with 0 of 1 seeds trained and 0 scored" in text
    assert answer.stdout.endswith("`harness try --continue`\n")
    assert "`harness try --continue`" in mended.said["status"].stdout
    assert "See .harness/experiments/exp-0001/runs/run-01/stderr.log" in text
    assert "exp-0001  opened in .harness/experiments/exp-0001" in answer.stderr
    assert "exp-0001/run-01" in answer.stderr


def test_without_an_idea_it_goes_on_with_the_command_and_values_that_it_had(
    mended: Story,
) -> None:
    document = mended.said["unscored"].document
    assert document["experiment"] == "exp-0001"
    assert document["steps"]["train"]["ok"] is True
    assert document["stopped"]["step"] == "evaluate"
    assert document["stopped"]["error"]["code"] == "predict_crashed"
    assert "there is no model in it" in document["stopped"]["error"]["message"]
    assert document["verdict"] is None
    assert "exp-0001 is the open experiment" in mended.said["unscored"].stderr
    config = mended.journey.root / ".harness/experiments/exp-0001/config.yaml"
    assert config.read_text("utf-8").splitlines()[1:] == [
        'command: "python train.py"',
        "kind: centroids",
    ]


def test_only_predict_was_mended_so_the_weights_stay(mended: Story) -> None:
    document = mended.said["passed"].document
    assert (document["verdict"], document["stopped"]) == ("PASS", None)
    assert list(document["steps"]) == STEPS[1:]
    runs = mended.said["shown"].document["runs"]
    assert [run["status"] for run in runs] == ["failed", "completed", "completed"]
    assert "nothing was trained" in runs[-1]["reason"]


def test_what_is_done_is_not_done_again(mended: Story) -> None:
    first, later = (mended.said[name].document for name in ("shown", "shown later"))
    for part in ("runs", "evaluations", "verdicts"):
        assert first[part] == later[part]
    assert "verdict PASS" in " ".join(mended.said["once more"].stdout.split())


def test_a_value_that_no_file_names_opens_nothing_without_a_word_of_the_person(
    wrong: Story,
) -> None:
    ended, seen = on_terminal(wrong, "\n", "try", IDEA, "--set", "sede=1")
    assert ended == 2, seen
    assert "no file of the code has the word sede (is seed meant?)" in seen
    assert "Open the experiment and train?" in seen
    assert wrong("list later", "experiment", "list", "--json").document["total"] == 0


def on_terminal(story: Story, typed: str, *words: str) -> tuple[int, str]:
    here = {"PYTHONPATH": str(Path(__file__).parents[2])}
    called = [sys.executable, "-m", "harness", *words]
    screen = Screen(called, story.journey.environment(**here), story.journey.root)
    screen.wait_for("anything else refuses")
    screen.write(typed)
    return screen.end(), screen.seen


@pytest.mark.parametrize(("typed", "code"), [("\n", 2), ("yes\n", 0)])
def test_on_a_terminal_a_call_without_an_idea_asks_first(
    mended: Story, typed: str, code: int
) -> None:
    before = mended("before", "experiment", "show", "--json").document["evaluations"]
    ended, seen = on_terminal(mended, typed, "try")
    assert ended == code, seen
    assert f"exp-0001 is open: {IDEA}" in seen
    assert "it trains nothing (1 of its 1 seeds are trained)" in seen
    assert ("not confirmed" in seen) is (code == 2)
    assert ("verdict" in seen) is (code == 0)
    assert mended("after", "experiment", "show", "--json").document["evaluations"] == before


def test_what_somebody_wrote_in_the_result_stays(tmp_path: Path) -> None:
    story = begun(tmp_path, ONE_SEED)
    story("approve", "plan", "approve")
    story.write("predict.py", BROKEN_PREDICT)
    story("unscored", "try", IDEA, code=1)
    story("own", "experiment", "result", "--summary", "Two of the blobs touch.")
    story.write("predict.py", PREDICT)
    story("passed", "try")
    result = tmp_path / "project/.harness/experiments/exp-0001/result.md"
    assert "Two of the blobs touch." in result.read_text("utf-8")


def test_only_what_the_harness_wrote_itself_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "result.md"
    words = {"experiment": "exp-0001", "by": "human:ada"}
    own = render_result(**words, claims={"accuracy": "0.90"}, summary=_AS_MEASURED)
    path.write_text(own, "utf-8")
    assert _as_measured(path, "exp-0001")
    for text in (
        own + "\nBut two of the blobs touch.\n",
        own.replace("shortfalls: []", 'shortfalls:\n  - "One seed."'),
        f"{_AS_MEASURED}\n",
        render_result(**words, claims={}, summary=f"Not as before. {_AS_MEASURED}"),
    ):
        path.write_text(text, "utf-8")
        assert not _as_measured(path, "exp-0001"), text


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    story = begun(tmp_path, ONE_SEED)
    story("approve", "plan", "approve")
    story.write("train.py", slow_train(60))
    environment = story.journey.environment()
    command = [sys.executable, "-P", "-I", "-m", "harness", "try", IDEA]
    with started(command, story.journey.root, environment) as process:
        metrics = story.journey.root / ".harness/experiments/exp-0001/runs/run-01/metrics.jsonl"
        wait_for(metrics)
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "stopped" in stdout
    assert "at train: [interrupted]" in stdout
    assert stdout.endswith(
        "next: go on, completed seeds are not repeated: `harness try exp-0001 --continue`\n"
    )
    story.write("train.py", TRAIN)
    assert story("on", "try", "--json").document["verdict"] == "PASS"


def test_ctrl_c_between_the_steps_names_what_is_open() -> None:
    attempt = Attempt(start=Path(), quiet=True)
    with pytest.raises(KeyboardInterrupt), _naming(attempt):
        raise KeyboardInterrupt
    attempt.experiment = "exp-0003"
    with pytest.raises(Interrupted) as stopped, _naming(attempt):
        raise KeyboardInterrupt
    assert "`harness try exp-0003 --continue`" in stopped.value.hint
    assert stopped.value.exit_code == 130


def started(
    command: Sequence[str], root: Path, environment: dict[str, str]
) -> "subprocess.Popen[str]":
    def listen() -> None:
        # A suite in the background ignores it, and children inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen,
    )


def wait_for(path: Path, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not path.exists() or not path.read_text("utf-8"):
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.05)
