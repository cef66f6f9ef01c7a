"""A person decides inside `harness claude`, with the real CLI: Claude runs the person's verb, the
person answers on their terminal, and the session goes on by itself."""

import shutil
import time

import pytest

from tests.cli.journey import Journey
from tests.interactive.gateway import bash, open_gateway
from tests.interactive.lab import must
from tests.interactive.place import cli
from tests.interactive.test_harness_claude import program
from tests.interactive.tmux import QUESTION, Terminal, code_on, interactive
from tests.judge.inside import SANDBOXES, left_over

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)


def resize(terminal: Terminal, columns: int, rows: int) -> None:
    terminal._tmux("resize-window", "-t", "main", "-x", str(columns), "-y", str(rows))


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_person_decides_and_the_session_goes_on(
    fresh: Journey, sandbox: str, columns: int, rows: int
) -> None:
    root = fresh.root
    must(fresh.harness("experiment", "new", "--hypothesis", "centroids"))
    discard = "harness gate reject exp-0001 --reason 'No gain on validation.'"
    prompts = {
        "PLEASE DISCARD IT": [[bash("first", f"{discard}; echo code $?")], "REFUSED-ONCE"],
        "PLEASE ASK AGAIN": [[bash("again", f"{discard}; echo code $?")], "WENT-ON"],
    }
    words = ("--permission-mode", "default", "--allowedTools", "Bash")
    with (
        open_gateway(prompts) as gateway,
        interactive(root, fresh.home, gateway, *words, program=program(sandbox)) as terminal,
    ):
        resize(terminal, columns, rows)
        terminal.say("PLEASE DISCARD IT", until=QUESTION)
        code_on(terminal)
        terminal.keys("Enter")
        terminal.wait_for("REFUSED-ONCE", gone=QUESTION)
        terminal.say("PLEASE ASK AGAIN", until=QUESTION)
        terminal.keys(code_on(terminal), "Enter")
        screen = terminal.wait_for("DISCARD exp-0001 by human:", "Press Enter to go back")
        assert "harness: exit 0." in screen
        terminal.keys("Enter")
        screen = terminal.wait_for("WENT-ON", gone=QUESTION)
        assert "Press Enter to go back" not in screen
        terminal.write("/status", sees="/status")  # what is typed reaches the CLI again
        results = "\n".join(str(request.body["messages"]) for request in gateway.requests)
    assert gateway.failure is None
    assert "The person refused" in results
    assert "on their terminal: exit 0." in results
    (row,) = must(fresh.harness("experiment", "list", "--json")).document["experiments"]
    assert row["status"] == "discarded"
    end = time.monotonic() + 20
    while left_over(fresh.home) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(fresh.home) == []


def test_in_a_plain_session_the_line_to_type_is_named(fresh: Journey) -> None:
    prompts = {"PLEASE APPROVE": [[bash("no", "harness plan approve")], "SAID-NO"]}
    with (
        open_gateway(prompts) as gateway,
        interactive(fresh.root, fresh.home, gateway, "--allowedTools", "Bash") as terminal,
    ):
        terminal.say("PLEASE APPROVE", until="SAID-NO")
        results = "\n".join(str(request.body["messages"]) for request in gateway.requests)
    assert gateway.failure is None
    assert f"cd '{fresh.root}' && harness plan approve`" in results.replace("\\'", "'")
    assert "`!` here does not do" in results


def test_a_hook_of_settings_answers_an_elicitation_for_the_person() -> None:
    """Why an elicitation proves no person: the CLI says so itself, in the schema of its hooks."""
    found = "programmatically accept or decline an MCP elicitation request"
    assert found.encode() in cli().resolve().read_bytes()
