"""`claude` in a terminal, as a person uses it: typed prompts, screens read, the scripted model
behind it."""

import shlex
import shutil

import pytest

from harness.model_gateway.wire import newest_text
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway, shown
from tests.interactive.lab import Lab, must
from tests.interactive.tmux import interactive

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)

COMMANDS = (
    "status",
    "prime",
    "experiment",
    "train",
    "watch",
    "gate",
    "decisions",
    "doctor",
    "handoff",
    "plan",
    "try",
    "evaluate",
    "report",
)


def test_a_person_works_in_a_terminal(lab: Lab) -> None:
    policy, settings = (shlex.quote(str(lab.kept()[name])) for name in ("policy", "settings"))
    tries = [
        bash("sh", f"echo x > {policy}"),
        call("write", "Write", file_path=str(lab.kept()["artifact"]), content="x"),
        bash("cd", f"cd sub && echo x > {settings}"),
        call("fine", "Write", file_path=str(lab.root / "typed.py"), content="x = 1\n"),
    ]
    prompts = {
        "PLEASE CHANGE WHAT IS KEPT": [tries, "FIRST-ANSWER"],
        "PLEASE GO ON": ["SECOND-ANSWER"],
    }
    with (
        open_gateway(prompts) as gateway,
        interactive(lab.root, lab.home / "terminal", gateway) as terminal,
    ):
        before = lab.hashes()
        screen = terminal.say("PLEASE CHANGE WHAT IS KEPT", until="Noted.")
        assert "FIRST-ANSWER" in screen
        assert "hook error" in screen
        assert (lab.root / "typed.py").read_text("utf-8") == "x = 1\n"
        assert lab.hashes() == before
        terminal.say("/clear", until="/clear", gone="FIRST-ANSWER")
        terminal.say("PLEASE GO ON", until="SECOND-ANSWER")
    assert gateway.failure is None
    briefing = (lab.root / ".harness/memory/BRIEFING.md").read_text("utf-8").strip()
    cleared = next(item for item in gateway.requests if "PLEASE GO ON" in newest_text(item.body))
    assert "FIRST-ANSWER" not in shown(cleared)
    assert briefing in shown(gateway.requests[0])
    assert briefing in shown(cleared)


def test_commands_are_at_hand_beside_those_of_the_cli(fresh: Journey) -> None:
    """Typed in a terminal: listed by their prefix, answered by the harness, and nothing of the
    CLI's own is hidden."""
    must(fresh.harness("experiment", "new", "--hypothesis", "centroids"))
    prompts = {"The harness says": ["STATUS-ANSWER"], "The gate's answer": ["GATE-ANSWER"]}
    with (
        open_gateway(prompts) as gateway,
        interactive(fresh.root, fresh.home, gateway) as terminal,
    ):
        for name in COMMANDS:
            terminal.write(f"/harness:{name[:3]}", sees=f"/harness:{name} ")
            terminal.keys("C-u")
            terminal.wait_for(gone=f"/harness:{name} ")
        terminal.say("/harness:status", until="STATUS-ANSWER")
        terminal.say("/harness:gate exp-0001", until="GATE-ANSWER")
        terminal.say("/status", until="Setting sources")
        terminal.keys("Escape")
        terminal.wait_for(gone="Setting sources")
        terminal.say("/help", until="Custom commands")
        terminal.keys("Escape")
        terminal.wait_for(gone="Custom commands")
    assert gateway.failure is None
    status, gate = (
        newest_text(item.body)
        for item in gateway.requests
        if "Stop hook" not in newest_text(item.body)
    )
    assert "exp-0001" in status
    assert "FAIL" in gate
    assert "harness train" in gate
