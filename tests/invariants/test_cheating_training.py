"""Training programs that cheat or misbehave, run by the command; what the gate then says."""

from pathlib import Path

import pytest

from tests.centroids import TRAIN
from tests.cli.journey import Journey, make_project


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    assert made.harness("init").exit_code == 0
    assert made.harness("plan", "approve").exit_code == 0
    return made


def judged(journey: Journey, experiment: str) -> list[str]:
    """The finding codes of the validation gate after evaluation and an empty result; the
    configuration is what training wrote of its command."""
    folder = journey.root / ".harness/experiments" / experiment
    (folder / "result.md").write_text("---\nclaims: {}\n---\n# Result\n", "utf-8")
    assert "Traceback" not in journey.harness("evaluate", experiment).stderr
    return [
        found["code"]
        for found in journey.harness("gate", "check", experiment, "--json").document["findings"]
    ]


@pytest.mark.parametrize("sandbox", ["bwrap", "landlock", "none"])
def test_training_that_rewrites_its_code_rewrites_a_copy(journey: Journey, sandbox: str) -> None:
    rewriting = TRAIN + 'open("train.py", "a").write("raise SystemExit(3)\\n")\n'
    (journey.root / "train.py").write_text(rewriting, "utf-8")
    journey.harness("experiment", "new", "--hypothesis", "other code for the next seed")
    lower = () if sandbox == "bwrap" else ("--reason", "A test.")
    answer = journey.harness("train", "exp-0001", "--sandbox", sandbox, *lower, "--json")
    assert answer.exit_code == 0, answer.stdout
    assert len(answer.document["runs"]) == 3, "each seed runs what was registered"
    assert (journey.root / "train.py").read_text("utf-8") == rewriting
    assert judged(journey, "exp-0001") == []


def test_what_training_writes_beside_its_run_vanishes(journey: Journey) -> None:
    (journey.root / "train.py").write_text(
        TRAIN + 'open("out.log", "a").write("row\\n")\n', "utf-8"
    )
    journey.harness("experiment", "new", "--hypothesis", "writes a log")
    assert journey.harness("train", "exp-0001").exit_code == 0
    assert not (journey.root / "out.log").exists()
    assert judged(journey, "exp-0001") == []


def test_another_experiments_checkpoints_do_not_pass(journey: Journey) -> None:
    journey.harness("experiment", "new", "--hypothesis", "honest")
    assert journey.harness("train", "exp-0001").exit_code == 0
    assert judged(journey, "exp-0001") == []
    assert journey.harness("gate", "reject", "exp-0001", "--reason", "for the test").exit_code == 0
    copied = (
        "    np.save(path,"
        ' np.load(f".harness/experiments/exp-0001/runs/{log.run}/checkpoints/centroids.npy"))\n'
    )
    (journey.root / "train.py").write_text(
        TRAIN.replace("    np.save(path, centroids)\n", copied), "utf-8"
    )
    journey.harness("experiment", "new", "--hypothesis", "copied", "--parent", "exp-0001")
    assert journey.harness("train", "exp-0002").exit_code == 1, "no other run is in its workspace"
    config = journey.root / ".harness/config.toml"
    opened = 'readable = [".harness/experiments/exp-0001/runs"]\n'
    config.write_text(config.read_text("utf-8") + opened, "utf-8")
    assert journey.approve_changes().exit_code == 0
    journey.harness("experiment", "new", "--hypothesis", "copied", "--parent", "exp-0001")
    assert journey.harness("train", "exp-0003").exit_code == 0
    assert judged(journey, "exp-0003") == ["checkpoint_copied"] * 3


HOSTILE = {
    "a folder in the place of run.json": (
        'import os, pathlib\nrun = pathlib.Path(os.environ["HARNESS_RUN_DIR"])\n(run /'
        ' "run.json").unlink()\n(run / "run.json").mkdir()\n'
    ),
    "a folder in the place of evaluation.json": (
        "import os, pathlib\n"
        '(pathlib.Path(os.environ["HARNESS_RUN_DIR"]) / "evaluation.json").mkdir()\n'
    ),
}
NAMES = [
    "a\\0b",
    "checkpoints/loop",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("\\ud800", "x" * 5000)),
]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_folder_in_a_files_place_does_not_hold_up_the_run(journey: Journey, what: str) -> None:
    (journey.root / "train.py").write_text(TRAIN + HOSTILE[what], "utf-8")
    journey.harness("experiment", "new", "--hypothesis", what)
    answer = journey.harness("train", "exp-0001", "--json")
    assert answer.exit_code == 0, answer.stderr
    assert [run["status"] for run in answer.document["runs"]] == ["completed"] * 3
    assert judged(journey, "exp-0001") == []


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_checkpoint_name_is_a_finding(journey: Journey, name: str) -> None:
    row = (
        "import json, os\n"
        'run = os.environ["HARNESS_EXPERIMENT"] + "/" + os.environ["HARNESS_RUN"]\n'
        'loop = os.path.join(os.environ["HARNESS_RUN_DIR"], "checkpoints", "loop")\n'
        "os.symlink(loop, loop)\n"
        f'row = {{"event": "checkpoint", "run": run, "attempt": 1, "path": "{name}", "epoch":'
        " 10**400}\n"
        'with open(os.path.join(os.environ["HARNESS_RUN_DIR"], "metrics.jsonl"), "a") as stream:\n'
        '    stream.write(json.dumps(row) + "\\n")\n'
    )
    prefix = "import sys\nsys.set_int_max_str_digits(0)\n"
    (journey.root / "train.py").write_text(prefix + TRAIN + row, "utf-8")
    journey.harness("experiment", "new", "--hypothesis", "hostile names")
    answer = journey.harness("train", "exp-0001", "--json")
    assert answer.exit_code in (0, 1)
    assert "Traceback" not in answer.stderr
    assert all(run["status"] == "completed" for run in answer.document["runs"])
    assert "checkpoint_unreadable" in judged(journey, "exp-0001")
