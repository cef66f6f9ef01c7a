"""kill -9 of the supervisor, or of the trainer, at seeded moments: what the ledger says afterwards
is true."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.domain.statuses import FINAL_RUNS
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.posttrain.program import TrainingProgram
from harness.posttrain.training_judgement import ProgramReport
from harness.runs.closing import recover
from harness.runs.launchers.local import run_mark
from tests.metrics_rows import read_rows
from tests.posttrain import programs

SUPERVISOR = """
import os, sys
from pathlib import Path
from harness.sandbox.select import choose
from harness.domain.statuses import SandboxKind
from harness.posttrain.program import TrainingProgram
from harness.ledger.project import open_project

with open_project(Path(sys.argv[1]), os.environ) as project:
    TrainingProgram(project, sandbox=choose(SandboxKind.NONE, required=False), grace_s=0.5).execute(sys.argv[2])
"""


def start(project: Project, experiment: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    own = {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", SUPERVISOR, str(project.layout.root), experiment]
    return subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def require_true(project: Project, experiment: str) -> None:
    """Closed, nothing left running, and a model exactly where a result was accepted and the run is
    completed."""
    recover(project)
    for run in project.ledger.runs(experiment):
        assert run.status in FINAL_RUNS
        assert run_mark(run.token).processes() == []
        accepted = [
            item
            for item in project.ledger.judgements(experiment)
            if item.run == run.id and item.accepted
        ]
        assert (run.status == "completed") == bool(accepted)
        assert bool(
            [
                model
                for model in project.ledger.models()
                if (model.experiment, model.run) == (experiment, run.id)
            ]
        ) == bool(accepted)


def moments(count: int) -> list[float]:
    chosen = random.Random(6)
    return [chosen.uniform(0.0, 2.5) for _ in range(count)]


def kill_at(
    project: Project, program: TrainingProgram, tmp_path: Path, seconds: float, seed: int
) -> str:
    """Kill so many seconds after the run was registered, then go on where that is possible; how the
    run stood."""
    trainer = programs.resuming("pass", pause=0.25)
    programs.write_trainer(project.layout.root, programs.MADE, head=trainer)
    experiment = program.create(programs.request(seed=seed), by="me").experiment
    supervisor = start(project, experiment, tmp_path)
    deadline = time.monotonic() + 120
    while supervisor.poll() is None and not project.ledger.runs(experiment):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(seconds)
    running = [
        run
        for run in project.ledger.runs(experiment)
        if run.pid is not None and run.status == "running"
    ]
    if seed % 2 and running:
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(running[0].pid or 0, signal.SIGKILL)
        supervisor.wait(timeout=60)
    supervisor.kill()
    supervisor.wait(timeout=60)
    require_true(project, experiment)
    stood = [run.status.value for run in project.ledger.runs(experiment)]
    if "completed" not in stood:
        assert finish(program, experiment).run.status == "completed"
        require_true(project, experiment)
        (last,) = [run for run in project.ledger.runs(experiment) if run.status == "completed"]
        rows = read_rows(project.layout.run(experiment, last.id, "metrics")).effective
        assert [row["epoch"] for row in rows if row["event"] == "epoch"] == list(range(6)), (
            "no row twice, none lost"
        )
    return stood[-1] if stood else "none"


def finish(program: TrainingProgram, experiment: str) -> ProgramReport:
    """Resumed, or started anew where nothing had been logged yet, or all was done but for the
    trainer's own end."""
    try:
        return program.execute(experiment, resume=True)
    except RefusedError as error:
        if error.code not in ("nothing_to_resume", "result_refused"):
            raise
        return program.execute(experiment)


def test_a_supervisor_killed_while_it_trains_leaves_a_lost_run(project, program, tmp_path) -> None:
    programs.write_trainer(project.layout.root, "import time\ntime.sleep(60)\n")
    experiment = program.create(programs.request(), by="me").experiment
    supervisor = start(project, experiment, tmp_path)
    deadline = time.monotonic() + 60
    while not any(run.status == "running" for run in project.ledger.runs(experiment)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    supervisor.kill()
    supervisor.wait(timeout=60)
    require_true(project, experiment)
    assert project.ledger.runs(experiment)[0].status == "lost"


@pytest.mark.slow
def test_thirty_moments(project, program, tmp_path) -> None:
    stood = [
        kill_at(project, program, tmp_path, seconds, seed)
        for seed, seconds in enumerate(moments(30), 1)
    ]
    assert {"lost", "failed"} & set(stood), "some of the moments came before the end"
