"""A loop that is killed -9 in the middle of its work, through the real CLI. The model of the next
one knows nothing but its first request: what the hand-off says decides what it does."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, play, tool, write_scenario

from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.driver.environment import session_folders
from harness.driver.loop_runner import open_gateway
from harness.ledger.phases import due_phase
from harness.ledger.project import Project
from harness.ledger.verify import verify
from harness.model_gateway.gateway import Gateway, Reply
from harness.model_gateway.scenario import Scenario, ScenarioSession
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.wire import RecordedRequest, newest_text
from tests.scenarios.test_cut_loops import PACKAGE, until

GATED = PLAN.replace("loop: {", "gates: {mode: auto, phases: true}\nloop: {")
FOUND = "200 rows, of two labels, none twice."


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = make_project(tmp_path / "a project")
    (root / "plan.md").write_text(GATED, "utf-8")
    with approved(root, os.environ) as opened:
        yield opened


def pause(identifier: str = "pause") -> dict[str, Any]:
    words = "python -c 'import time; time.sleep(120)'"
    return tool(identifier, "Bash", command=words, description="Wait")


def engineer(*turns: dict[str, Any]) -> dict[str, Any]:
    return {"role": "data-engineer", "experiment": 0, "attempt": 1, "turns": [*turns]}


def kill_loop(
    project: Project, scenario: Path, sandbox: SandboxKind, when: Callable[[], bool]
) -> None:
    """Start `harness run` in a process of its own, and kill it -9 as soon as `when`."""
    words = ["run", "plan.md", "--scenario", str(scenario), "--sandbox", sandbox.value]
    driver = subprocess.Popen(
        [sys.executable, "-m", "harness", *words, "--reason", "A test.", "--json"],
        cwd=project.layout.root,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: when() or driver.poll() is not None)
        assert driver.returncode is None, "the loop ended by itself"
    finally:
        driver.kill()
        driver.wait()


def transcripts(project: Project) -> str:
    folders = [session_folders(project.layout, one.id) for one in project.ledger.sessions()]
    paths = [path for one in folders for path in one.config.rglob("*.jsonl")]
    return "".join(path.read_text("utf-8") for path in paths)


class Reader:
    """A model that knows its requests alone: `turns` makes of the first one what it says in that
    session; other roles are played by the scenario."""

    def __init__(
        self, gateway: Gateway, role: str, turns: Callable[[str], list[dict[str, Any]]]
    ) -> None:
        self._others, self._role, self._turns = gateway.answerer, role, turns
        self._scripted: Scripted | None = None
        self.first = ""
        gateway.answerer = self

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        if request.asker.role != self._role:
            return await self._others.answer(request, raw)
        if self._scripted is None:
            self.first = newest_text(request.body)
            asker, turns = request.asker, self._turns(self.first)
            session = ScenarioSession.model_validate(
                {
                    "role": self._role,
                    "experiment": asker.experiment,
                    "attempt": asker.attempt,
                    "turns": turns,
                }
            )
            self._scripted = Scripted(Scenario(sessions=(session,)))
        return await self._scripted.answer(request, raw)

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        return await self._others.count_tokens(request, raw)

    async def close(self) -> None:
        await self._others.close()


def said_after(words: str, text: str) -> str:
    """What the hand-off in `text` says after `words`, to the end of its line."""
    found = re.search(rf"> {re.escape(words)} (.*)", text)
    assert found, text
    return found[1]


def test_a_phase_is_finished_from_the_hand_off_of_a_killed_session(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    never = [{"text": "It is killed before this."}] * 2
    counted = {"text": f"I counted: {FOUND}", "tools": [pause()]}
    note = {"tools": [tool("write", "Bash", command="wc -c plan.md", description="Look")]}
    killed = write_scenario(tmp_path / "killed.yaml", engineer(note, counted, *never))
    kill_loop(project, killed, sandbox, lambda: "time.sleep(120)" in transcripts(project))

    def finish(first: str) -> list[dict[str, Any]]:
        assert "ran `wc -c plan.md`" in said_after("Done:", first)
        assert "time.sleep(120)" in said_after("Stopped while it waited for:", first)
        assert "phase data, lacks note" in said_after("Open:", first)
        assert "Call record_phase" in said_after("Next:", first)
        found = said_after("Its last words: I counted:", first)
        return [
            {"tools": [tool("note", "mcp__harness__record_phase", found=found)]},
            {"text": "Recorded."},
        ]

    scenario = write_scenario(
        tmp_path / "s.yaml", engineer({"text": "The reader answers."}), builder(1), oracle(1)
    )
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    reader = Reader(gateway, "data-engineer", finish)
    played = play(project, scenario, sandbox=sandbox, gateway=gateway)
    ledger = project.ledger
    assert reader.first.count("was ended (cut)") == 1
    (noted,) = [one for one, _ in ledger.phase_notes(project.plan().name) if one.phase == "data"]
    assert noted.text == FOUND
    assert [one.status for one in ledger.experiments()] == [ExperimentStatus.KEPT], played.told
    due = due_phase(ledger, project.plan())
    assert due is not None
    assert due.name == "analyse"
    outcomes = [(one.step, one.outcome) for one in ledger.sessions()]
    assert outcomes[:2] == [("data-0-1", "cut"), ("data-0-1", "finished")]
    assert verify(project.layout.ledger_db, project.layout.anchors) == []


def test_an_experiment_is_trained_from_the_hand_off_of_a_killed_session(
    tmp_path: Path, sandbox: SandboxKind
) -> None:
    """What the killed one wrote is not written again."""
    with approved(make_project(tmp_path / "toy"), os.environ) as project:
        whole = builder(1, before=(pause(),))
        killed = write_scenario(tmp_path / "killed.yaml", whole, oracle(1))
        kill_loop(project, killed, sandbox, lambda: "time.sleep(120)" in transcripts(project))
        (experiment,) = project.ledger.experiments()

        def finish(first: str) -> list[dict[str, Any]]:
            done = said_after("Done:", first)
            assert done.startswith("open_experiment, wrote train.py, wrote predict.py, wrote ")
            assert f"{experiment.id} is open" in said_after("Open:", first)
            assert "Call start_run" in said_after("Next:", first)
            assert experiment.hypothesis in first
            again = tool(
                "open",
                "mcp__harness__open_experiment",
                hypothesis=experiment.hypothesis,
                rationale="It is open.",
            )
            waits = tool("status", "mcp__harness__run_status", wait_seconds=120)
            return [
                {"tools": [again]},
                {"tools": [tool("start", "mcp__harness__start_run")]},
                {"tools": [waits]},
                {"text": "Trained."},
            ]

        scenario = write_scenario(tmp_path / "s.yaml", whole, oracle(1))
        gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
        Reader(gateway, "model-builder", finish)
        played = play(project, scenario, sandbox=sandbox, gateway=gateway)
        assert played.ended.reason == "target", played.told
        assert [one.status for one in project.ledger.experiments()] == [ExperimentStatus.KEPT]
        outcomes = [(one.step, one.outcome) for one in project.ledger.sessions()]
        assert outcomes[:2] == [("build-1-1", "cut"), ("build-1-1", "finished")]
        (left,) = [one for one in project.ledger.hand_offs() if "was ended (cut)" in one.text]
        assert left.experiment == experiment.id
