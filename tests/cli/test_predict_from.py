"""`harness evaluate EXP --predict-from CODE`: mended predict code scores the weights that are there,
and everything says whose predict and whose training made the score. `--check` tries it before."""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.centroids import PREDICT
from tests.cli.journey import PLAN, Answer, Journey, make_project

BROKEN = "raise SystemExit('there is no model in it')\n"
ONE_SEED = PLAN.replace("seeds: 3", "seeds: 1")


@dataclass
class Story:
    journey: Journey
    said: dict[str, Answer] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str, *words: str, code: int = 0) -> Answer:
        answer = self.said[name] = self.journey.harness(*words)
        assert answer.exit_code == code, (words, answer.stdout, answer.stderr)
        return answer

    def predict(self, text: str) -> None:
        (self.journey.root / "predict.py").write_text(text, "utf-8")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=self.journey.root,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, name: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", name)
        self.commits[name] = self.git("rev-parse", "HEAD")[:9]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    base = tmp_path_factory.mktemp("mended")
    story = Story(make_project(base / "project", base / "home"))
    (story.journey.root / "plan.md").write_text(ONE_SEED, "utf-8")
    story.predict(BROKEN)
    story.git("init", "-q")
    story("init", "init")
    story("approve", "plan", "approve")
    story.commit("broken")
    story("new", "experiment", "new", "--hypothesis", "centroids")
    story("nothing to check", "evaluate", "--check", "--json", code=2)
    story("trained", "train", "exp-0001")
    story("check broken", "evaluate", "--check", code=1)
    story("failed", "evaluate", code=1)
    story.predict(PREDICT)
    story("check mended", "evaluate", "--check")
    story("check as JSON", "evaluate", "--check", "--json")
    story("not committed", "evaluate", "--predict-from", "HEAD", code=1)
    story("unchanged", "experiment", "show", "--json")
    story.commit("mended")
    story("mended", "evaluate", "exp-0001", "--predict-from", "HEAD", "--json")
    story("again", "evaluate", "exp-0001", "--predict-from", "HEAD")
    story("shown", "experiment", "show")
    story("shown as JSON", "experiment", "show", "--json")
    story("result", "experiment", "result", "--summary", "As measured.")
    story("gate", "gate", "check", "--json")
    story("report", "report")
    for name, words in {
        "no commit": ("--predict-from", "nobody"),
        "held-out": ("--predict-from", "HEAD", "--split", "held-out"),
        "check held-out": ("--check", "--split", "held-out"),
    }.items():
        story(name, "evaluate", "exp-0001", *words, "--json", code=2)
    return story


def test_the_failure_says_the_one_command_that_keeps_the_weights(story: Story) -> None:
    assert "there is no model in it" in story.said["failed"].stdout
    assert "`harness evaluate exp-0001 --predict-from .`" in story.said["failed"].stdout


def test_check_tries_the_files_as_they_are_and_scores_nothing(story: Story) -> None:
    broken, mended = story.said["check broken"].stdout, story.said["check mended"].stdout
    assert "predict does not answer 8 training rows with run-01's checkpoint of epoch 0" in broken
    assert "there is no model in it" in broken
    assert "`harness evaluate exp-0001 --check`" in broken
    assert "predict answers 8 training rows" in mended
    assert "`harness evaluate exp-0001 --predict-from .` scores it so" in mended
    document = story.said["check as JSON"].document
    assert (document["ok"], document["rows"], document["findings"]) == (True, 8, [])
    error = story.said["nothing to check"].document["error"]
    assert error["code"] == "no_checkpoint"
    assert "`harness train exp-0001`" in error["hint"]


def test_a_commit_is_what_it_was_whatever_lies_in_the_working_tree(story: Story) -> None:
    assert "there is no model in it" in story.said["not committed"].stdout
    # The code of that commit is the runs' own: nothing was registered for it.
    assert [run["run"] for run in story.said["unchanged"].document["runs"]] == ["run-01"]


def test_mended_predict_scores_the_same_weights_without_training(story: Story) -> None:
    (evaluation,) = story.said["mended"].document["evaluations"]
    assert evaluation["scored"]
    runs = story.said["shown as JSON"].document["runs"]
    assert [(run["run"], run["seconds"] == 0.0) for run in runs] == [
        ("run-01", False),
        ("run-02", True),
    ]
    points = story.said["shown as JSON"].document["checkpoints"]
    assert len({point["checkpoint"] for point in points}) == 1
    # Its time is held against the training's, not against that of the run that took the weights.
    assert evaluation["training_seconds"] == runs[0]["seconds"]


def test_everything_says_whose_predict_and_whose_training_it_is(story: Story) -> None:
    mended, broken = story.commits["mended"], story.commits["broken"]
    words = re.compile(rf"predict of commit {mended}, training of code \w{{9}} at commit {broken}")
    assert words.fullmatch(story.said["mended"].document["predict_code"])
    assert words.fullmatch(story.said["shown as JSON"].document["predict_code"])
    assert words.search(story.said["shown"].stdout)
    assert words.search(" ".join(story.said["report"].stdout.split()))
    verdict = story.said["gate"].document
    assert verdict["verdict"] == "PASS"
    (note,) = [one for one in verdict["findings"] if one["code"] == "checkpoints_taken"]
    assert words.search(note["message"])


@pytest.mark.parametrize(
    ("name", "code", "way"),
    [
        ("no commit", "no_commit", "`.` stands for the files as they are now"),
        ("held-out", "usage", "`harness evaluate EXP --predict-from CODE`"),
        ("check held-out", "usage", "`harness evaluate EXP --check`"),
    ],
)
def test_what_cannot_be_taken_is_refused(story: Story, name: str, code: str, way: str) -> None:
    error = story.said[name].document["error"]
    assert error["code"] == code
    assert way in error["hint"]


def test_a_predict_that_does_the_trainings_work_stays_refused(tmp_path: Path) -> None:
    """Weights without sense, and a predict that learns: the probe with other weights finds it."""
    story = Story(make_project(tmp_path / "project", tmp_path / "home"))
    (story.journey.root / "plan.md").write_text(ONE_SEED, "utf-8")
    story("init", "init")
    story("approve", "plan", "approve")
    story("new", "experiment", "new", "--hypothesis", "centroids")
    story("trained", "train", "exp-0001")
    story.predict(
        PREDICT.replace('np.load(os.environ["HARNESS_CHECKPOINT"])', "np.eye(3, 4) * 2.5")
    )
    answer = story("learned", "evaluate", "--predict-from", ".", "--json", code=1)
    (evaluation,) = answer.document["evaluations"]
    assert "weights_unused" in [found["code"] for found in evaluation["findings"]]
    assert evaluation["value"] is None
