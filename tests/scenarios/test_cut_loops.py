"""Kill -9 of CLI, driver and supervisor: what was cut is repeated, and the loop ends as if
undisturbed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from toy_project import builder, oracle, play, tool, write_scenario

from harness.artifacts.locate import Layout
from harness.artifacts.trees import this_tree
from harness.domain.statuses import FINAL_RUNS, RunStatus, SandboxKind
from harness.domain.team_ledger import TeamLedger
from harness.driver.environment import session_folders
from harness.driver.loop_runner import close_cut_sessions, open_gateway
from harness.driver.session import session_processes
from harness.errors import ScenarioError
from harness.ledger.facts import SessionStarted
from harness.ledger.project import Project
from harness.ledger.verify import verify
from harness.process import identity
from harness.runs.launchers.local import run_mark
from tests.centroids import slow_train
from tests.model_gateway.kept import keep

PACKAGE = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
SLOW = pytest.mark.slow


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.02)


def kill_front(project: Project) -> None:
    """Kill -9 what stands for the CLI of the one session that is open."""
    (path,) = [
        session_folders(project.layout, item.name).pid
        for item in project.layout.sessions.iterdir()
        if session_processes(item.name)
    ]
    os.kill(int(path.read_text("ascii")), signal.SIGKILL)


def assert_ended_well(project: Project) -> None:
    assert [item.status for item in project.ledger.experiments()] == ["kept"]
    assert project.ledger.loop_end() is not None
    assert project.ledger.open_runs() == []
    assert project.ledger.sessions(open_only=True) == []
    assert verify(project.layout.ledger_db, project.layout.anchors) == []
    runs = project.ledger.runs("exp-0001")
    assert len({run.seed for run in runs if run.status is RunStatus.COMPLETED}) == 3
    assert [run_mark(run.token).processes() for run in runs] == [[]] * len(runs)
    assert [session_processes(item.id) for item in project.ledger.sessions()] == [[]] * len(
        project.ledger.sessions()
    )


# Never a session's last request: its CLI may be done before it is killed.
@pytest.mark.parametrize(
    "request_number", [*(pytest.param(number, marks=SLOW) for number in (1, 2, 3, 4, 7, 8)), 5]
)
def test_a_killed_cli_is_started_again_under_the_same_step(
    project: Project, sandbox: SandboxKind, tmp_path: Path, request_number: int
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1), oracle(1))
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    asked = keep(gateway)

    def kill_once() -> None:
        until(lambda: len(asked) >= request_number)
        kill_front(project)

    killer = threading.Thread(target=kill_once)
    killer.start()
    played = play(project, scenario, sandbox=sandbox, gateway=gateway)
    killer.join()
    assert played.ended.reason == "target", played.told
    assert_ended_well(project)
    assert [item.outcome for item in project.ledger.sessions()].count("cut") == 1, played.told


@pytest.mark.parametrize("moment", [pytest.param("session", marks=SLOW), "run"])
def test_a_killed_driver_is_continued_by_the_next(
    project: Project, sandbox: SandboxKind, tmp_path: Path, moment: str
) -> None:
    waiting = (
        tool(
            "pause", "Bash", command="python -c 'import time; time.sleep(2)'", description="Wait"
        ),
    )
    scenario = write_scenario(
        tmp_path / "s.yaml", builder(1, train=slow_train(1.0), before=waiting), oracle(1)
    )
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        "plan.md",
        "--scenario",
        str(scenario),
        "--sandbox",
        sandbox.value,
        "--reason",
        "A test.",
    ]
    driver = subprocess.Popen(
        [*command, "--json"],
        cwd=project.layout.root,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if moment == "session":
        until(lambda: any(session_processes(item.id) for item in project.ledger.sessions()))
    else:
        until(lambda: any(run.status is RunStatus.RUNNING for run in project.ledger.open_runs()))
    driver.kill()
    driver.wait()
    played = play(project, scenario, sandbox=sandbox)
    assert played.ended.reason == "target", played.told
    assert_ended_well(project)
    assert [item.outcome for item in project.ledger.sessions()].count("cut") == 1


@pytest.mark.slow
def test_a_killed_supervisor_costs_one_run_and_its_seed_is_trained_again(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1, train=slow_train(1.0)), oracle(1))
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)

    def kill_once() -> None:
        until(lambda: any(run.supervisor for run in project.ledger.open_runs()))
        (run,) = [run for run in project.ledger.open_runs() if run.supervisor]
        os.kill(int(run.supervisor["pid"]), signal.SIGKILL)

    killer = threading.Thread(target=kill_once)
    killer.start()
    played = play(project, scenario, sandbox=sandbox, gateway=gateway)
    killer.join()
    assert played.ended.reason == "target", played.told
    assert_ended_well(project)
    assert [run.status for run in project.ledger.runs("exp-0001")].count(RunStatus.LOST) == 1
    assert all(run.status in FINAL_RUNS for run in project.ledger.runs("exp-0001"))


def test_a_session_that_the_scenario_does_not_have_ends_the_loop_and_is_not_begun(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1))
    played = play(project, scenario, sandbox=sandbox)
    assert played.ended.reason == "failures"
    assert "No gate judged exp-0001" in played.ended.detail
    assert [item.outcome for item in project.ledger.sessions()] == ["finished"]


def test_what_a_scenario_does_not_foresee_moves_no_number(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    right = oracle(1)
    wrong = {**right, "turns": [{**right["turns"][0], "expect": "exp-4711"}, *right["turns"][1:]]}
    scenario = write_scenario(tmp_path / "s.yaml", builder(1), wrong)
    for _ in range(2):
        with pytest.raises(ScenarioError, match="expected 'exp-4711'"):
            play(project, scenario, sandbox=sandbox)
    assert project.ledger.loop_end() is None
    played = play(project, write_scenario(tmp_path / "s.yaml", builder(1), right), sandbox=sandbox)
    assert played.ended.reason == "target", played.told
    sessions = [(item.step, item.outcome) for item in project.ledger.sessions()]
    assert sessions == [
        ("build-1-1", "finished"),
        ("judge-1-1", "void"),
        ("judge-1-1", "void"),
        ("judge-1-1", "finished"),
    ]
    assert [item.id for item in project.ledger.experiments()] == ["exp-0001"]


def test_a_session_whose_driver_lives_is_left_to_it(project: Project) -> None:
    """The loop of another working tree leads it; this tree's own lock is held (test_one_loop)."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        start = SessionStarted(
            session="build-1-1-other",
            role="model-builder",
            experiment=None,
            step="build-1-1",
            sandbox="none",
            driver=identity(other.pid),
        )
        project.ledger.append(start)
        assert close_cut_sessions(project.ledger, project.layout) == []
        assert [item.id for item in project.ledger.sessions(open_only=True)] == ["build-1-1-other"]
    finally:
        other.kill()
        other.wait()
    assert not psutil.pid_exists(other.pid)
    assert [item.id for item in close_cut_sessions(project.ledger, project.layout)] == [
        "build-1-1-other"
    ]
    assert project.ledger.session("build-1-1-other").outcome == "cut"


def test_a_session_of_another_machine_is_left_open(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server keeps the ledger of both; the other machine's process ids say nothing here."""
    tree = this_tree(project.layout).id
    server = TeamLedger("postgresql://db/x", "h_x", project.layout.state)
    monkeypatch.setattr(Layout, "ledger", server)
    here, there = identity(), {**identity(), "boot": "another"}
    for name, driver, of in (
        ("far", there, "theirs"),
        ("far-old", there, ""),
        ("container", {**here, "pid": 1 << 22}, "theirs"),
        ("rebooted", there, tree),
        ("ours", here, tree),
    ):
        start = SessionStarted(
            session=name,
            role="model-builder",
            experiment=None,
            step="build-1-1",
            sandbox="none",
            driver=driver,
            tree=of,
        )
        project.ledger.append(start)
    closed = close_cut_sessions(project.ledger, project.layout)
    assert sorted(item.id for item in closed) == ["ours", "rebooted"]
