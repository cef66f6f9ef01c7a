"""What a new user meets in the first hour, as it is typed: a mistyped command, one checkpoint at the
end, a predict that is mended after training, a child that is no better. Each says what leads on."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import Answer, Journey, make_project

EPOCHS = 30
ONCE = (
    TRAIN.replace("total_epochs=1", f"total_epochs={EPOCHS}")
    .replace("    log.epoch(0,", f"    for epoch in range({EPOCHS}):\n        log.epoch(epoch,")
    .replace(".mean())})", ".mean()) / (epoch + 1)})")
    .replace("epoch=0, final", f"epoch={EPOCHS - 1}, final")
)
"""Many epochs, and one checkpoint at the end."""
BROKEN = "raise SystemExit('there is no model')\n"
WAY = "`harness evaluate exp-0001 --predict-from .`"


@dataclass
class Hour:
    journey: Journey
    said: dict[str, Answer] = field(default_factory=dict)
    due: dict[str, dict[str, str]] = field(default_factory=dict)
    """The next step that everything else showed after each command."""

    def __call__(self, name: str, *words: str, code: int = 0) -> Answer:
        answer = self.said[name] = self.journey.harness(*words)
        assert answer.exit_code == code, (words, answer.stdout, answer.stderr)
        self.due[name] = self.shown()
        return answer

    def shown(self) -> dict[str, str]:
        kept = self.journey.root / ".harness"
        standing = json.loads((kept / "policy.json").read_text("utf-8"))["standing"]
        state = (kept / "memory/STATE.md").read_text("utf-8").partition("- next step: ")[2]
        briefing = (
            (kept / "memory/BRIEFING.md").read_text("utf-8").partition("## Next step\n\n")[2]
        )
        return {
            "hooks": standing["text"],
            "state": state.partition("\n")[0].replace("`", ""),
            "briefing": briefing.partition("\n")[0].replace("`", ""),
        }

    def write(self, name: str, text: str) -> None:
        (self.journey.root / name).write_text(text, "utf-8")

    def judged(self, name: str, experiment: str) -> None:
        self(f"score of {name}", "evaluate", experiment)
        self("result", "experiment", "result", experiment, "--summary", "As measured.")
        self(name, "gate", "check", experiment)
        self(f"{name} as JSON", "gate", "check", experiment, "--json")


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Hour:
    base = tmp_path_factory.mktemp("hour")
    hour = Hour(make_project(base / "project", base / "home"))
    hour.write("train.py", ONCE)
    hour.write("predict.py", BROKEN)
    hour("init", "init")
    hour("approve", "plan", "approve")
    hour("new", "experiment", "new", "--hypothesis", "centroids")
    config = Path(".harness/experiments/exp-0001/config.yaml")
    hour.write(str(config), "model: centroids\n")
    typo = ("train", "exp-0001", "--json", "--", "python", "trian.py")
    hour("typo", *typo, code=2)
    hour("no program", "train", "exp-0001", "--json", "--", "trian", code=2)
    hour("before", "experiment", "show", "exp-0001", "--json")
    hour("trained", "train", "exp-0001")
    hour("typo later", *typo, code=2)
    hour("trained before", "experiment", "show", "exp-0001", "--json")
    hour("failed", "evaluate", "exp-0001", code=1)
    hour.write("predict.py", PREDICT)
    hour("mended", "evaluate", "exp-0001", code=1)
    hour("mended as JSON", "evaluate", "exp-0001", "--json", code=1)
    hour("taken", "train", "exp-0001", "--from", "exp-0001")
    hour.judged("first", "exp-0001")
    hour("kept", "gate", "reject", "exp-0001", "--reason", "The next one.")
    parent = ("--parent", "exp-0001")
    hour("child", "experiment", "new", "--hypothesis", "the same", *parent)
    hour.write(str(config).replace("0001", "0002"), "model: centroids\n")
    hour.write("train.py", ONCE.replace("// 4", "// 3"))
    hour("trained child", "train", "exp-0002")
    hour.judged("second", "exp-0002")
    hour("status", "status")
    return hour


TOLD = {
    "approve": 'try an idea: harness try "IDEA"',
    "new": "harness train exp-0001",
    "trained": "harness evaluate exp-0001",
    "failed": "mend predict: harness try --continue",
    "taken": "harness evaluate exp-0001",
    "score of first": "write the result: harness experiment result exp-0001 --summary TEXT",
    "first": "decide: harness keep exp-0001 (by a person)",
    "kept": 'try an idea: harness try "IDEA"',
    "trained child": "harness evaluate exp-0002",
    "result": "ask the gate: harness gate check exp-0002",
    "second": "decide: harness gate reject exp-0002 --reason TEXT (by a person)",
}


def test_each_verb_ends_with_the_step_that_all_pages_and_hooks_say(hour: Hour) -> None:
    for name, told in TOLD.items():
        assert hour.due[name] == dict.fromkeys(("hooks", "state", "briefing"), told), name
        (line,) = [
            line for line in hour.said[name].stdout.splitlines() if line.startswith("next: ")
        ]
        assert line.replace("`", "").startswith(f"next: {told}"), name
    assert f"next     {TOLD['second']}" in hour.said["status"].stdout.replace("`", "")


def test_a_mistyped_command_registers_no_run_and_counts_for_no_seed(hour: Hour) -> None:
    for name, told in (("typo", "trian.py is not in the project"), ("no program", "no program")):
        error = hour.said[name].document["error"]
        assert error["code"] == "command_not_found"
        assert told in error["message"]
        assert "No run was registered, and no seed is used up" in error["message"]
    hint = hour.said["typo"].document["error"]["hint"]
    assert hint == "Did you mean `harness train exp-0001 -- python train.py`?"
    assert hour.said["before"].document["runs"] == []
    runs = hour.said["trained before"].document["runs"]
    assert [run["status"] for run in runs] == ["completed"] * 3
    assert hour.said["typo later"].document["error"]["code"] == "command_not_found"


def test_one_checkpoint_at_the_end_raises_no_alarm_in_classical_ml(hour: Hour) -> None:
    document = hour.said["trained before"].document
    # The misspelt predict of this project is told of beside its training.
    assert {alarm["code"] for alarm in document["alarms"]} <= {"predict_fails"}
    assert {run["rows"] for run in document["runs"]} == {EPOCHS + 3}


def test_evaluate_says_how_a_mended_predict_is_used(hour: Hour) -> None:
    failed = hour.said["failed"].stdout
    assert "predict runs by the code that is registered with the run" in failed
    assert f"When predict is mended, with the same weights: {WAY}." in failed
    mended = hour.said["mended"].stdout
    assert "predict.py has changed since, and was not used." in mended
    assert f"For the code as it is now, with the same weights: {WAY}." in mended
    assert WAY in hour.said["mended as JSON"].document["next"][0]


def test_the_way_leads_on_and_a_score_of_unchanged_code_says_nothing_of_it(hour: Hour) -> None:
    scored = hour.said["score of first"].stdout
    assert "recomputed" in scored
    assert "registered with the run" not in scored


def test_the_gate_shows_what_the_comparison_came_to(hour: Hour) -> None:
    first, second = hour.said["first"].stdout, hour.said["second"].stdout
    assert "  compared with trivial predictor: +" in first
    assert "better by more than the noise" in first
    assert "KEEP needs better" not in first
    assert "next: decide: `harness keep exp-0001` (by a person)" in first
    assert "exp-0002  validation gate: PASS" in second
    assert "  compared with exp-0001: " in second
    assert "PASS says that the numbers are true and reach a tier. KEEP needs better" in second
    assert "next: decide: `harness gate reject exp-0002 --reason TEXT` (by a person)" in second
    assert "; or keep it all the same: `harness keep exp-0002 --reason TEXT`" in second
    document = hour.said["second as JSON"].document
    assert (document["verdict"], document["comparison"]["better"]) == ("PASS", False)
    assert document["compared"][0].startswith("  compared with exp-0001: ")
