"""Who begins beside others is told who they are, and what is shared with them."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.domain.grade import OPEN, PERSON, Caller, CallerKind
from harness.domain.statuses import SandboxKind
from harness.driver.vouching import vouching
from harness.judge.beside import beside
from harness.judge.identity import ISOLATED, announce
from harness.ledger.facts import SessionBegan
from harness.process import identity

LOOP = Caller(CallerKind.DRIVER, SandboxKind.BWRAP)
APART = "You share its ledger, the plan's budget and the looks."


@pytest.fixture
def project(tmp_path: Path) -> Any:
    layout = SimpleNamespace(state=tmp_path, root=tmp_path / "here")
    return SimpleNamespace(layout=layout, ledger=SimpleNamespace(sessions_began=list))


@pytest.fixture
def other() -> Iterator[int]:
    """A process that lives."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def test_who_is_alone_is_told_nothing(project: Any) -> None:
    (project.layout.state / "judge").mkdir()
    assert beside(project) == []


def test_a_session_in_the_same_tree_shares_its_experiment(project: Any) -> None:
    root = str(project.layout.root)
    more = {"folder": "/tmp/x", "root": root}
    state = project.layout.state
    session = announce(state, kind=ISOLATED, sandbox=SandboxKind.LANDLOCK, more=more)
    first, shared = beside(project)
    who = "A session of `harness claude` is at work in this working tree"
    assert first == f"{who} (process {identity()['pid']}, landlock)."
    assert "its files and its open experiment" in shared
    assert "`git worktree add ../NAME`" in shared
    session.withdraw()
    assert beside(project) == []


def test_a_loop_in_another_tree_shares_the_ledger(project: Any) -> None:
    state = project.layout.state
    with vouching(state, LOOP, Path("/elsewhere/side")):
        first, shared = beside(project)
    assert first.startswith("A loop of `harness run` is at work in /elsewhere/side (process ")
    assert shared == APART
    assert beside(project) == []


@pytest.mark.parametrize("caller", [OPEN, PERSON])
def test_a_tool_server_is_no_session(project: Any, caller: Caller) -> None:
    with vouching(project.layout.state, caller):
        assert beside(project) == []


def test_one_that_was_killed_is_at_work_no_more(project: Any) -> None:
    state, root = project.layout.state, str(project.layout.root)
    announce(state, kind=ISOLATED, sandbox=SandboxKind.BWRAP, more={"root": root})
    (file,) = (state / "judge").glob("*.json")
    file.write_text(file.read_text().replace(str(identity()["started"]), "1.0"))
    assert beside(project) == []


def test_a_plain_session_that_lives_lowers_scores(project: Any, other: int) -> None:
    alive = SessionBegan(session="a", process=identity(other))
    ended = replace(alive, session="b", process={**alive.process, "started": 1.0})
    unknown = replace(alive, session="c", process={})
    project.ledger.sessions_began = lambda: [(one, "") for one in (alive, ended, unknown)]
    first, shared = beside(project)
    assert first.startswith(f"A plain `claude` is at work in this project (process {other}):")
    assert "`session not isolated`" in first
    assert shared == APART
