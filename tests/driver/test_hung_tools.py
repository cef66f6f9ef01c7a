"""A tool that hangs goes on in its thread when its session is over: what it does then is refused,
and nothing is recorded, written or started."""

import importlib
import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from harness.contract.roles import ROLE_BY_NAME, ROLES
from harness.domain.statuses import SandboxKind
from harness.driver import supervisors
from harness.driver.tool_context import ToolContext
from harness.driver.tools import table
from harness.driver.tools.table import session_tools
from harness.ledger.facts import SessionEnded, SessionStarted
from harness.ledger.project import Project
from harness.process import identity

OPENS = {"hypothesis": "Nearest centres will do", "rationale": "They are far apart."}
SESSION = "build-1-1-abc"


class Hangs:
    """In place of a function: it waits until it is released, then is that function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.reached, self.released = threading.Event(), threading.Event()
        self.thread = threading.current_thread()

    def __call__(self, *words: Any, **more: Any) -> Any:
        self.thread = threading.current_thread()
        self.reached.set()
        self.released.wait()
        return self.function(*words, **more)


def begun(project: Project, name: str) -> ToolContext:
    """Of a session whose role has the tool `name`, after its start."""
    experiment = None if name == "open_experiment" else opened(project)
    role = next(role for role in ROLES if name in role.mcp_tools)
    started = SessionStarted(
        session=SESSION,
        role=role.name,
        experiment=experiment,
        step="build-1-1",
        sandbox=SandboxKind.NONE.value,
        driver=identity(),
    )
    project.ledger.append(started)
    return ToolContext(
        project,
        session=SESSION,
        role=role,
        sandbox=SandboxKind.NONE,
        experiment=experiment,
    )


def end(project: Project) -> None:
    ended = SessionEnded(session=SESSION, outcome="cut", detail="silent", turns=1, cost_usd=None)
    project.ledger.append(ended)


def called(context: ToolContext, name: str, hangs: Hangs, then: Callable[[], None]) -> Any:
    """What a tool answers whose call is cancelled while it hangs, and that is released after
    `then`."""
    answers: list[dict[str, Any]] = []

    def keep(answer: dict[str, Any]) -> dict[str, Any]:
        answers.append(answer)
        return content(answer)

    content = table._content
    (offered,) = [one for one in session_tools(context) if one.name == name]

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(offered.handler, ARGUMENTS[name])
            await anyio.to_thread.run_sync(hangs.reached.wait)
            group.cancel_scope.cancel()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_content", keep)
        try:
            anyio.run(cancelled)
            then()
        finally:
            hangs.released.set()
            hangs.thread.join()
    (answer,) = answers
    return answer


ARGUMENTS: dict[str, dict[str, Any]] = {
    "open_experiment": OPENS,
    "start_run": {},
    "record_result": {"claims": {}, "summary": "It works."},
    "hand_off": {"text": "I tried it."},
}
PLACES = {
    "open_experiment": ("driver.tools.open_experiment", "_own_experiment"),
    "start_run": ("driver.tools.start_run", "require_open_experiment"),
    "record_result": ("decisions.experiments", "render_result"),
    "hand_off": ("driver.tools.hand_off", "write_hand_off"),
}
"""Where it hangs: after it has looked, before it does anything."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command of each process that a tool starts; none is."""
    commands: list[list[str]] = []

    def start(command: list[str], **_more: Any) -> Any:
        commands.append(command)
        raise OSError("nothing is started here")

    monkeypatch.setattr(supervisors, "start", start)
    return commands


@pytest.mark.parametrize("name", list(PLACES))
def test_after_the_end_of_its_session_nothing_is_recorded_written_or_started(
    project: Project, monkeypatch: pytest.MonkeyPatch, started: list[list[str]], name: str
) -> None:
    context = begun(project, name)
    hangs = hanging(monkeypatch, name)
    left: list[Any] = []

    def over() -> None:
        end(project)
        left[:] = [project.ledger.position(), files(project)]

    answer = called(context, name, hangs, over)
    assert answer["error"]["code"] == "session_over", json.dumps(answer)
    assert SESSION in answer["error"]["message"]
    assert [project.ledger.position(), files(project)] == left
    assert started == []


@pytest.mark.parametrize("name", ["open_experiment", "record_result", "hand_off"])
def test_before_that_end_the_same_tool_does_its_work(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    context = begun(project, name)
    before = project.ledger.position(), files(project)
    answer = called(context, name, hanging(monkeypatch, name), lambda: None)
    assert "error" not in answer
    assert (project.ledger.position(), files(project)) != before


def test_before_that_end_a_run_is_started(
    project: Project, monkeypatch: pytest.MonkeyPatch, started: list[list[str]]
) -> None:
    context = begun(project, "start_run")
    hangs = hanging(monkeypatch, "start_run")
    hangs.released.set()
    (offered,) = [one for one in session_tools(context) if one.name == "start_run"]
    with pytest.raises(OSError, match="nothing is started here"):
        anyio.run(offered.handler, {})
    (command,) = started
    assert {"train", "exp-0001", SESSION} <= set(command)


def test_the_end_of_a_session_binds_its_own_tools_alone(project: Project) -> None:
    context = begun(project, "open_experiment")
    end(project)
    project.ledger.require_session()
    context.project.of_session("build-1-1-def").ledger.require_session()
    with project.ledger.transaction(), pytest.raises(Exception, match="ended at"):
        context.project.ledger.require_session()


def opened(project: Project) -> str:
    context = ToolContext(
        project, session="", role=ROLE_BY_NAME["model-builder"], sandbox=SandboxKind.NONE
    )
    anyio.run(table.tool_of("open_experiment").call, context, OPENS)
    return "exp-0001"


def hanging(monkeypatch: pytest.MonkeyPatch, name: str) -> Hangs:
    module, function = PLACES[name]
    found = importlib.import_module(f"harness.{module}")
    hangs = Hangs(getattr(found, function))
    monkeypatch.setattr(found, function, hangs)
    return hangs


def files(project: Project) -> dict[str, bytes]:
    """Of the project, by path."""
    paths = [path for path in project.layout.root.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in paths}
