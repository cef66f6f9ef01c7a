"""What a person sees without asking: one line when a session starts, and the status line."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hook_project import REPOSITORY, HookProject

from harness.runs.run_tail import epoch_event

STANDING = {
    "plan": "toy v1",
    "best": "0.91",
    "next": "decide",
    "command": "harness gate approve exp-0002",
    "text": "decide: harness gate approve exp-0002 (by a person)",
}
STATUS = {"epoch": 3, "total_epochs": 4, "metrics": {"accuracy": 0.9, "loss": 0.27182}}
RUN = ".harness/experiments/exp-0002/runs/run-01"


@pytest.fixture
def trained(sound: HookProject) -> HookProject:
    """exp-0002 with one run of which the snapshot says that it goes on."""
    save(sound)
    sound.write(f"{RUN}/training_status.json", json.dumps(STATUS))
    return sound


def save(project: HookProject, standing: Any = STANDING, **current: Any) -> None:
    known = [
        *project.snapshot["artifacts"],
        *(
            {"name": name, "glob": f".harness/experiments/*/runs/*/{file}", "writer": "harness"}
            for name, file in (("status", "training_status.json"), ("alarms", "alarms.jsonl"))
        ),
    ]
    described = {**project.snapshot["open_experiment"], "runs": 1, "ended": 0, **current}
    changes = {"open_experiment": described, "artifacts": known, "standing": standing}
    project.save({**project.snapshot, "mode": "interactive", "role": None, **changes})


def status_line(project: HookProject, **environment: str) -> str:
    payload = {"session_id": "s-1", "cwd": str(project.root), "model": {"id": "m"}}
    before = project.receipts()
    answer = project.start("StatusLine", json.dumps(payload).encode(), **environment)
    assert (answer.code, answer.errors) == (0, "")
    assert project.receipts() == before
    return answer.output


def opening(project: HookProject) -> str:
    return project.event("SessionStart", source="startup").person


def test_both_say_where_the_work_stands(trained: HookProject):
    assert status_line(trained) == (
        "exp-0002 run-01 epoch 3/3 loss 0.272, best 0.91, next: decide\n"
    )
    assert opening(trained) == (
        "harness: toy v1 approved, exp-0002 open, run-01 epoch 3/3;"
        " next: decide: harness gate approve exp-0002 (by a person)"
    )


def test_the_newest_run_counts_and_a_loss_by_another_name(trained: HookProject):
    (trained.root / RUN).with_name("run-02").mkdir()
    assert status_line(trained).startswith("exp-0002 run-02, best")
    metrics = {"train_accuracy": 1.0, "train_loss": "NaN"}
    status = {"epoch": 7, "total_epochs": None, "metrics": metrics}
    trained.write(f"{RUN[:-1]}2/training_status.json", json.dumps(status))
    assert status_line(trained).startswith("exp-0002 run-02 epoch 7 train_loss NaN, best")


def test_an_alarm_stands_there_until_it_is_explained(trained: HookProject):
    rows = [
        {"code": "stall", "severity": "warning", "row": 2},
        {"code": "note_only", "severity": "note", "row": 3},
    ]
    trained.write(f"{RUN}/alarms.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert "loss 0.272 alarm stall, best" in status_line(trained)
    assert "run-01 epoch 3/3, alarm stall; next: " in opening(trained)
    save(trained, ended=1, undiagnosed=["run-01"])
    assert "loss 0.272 alarm stall, best" in status_line(trained)
    save(trained, ended=1, undiagnosed=[])
    assert "alarm" not in status_line(trained)
    assert "alarm" not in opening(trained)


@pytest.mark.parametrize(
    ("epoch", "total", "shown"),
    [
        (0, 1, "epoch 0"),
        (1, 2, "epoch 1/1"),
        (2, 1, "epoch 2"),
        (4, 4, "epoch 4"),
        (3, 9, "epoch 3/8"),
    ],
)
def test_epochs_are_counted_as_train_counts_them_and_never_beyond_their_end(
    trained: HookProject, epoch: int, total: int, shown: str
):
    status = {"epoch": epoch, "total_epochs": total, "metrics": {}}
    trained.write(f"{RUN}/training_status.json", json.dumps(status))
    assert status_line(trained).startswith(f"exp-0002 run-01 {shown}, best")
    told = epoch_event("run-01", {"event": "epoch", "epoch": epoch, "metrics": {}}, total)
    assert told["text"].strip() == f"run-01  {shown}"


def test_in_a_narrow_terminal_the_next_step_has_a_line_of_its_own(trained: HookProject):
    where = "exp-0002 run-01 epoch 3/3 loss 0.272, best 0.91"
    assert status_line(trained, COLUMNS="60") == f"{where}\nnext: decide\n"
    assert status_line(trained, COLUMNS="80") == f"{where}, next: decide\n"
    assert status_line(trained, COLUMNS="x") == f"{where}, next: decide\n"


def test_without_a_plan_or_an_experiment_the_next_step_is_said(sound: HookProject):
    standing = {"plan": "", "best": "", "next": "approve a plan", "text": "harness plan x"}
    sound.save({**sound.snapshot, "open_experiment": None, "standing": standing})
    assert status_line(sound) == "next: approve a plan\n"
    assert opening(sound) == "harness: no plan approved; next: harness plan x"


def test_a_snapshot_of_an_older_harness_says_what_it_can(sound: HookProject):
    assert status_line(sound) == "exp-0002\n"
    assert opening(sound) == "harness: exp-0002 open"
    sound.save({**sound.snapshot, "open_experiment": None})
    assert status_line(sound) == ""
    assert opening(sound) == "harness: no experiment is open here"


def test_what_training_wrote_there_is_shown_as_numbers_and_names_only(trained: HookProject):
    metrics = {"\x1b[31mloss": 1, "a very long name of thirty signs_loss": 2, "x\nloss": 3}
    status = {"epoch": "3; rm", "total_epochs": True, "metrics": {**metrics, "loss": "0.1\x07"}}
    trained.write(f"{RUN}/training_status.json", json.dumps(status))
    trained.write(f"{RUN}/alarms.jsonl", json.dumps({"code": "a\x1bb"}))
    assert status_line(trained) == "exp-0002 run-01, best 0.91, next: decide\n"


@pytest.mark.parametrize("damage", ["pipe", "link", "torn", "list", "gone"])
def test_a_damaged_status_file_is_passed_over(trained: HookProject, damage: str):
    path = trained.root / RUN / "training_status.json"
    path.unlink()
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "link":
        path.symlink_to(trained.root / "plan.md")
    elif damage != "gone":
        path.write_text('{"epoch": 3' if damage == "torn" else "[3]")
    assert status_line(trained) == "exp-0002 run-01, best 0.91, next: decide\n"


def test_a_missing_policy_is_said_with_the_command_that_mends_it(trained: HookProject):
    (trained.root / ".harness/policy.json").unlink()
    assert status_line(trained) == "harness: every tool call is denied, next: harness render\n"
    assert opening(trained) == (
        "harness: guards do not work: every tool call is denied, for .harness/policy.json cannot"
        " be used; run: harness render"
    )


@pytest.mark.parametrize(
    ("file", "text", "said", "command"),
    [
        ("settings.local.json", '{"env": {"HOME": "/x"}}', "sets the variable HOME,", "doctor"),
        ("settings.local.json", "{", "is no readable JSON: ", "doctor"),
        ("settings.json", '{"disableAllHooks": true}', "has disableAllHooks,", "doctor"),
        ("settings.json", '{"hooks": {}}', "lacks the harness's guard for", "init"),
        ("settings.json", None, "is gone, and with it the harness's hooks;", "init"),
    ],
)
def test_settings_that_kill_guards_are_said_with_what_mends_them(
    sound: HookProject, file: str, text: str | None, said: str, command: str
):
    path = sound.root / ".claude" / file
    path.unlink() if text is None else path.write_text(text)
    line = opening(sound)
    assert line.startswith(f"harness: guards do not work: .claude/{file} {said}")
    assert line.endswith(f"; run: harness {command}")
    assert "terminal" not in line  # the hint is for the model


def test_the_plugins_is_a_line_of_the_persons_own_settings(trained: HookProject, tmp_path: Path):
    """As docs/hooks.md has it: a shell runs it, and no variable names project or plugin."""
    page = (REPOSITORY / "docs/hooks.md").read_text("utf-8")
    line = re.search(r'"command": "(CLAUDE_PLUGIN_ROOT=[^"]*)"', page)
    assert line
    command = [
        "sh",
        "-c",
        line[1].replace("PLUGIN ", f"{REPOSITORY} ").replace("PLUGIN/", f"{REPOSITORY}/"),
    ]
    environment = {**trained.environment}
    del environment["CLAUDE_PROJECT_DIR"]
    for folder, shown in ((trained.root, "exp-0002 run-01 epoch 3/3"), (tmp_path / "home", "")):
        folder.mkdir(exist_ok=True)
        payload = json.dumps({"session_id": "s-1", "cwd": str(folder)}).encode()
        ended = subprocess.run(
            command, input=payload, env=environment, cwd=folder, capture_output=True
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert ended.stdout.decode().startswith(shown)
        assert bool(ended.stdout) is bool(shown)


class TestOwnLine:
    """The status line of the person's own settings, which the project's hides."""

    @pytest.fixture
    def mine(self, trained: HookProject) -> HookProject:
        (trained.folder / "home/.claude").mkdir(parents=True)
        return trained

    def say(self, project: HookProject, command: Any) -> None:
        entry = {"type": "command", "command": command}
        settings = project.folder / "home/.claude/settings.json"
        settings.write_text(json.dumps({"statusLine": entry}))

    def test_comes_first_with_its_colours_and_the_same_input(self, mine: HookProject):
        self.say(mine, "printf '\\033[31m'; cat | tr -d '\\n'; printf '\\nsecond'")
        first, second, ours = status_line(mine).splitlines()
        assert first.startswith("\x1b[31m")
        assert json.loads(first[5:])["model"] == {"id": "m"}
        assert (second, ours[:8]) == ("second", "exp-0002")

    def test_stands_in_another_folder_of_claude(self, mine: HookProject, tmp_path: Path):
        self.say(mine, "echo not here")
        (tmp_path / "settings.json").write_text(
            json.dumps({"statusLine": {"type": "command", "command": "echo here"}})
        )
        assert status_line(mine, CLAUDE_CONFIG_DIR=str(tmp_path)).startswith("here\nexp-0002")

    def test_is_shown_whatever_fails_in_ours(self, mine: HookProject):
        self.say(mine, "echo theirs")
        (mine.root / ".harness/config.toml").unlink()
        assert status_line(mine) == "theirs\n"

    @pytest.mark.parametrize("command", ["exit 3", "/nowhere/program 2>/dev/null", 3, None, ""])
    def test_may_fail_and_ours_is_shown(self, mine: HookProject, command: Any):
        self.say(mine, command)
        assert status_line(mine).startswith("exp-0002 run-01")

    def test_is_not_ours_again(self, mine: HookProject):
        self.say(mine, f'/usr/bin/python3 -I -S "{mine.programs}"/run.py StatusLine')
        assert status_line(mine).count("exp-0002") == 1

    def test_does_not_hang_on_a_program_that_reads_nothing(self, mine: HookProject):
        self.say(mine, "exec 0<&-; echo quick")
        assert status_line(mine).startswith("quick\nexp-0002")
