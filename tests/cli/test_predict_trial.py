"""A predict that cannot be scored is told while the first seed trains, with its own error and what to
do, and the training goes on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import PLAN, Journey, make_project

BROKEN = "raise SystemExit('there is no model in it')\n"
WAITING = TRAIN.replace("epoch=0, final=True)", "epoch=0)") + (
    "    import os, time\n"
    "    for _ in range(2400):\n"
    "        time.sleep(0.05)\n"
    "        if os.path.exists(os.path.join(os.environ['HARNESS_RUN_DIR'], 'go')):\n"
    "            break\n"
    "    log.checkpoint_saved(path, epoch=0, final=True)\n"
)
"""Goes on once the test says so."""


def begun(tmp_path: Path, predict: str) -> Journey:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for name, text in (
        ("plan.md", PLAN.replace("seeds: 3", "seeds: 1")),
        ("train.py", WAITING),
        ("predict.py", predict),
    ):
        (journey.root / name).write_text(text, "utf-8")
    for words in (("init",), ("plan", "approve"), ("experiment", "new", "--hypothesis", "c")):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, answer.stderr
    return journey


def training(journey: Journey) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "train", "exp-0001"],
        cwd=journey.root,
        env=journey.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: "subprocess.Popen[str]", word: str) -> str:
    """The line of stderr that has `word`."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    raise AssertionError(f"it ended without {word!r}")


def go_on(journey: Journey) -> None:
    (journey.root / ".harness/experiments/exp-0001/runs/run-01/go").touch()


def test_it_is_told_while_training_goes_on(tmp_path: Path) -> None:
    journey = begun(tmp_path, BROKEN)
    with training(journey) as process:
        try:
            line = told(process, "predict does not answer")
            assert "8 training rows with run-01's checkpoint of epoch 0" in line
            assert "there is no model in it" in line
            assert "Mend predict while training goes on" in line
            assert "`harness evaluate exp-0001 --check`" in line
            assert process.poll() is None
            shown = journey.harness("watch", "--once", "--plain")
            assert "predict_fails" in shown.stdout
            (journey.root / "predict.py").write_text(PREDICT, "utf-8")
            checked = journey.harness("evaluate", "--check")
            assert checked.exit_code == 0, checked.stdout + checked.stderr
            assert "When all seeds are trained" in checked.stdout
        finally:
            go_on(journey)
        assert process.wait(30) == 0
    document = journey.harness("experiment", "show", "--json").document
    assert [(one["code"], one["severity"]) for one in document["alarms"]] == [
        ("predict_fails", "note")
    ]
    scored = journey.harness("evaluate", "--predict-from", ".")
    assert scored.exit_code == 0, scored.stdout
    # A note asks for no diagnosis.
    journey.harness("experiment", "result", "--summary", "As measured.")
    verdict = journey.harness("gate", "check", "--json").document
    assert (verdict["verdict"], "alarm_undiagnosed" in json.dumps(verdict)) == ("PASS", False)


@pytest.mark.parametrize(
    ("predict", "sandbox", "said"),
    [
        (PREDICT, (), "predict answers 8 training rows with run-01's checkpoint of epoch 0"),
        (
            PREDICT.replace('id=table["id"]', 'id=table["id"][:7]').replace(
                "prediction=nearest", "prediction=nearest[:7]"
            ),
            (),
            "predict does not answer",
        ),
        (
            BROKEN,
            ("--sandbox", "none", "--reason", "A test."),
            "predict was not tried beside the training: there is no sandbox",
        ),
    ],
)
def test_it_says_what_came_of_it(
    tmp_path: Path, predict: str, sandbox: tuple[str, ...], said: str
) -> None:
    journey = begun(tmp_path, predict)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "train", "exp-0001", *sandbox],
        cwd=journey.root,
        env=journey.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            line = told(process, "predict ")
        finally:
            go_on(journey)
        assert process.wait(30) == 0
    assert said in line
    if "7]" in predict:
        assert "1 of 8" in line or "no prediction" in line
