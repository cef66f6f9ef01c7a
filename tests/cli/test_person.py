"""Who may call a human verb: a person at a terminal, nobody below an agent, whatever terminal it
makes itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.person import agent_marks, caller, require_person, session_of
from harness.errors import RefusedError
from tests.cli.journey import Again, Journey
from tests.screen import Screen
from tests.terminal import run_in_terminal

APPROVE = ("plan", "approve", "--json")


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("again"), ("init",))


@pytest.fixture
def journey(initialised: Again) -> Journey:
    return initialised.journey()


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    """A program of that name, which runs its arguments."""
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\n"$@"\nexit $?\n', "utf-8")
    program.chmod(0o755)
    return program


def without_terminal(journey: Journey, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=journey.root,
        env=journey.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_person_has_a_name_and_a_terminal() -> None:
    assert require_person("gate approve", {}, is_terminal=lambda: True).startswith("human:")
    with pytest.raises(RefusedError, match="not a terminal") as refused:
        require_person("gate approve", {}, is_terminal=lambda: False)
    assert refused.value.code == "no_terminal"
    assert "in your own terminal" in refused.value.hint
    assert require_person("init", {}, needs_terminal=False, is_terminal=lambda: False).startswith(
        "human:"
    )


@pytest.mark.parametrize("name", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "HARNESS_RUN_TOKEN"])
def test_below_an_agent_a_terminal_does_not_help(name: str) -> None:
    with pytest.raises(RefusedError, match=name) as refused:
        require_person("gate approve", {name: "1"}, is_terminal=lambda: True)
    assert refused.value.code == "human_verb"
    with pytest.raises(RefusedError):
        require_person("init", {name: "1"}, needs_terminal=False)


def test_who_calls_a_verb_that_agents_may_use() -> None:
    assert (caller({}), session_of({})) == ("human", None)
    inside = {"CLAUDE_CODE_SESSION_ID": "5b0c"}
    assert (caller(inside), session_of(inside)) == ("agent", "5b0c")


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "approve"),
        ("gate", "approve", "exp-0001", "--reason", "x"),
        ("gate", "reject", "exp-0001", "--reason", "x"),
        ("ledger", "import"),
    ],
    ids=" ".join,
)
def test_a_human_verb_wants_a_terminal(journey: Journey, words: tuple[str, ...]) -> None:
    answer = without_terminal(journey, *words, "--json")
    assert answer.returncode == 2
    assert '"code": "no_terminal"' in answer.stdout


def test_init_approves_nothing_and_wants_none(journey: Journey) -> None:
    assert without_terminal(journey, "init").returncode == 0


def test_a_terminal_below_a_claude_process_is_refused(journey: Journey, claude: Path) -> None:
    words = [claude, sys.executable, "-m", "harness", *APPROVE]
    answer = run_in_terminal(words, cwd=journey.root, env=journey.environment())
    assert answer.returncode == 2
    assert '"code": "human_verb"' in answer.stdout


@pytest.mark.skipif(
    shutil.which("script") is None or sys.platform == "darwin", reason="script of util-linux"
)
def test_a_terminal_made_by_script_is_refused_below_a_claude_process(
    journey: Journey, claude: Path
) -> None:
    command = f"{sys.executable} -m harness plan approve --json"
    words = ["script", "-qec", command, "/dev/null"]
    below = run_in_terminal([claude, *words], cwd=journey.root, env=journey.environment())
    assert below.returncode == 2
    assert "human_verb" in below.stdout
    alone = run_in_terminal(words, cwd=journey.root, env=journey.environment())
    assert (alone.returncode, "human_verb" in alone.stdout) == (0, False)


def on_terminal(journey: Journey, *words: str) -> Screen:
    return Screen([sys.executable, "-m", "harness", *words], journey.environment(), journey.root)


def test_asked_for_a_plan_of_a_session_a_person_reads_all_of_it(journey: Journey) -> None:
    receipts = journey.root / ".harness/receipts"
    receipts.mkdir(exist_ok=True)
    (receipts / "s-1.jsonl").write_text("{}\n", "utf-8")  # a session was here
    for typed, code, said in (
        ("", 2, "it was not confirmed"),
        ("yes", 0, "approved toy version 1"),
    ):
        screen = on_terminal(journey, "plan", "approve", "--ask")
        screen.wait_for("Type yes")
        assert "oracle: metric=accuracy" in screen.seen
        screen.write(f"{typed}\n")
        assert (screen.end(), said in screen.seen) == (code, True)
        assert (journey.root / "data/held_out.npz").exists() == (code == 2)


def test_what_is_accepted_is_what_was_shown(journey: Journey) -> None:
    guard = journey.root / ".claude/hooks/harness/run.py"
    guard.write_text(guard.read_text("utf-8") + "# mine\n", "utf-8")
    for meanwhile, code in ((True, 2), (False, 0)):
        screen = on_terminal(journey, "audit", "--accept", "--ask")
        screen.wait_for("Type yes")
        assert "changed: .claude/hooks/harness/run.py" in screen.seen
        if meanwhile:
            guard.write_text(guard.read_text("utf-8") + "# and another line\n", "utf-8")
        screen.write("yes\n")
        assert (screen.end(), "a moment ago" in screen.seen) == (code, meanwhile)


def test_the_refusal_names_the_line_to_type(journey: Journey) -> None:
    words = ("gate", "approve", "exp-0001", "--reason", "It holds.", "--json")
    hint = journey.harness(*words, CLAUDECODE="1").document["error"]["hint"]
    assert f"`cd {journey.root} && harness gate approve exp-0001 --reason 'It holds.'`" in hint
    assert "`!` in Claude Code does not do" in hint
    assert "the person is asked on their terminal" in hint
    other = journey.harness("ledger", "import", "--json", CLAUDECODE="1").document["error"]["hint"]
    assert "harness claude" not in other


def test_nobody_is_an_agent_by_default() -> None:
    assert agent_marks({}) == []


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--ask"),
        ("plan", "approve", "--ask", "--changes", "0" * 32),
        ("watch", "exp-0001", "--until-alarm", "--json"),
    ],
    ids=" ".join,
)
def test_options_that_say_nothing_together_are_refused(
    journey: Journey, words: tuple[str, ...]
) -> None:
    answer = journey.harness(*words)
    assert answer.exit_code == 2
    assert "--" in answer.stderr + answer.stdout
