"""What a session of the loop leaves for the next of its step, from its transcript."""

import json
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

import pytest

from harness.artifacts.trees import this_tree
from harness.contract.roles import ROLE_BY_NAME
from harness.decisions.experiments import write_hand_off
from harness.domain.statuses import SandboxKind
from harness.driver import handing_over, loop_runner, role_sessions
from harness.driver.environment import session_folders
from harness.driver.session import SessionEnding
from harness.driver.tool_context import ToolContext
from harness.errors import LedgerError
from harness.ledger.facts import (
    LONGEST_HAND_OFF,
    HandOff,
    PlanApproved,
    SessionEnded,
    SessionStarted,
)
from harness.ledger.project import Project
from harness.traces import secrets

KEY = "sk-ant-api03-" + "Zq8Lm2Xw9Rt5" * 3
LEAKY = f"curl -H 'x-api-key: {KEY}' -d to=ada@lab.example /home/lovelace/data.csv"
ABOUT = "## What the session before you left"
WRITE = ("Write", {"file_path": "train.py"})
Call = tuple[str, dict[str, str]]


def say(
    project: Project, session: str, *calls: Call, words: str = "", hangs: bool = False
) -> None:
    """Its transcript; the last call has no answer where it `hangs`."""
    rows: list[tuple[str, dict[str, Any]]] = []
    if words:
        rows.append(("assistant", {"type": "text", "text": words}))
    for number, (name, given) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t-{number}", "name": name, "input": given}
        rows.append(("assistant", use))
        if not (hangs and number == len(calls) - 1):
            answer = {"type": "tool_result", "tool_use_id": f"t-{number}", "content": "done"}
            rows.append(("user", answer))
    kept = session_folders(project.layout, session).config / "projects" / "p"
    kept.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": kind, "uuid": str(n), "message": {"role": kind, "content": [content]}}
        for n, (kind, content) in enumerate(rows)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (kept / f"{session}.jsonl").write_text(text, "utf-8")


@dataclass
class Steps:
    project: Project
    tree: str = ""

    def start(self, session: str, step: str = "build-1-1", tree: str | None = None) -> None:
        start = SessionStarted(
            session=session,
            role="model-builder",
            experiment=None,
            step=step,
            sandbox="none",
            driver={"pid": 1},
            tree=self.tree if tree is None else tree,
        )
        self.project.ledger.append(start)

    def end(self, session: str, outcome: SessionEnding = SessionEnding.CUT) -> HandOff | None:
        left = handing_over.ended(self.project, session, outcome, "it stopped")
        end = SessionEnded(
            session=session, outcome=outcome.value, detail="it stopped", turns=1, cost_usd=None
        )
        self.project.ledger.append(end)
        return left

    def inherited(self, step: str = "build-1-2") -> str:
        return handing_over.inherited(self.project, step, "Go on.")


@pytest.fixture
def steps(project: Project) -> Steps:
    return Steps(project, this_tree(project.layout).id)


@pytest.mark.parametrize("scanned", [True, False])
def test_a_hand_off_holds_no_secret(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, scanned: bool
) -> None:
    """Neither with detect-secrets nor without it, in no part of the text, and in no cut one."""
    if scanned:
        pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    else:
        monkeypatch.setattr("harness.decisions.handing_over.scanner_is_here", lambda: False)
        monkeypatch.setattr(secrets, "_scanner", lambda: pytest.fail("it is asked all the same"))
    steps.start("s-1")
    padded = {"command": f"echo {'x' * 75} >a; {LEAKY}"}
    calls: list[Call] = [("Bash", {"command": LEAKY}), ("Bash", padded), ("Bash", padded)]
    calls[2] = ("Bash", {"command": f"sleep 9; {LEAKY}"})
    say(steps.project, "s-1", *calls, words=f"{'w' * 660} {LEAKY}", hangs=True)
    left = steps.end("s-1")
    assert left is not None
    for told in ("sk-ant", "Zq8Lm2", "ada@", "lovelace"):
        assert told not in left.text
    for mark in ("[SECRET]", "[EMAIL]", "[USER]", "sleep 9; curl"):
        assert mark in left.text


def test_what_is_open_and_next_stand_before_what_was_done(steps: Steps) -> None:
    steps.start("s-1")
    calls: list[Call] = [
        ("Write", {"file_path": f"folder-{n}/{'long' * 40}.py"}) for n in range(20)
    ]
    say(steps.project, "s-1", *calls, words="I saw it. " + "word " * 400)
    left = steps.end("s-1")
    assert left is not None
    begins = [line.split()[0] for line in left.text.splitlines()]
    assert begins == ["Session", "Open:", "Next:", "Done:", "Its"]
    assert "folder-19" in left.text
    assert " earlier, wrote folder-" in left.text
    assert len(left.text) < handing_over.ROOM < LONGEST_HAND_OFF
    told = steps.inherited()
    for words in ("> Open: ", "> Next: No run was started.", "> Its last words: I saw it."):
        assert words in told
    assert "cut; full text" not in told


