"""What a person sees in the terminal of `claude`, at the sizes that terminals have: how a session
starts, a denial, a reminder, the status line; and an alarm that reaches a session which waits."""

import shlex
import shutil

import pytest

from harness.model_gateway.wire import newest_text, tool_results
from tests.centroids import TRAIN
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway, shown
from tests.interactive.lab import Lab, must
from tests.interactive.tmux import interactive
from tests.working_trees import clone, commit_all

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
PROGRAM = ".claude/hooks/harness/run.py"
LOSING = TRAIN.replace(
    '    log.epoch(0, {"loss":',
    "    import time\n    for lost in range(4):\n        time.sleep(1)\n"
    '        log.epoch(lost, {"loss": 1.0, "accuracy": float("nan")})\n'
    '    time.sleep(600)\n    log.epoch(9, {"loss":',
)
"""A metric that is no loss is not finite: an alarm that does not end the run."""


def words(screen: str) -> str:
    """The screen on one line: where a line breaks depends on the terminal's width."""
    return " ".join(screen.split())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=repr)
def test_the_start_a_denial_and_a_reminder(lab: Lab, size: tuple[int, int]) -> None:
    policy = shlex.quote(str(lab.kept()["policy"]))
    prompts = {"PLEASE CHANGE IT": [[bash("sh", f"echo x > {policy}")], "FIRST-ANSWER"]}
    home = lab.home / f"sees-{size[0]}"
    with (
        open_gateway(prompts) as gateway,
        interactive(lab.root, home, gateway, size=size) as terminal,
    ):
        line = "exp-0001 run-03 epoch 0 "
        screen = words(terminal.wait_for("startup says: harness:", line, "next: evaluate"))
        assert "harness: toy v1 approved, exp-0001 running, run-03 epoch 0;" in screen
        assert "next: harness evaluate exp-0001" in screen
        screen = words(terminal.say("PLEASE CHANGE IT", until="Noted."))
        assert "exp-0001 has runs that ended and no verdict" in screen
        assert PROGRAM not in screen.replace(" ", "")
    assert gateway.failure is None


def test_a_fresh_clone_names_one_command_and_works_after_it(fresh: Journey) -> None:
    """Its ledger is on another machine: every call is denied until the facts are imported."""
    commit_all(fresh.root)
    other = Journey(clone(fresh.root, fresh.root.parent / "clone"), fresh.home.parent / "another")
    other.home.mkdir()
    prompts = {
        "PLEASE LOOK": [[bash("no", "ls")], "IT-IS-DENIED"],
        "PLEASE LIST": [[bash("yes", "ls")], "IT-IS-LISTED"],
    }
    allowed = ("--allowedTools", "Bash")
    size = (120, 40)
    with open_gateway(prompts) as gateway:
        with interactive(other.root, other.home, gateway, *allowed, size=size) as terminal:
            screen = words(terminal.wait_for("startup says: harness:", "ledger import"))
            assert "harness: guards do not work" in screen
            screen = words(terminal.say("PLEASE LOOK", until="IT-IS-DENIED"))
            assert "every tool call is denied, next: " in screen
        must(other.harness("ledger", "import"))
        with interactive(other.root, other.home, gateway, *allowed, size=size) as terminal:
            terminal.wait_for("startup says: harness: toy v1 approved")
            terminal.say("PLEASE LIST", until="IT-IS-LISTED")
        results = [tool_results(item.body) for item in gateway.requests]
    assert gateway.failure is None
    assert any("harness ledger import" in told.get("no", "") for told in results)
    assert any("train.py" in told.get("yes", "") for told in results)


def test_an_alarm_wakes_a_session_that_waits(fresh: Journey) -> None:
    """`/harness:train` starts training and watch in the background, and the turn ends. Nobody types
    anything until the alarm's turn."""
    (fresh.root / "train.py").write_text(LOSING, "utf-8")
    must(fresh.harness("experiment", "new", "--hypothesis", "centroids"))
    started = [
        bash("train", "harness train exp-0001", run_in_background=True),
        bash("watch", "harness watch exp-0001 --until-alarm", run_in_background=True),
    ]
    look = call("look", "Read", file_path=str(fresh.root / "train.py"))
    prompts = {
        "Train an experiment": [started, "IT-TRAINS"],
        "task-notification": [[look], "I-HEARD-IT"],
    }
    with (
        open_gateway(prompts) as gateway,
        interactive(fresh.root, fresh.home, gateway, size=(100, 30)) as terminal,
    ):
        terminal.say("/harness:train exp-0001", until="IT-TRAINS")
        terminal.wait_for("I-HEARD-IT")
        screen = terminal.wait_for("alarm non_finite", "next: wait for the training")
        assert "exp-0001 run-01 epoch" in words(screen)
    assert gateway.failure is None
    woken = next(
        item for item in gateway.requests if "task-notification" in newest_text(item.body)
    )
    assert "watch" in newest_text(woken.body)
    assert "run-01 raised warning non_finite" in shown(gateway.requests[-1])