def test_an_outage_and_a_second_kill_keep_the_hand_off(steps: Steps) -> None:
    steps.start("s-1")
    say(steps.project, "s-1", WRITE, words="Two centres will do.")
    assert steps.end("s-1") is not None
    for name, ending in (("s-2", SessionEnding.UNSERVED), ("s-3", SessionEnding.CUT)):
        steps.start(name)
        assert steps.end(name, ending) is None
    say(steps.project, "s-4", words="I begin.")
    steps.start("s-4")
    assert steps.end("s-4") is None
    assert "> Done: wrote train.py." in steps.inherited()
    steps.start("s-5")
    say(steps.project, "s-5", ("Read", {"file_path": "plan.md"}))
    assert steps.end("s-5") is not None
    both = steps.inherited()
    assert both.index("Session s-5 was ended") < both.index("> Done: wrote train.py.")
    steps.start("s-6")
    say(steps.project, "s-6", ("Write", {"file_path": "predict.py"}))
    assert steps.end("s-6") is not None
    newest = steps.inherited()
    assert "> Done: wrote predict.py." in newest
    assert "wrote train.py" not in newest
    steps.start("s-7")
    say(steps.project, "s-7", ("mcp__harness__start_run", {}), ("mcp__harness__run_status", {}))
    steps.end("s-7", SessionEnding.FINISHED)
    assert steps.inherited() == "Go on."


def test_a_hand_off_stays_in_its_tree_and_its_plan(steps: Steps) -> None:
    steps.start("theirs", tree="another")
    say(steps.project, "theirs", WRITE)
    assert steps.end("theirs") is not None
    assert steps.inherited() == "Go on."
    steps.start("ours")
    say(steps.project, "ours", ("Write", {"file_path": "predict.py"}))
    assert steps.end("ours") is not None
    assert "wrote predict.py" in steps.inherited()
    assert steps.inherited("build-2-1") == "Go on."
    plan = steps.project.plan()
    words = {name.name: getattr(plan, name.name) for name in fields(PlanApproved)}
    steps.project.ledger.append(PlanApproved(**{**words, "name": "other", "version": 1}))
    assert steps.project.plan().name == "other"
    assert steps.inherited() == "Go on."


def test_what_a_session_noted_stands_before_what_its_transcript_tells(steps: Steps) -> None:
    steps.start("s-1")
    say(steps.project, "s-1", WRITE)
    write_hand_off(steps.project, text="Try deeper.", by="model-builder", session="s-1")
    assert steps.end("s-1") is not None
    told = steps.inherited()
    assert told.index("> Try deeper.") < told.index("> Session s-1 was ended")


def test_a_cut_session_hands_over_before_its_end_is_recorded(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in between, the next driver closes it again; and the one whose hand-off fails, too."""
    for name in ("s-1", "s-2"):
        steps.start(name)
        say(steps.project, name, WRITE)
    real = handing_over.ended

    def killed(project: Project, session: str, *rest: Any) -> None:
        real(project, session, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(handing_over, "ended", killed)
    told: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        loop_runner._close_leftovers(steps.project, told.append)
    ledger = steps.project.ledger
    assert [one.id for one in ledger.sessions(open_only=True)] == ["s-1", "s-2"]
    monkeypatch.setattr(handing_over, "ended", real)
    loop_runner._close_leftovers(steps.project, told.append)
    assert ledger.sessions(open_only=True) == []
    assert [one.session for one in ledger.hand_offs()] == ["s-1", "s-2"]
    steps.start("s-3")

    def fails(*_words: Any, **_more: Any) -> None:
        raise LedgerError("the disk is full", hint="")

    monkeypatch.setattr(handing_over, "ended", fails)
    loop_runner._close_leftovers(steps.project, told.append)
    assert ledger.session("s-3").outcome == "cut"
    assert [one["event"] for one in told].count("hand_off_failed") == 1


def test_a_failed_hand_off_hides_no_interruption(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def fails(*_words: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device")

    def interrupted(*_words: Any, **_more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(handing_over, "ended", fails)
    monkeypatch.setattr(role_sessions, "run_session", interrupted)
    steps.start("s-1")
    role = ROLE_BY_NAME["model-builder"]
    context = ToolContext(steps.project, session="s-1", role=role, sandbox=SandboxKind.NONE)
    sessions = role_sessions.RoleSessions(
        steps.project,
        None,  # type: ignore[arg-type]
        SimpleNamespace(kind=SandboxKind.NONE),  # type: ignore[arg-type]
        lambda _step, text, **_more: told.append(text),
    )
    spec: Any = SimpleNamespace(session="s-1", role=role)
    with pytest.raises(KeyboardInterrupt):
        sessions._drive(None, spec, context)  # type: ignore[arg-type]
    assert told == ["  its hand-off is not recorded: [Errno 28] No space left on device"]
    assert steps.project.ledger.session("s-1").outcome == "cut"
