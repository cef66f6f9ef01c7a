"""Ray: a local cluster on the loopback, with two places for supervisors."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from placed_support import Placing, answer, placing, program, rows_of
from runs_support import wait_until

from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.ledger.verify import verify

pytest.importorskip("ray", reason="Ray is not installed: the extra `ray` brings it, 80 MB")
pytestmark = pytest.mark.timeout(1800)

CLUSTER = """
import sys, ray
from ray.runtime_context import get_runtime_context as context
ray.init(address="local", num_cpus=2, object_store_memory=80 * 2**20, include_dashboard=False,
         _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR")
print(context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whose token the cluster takes."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env={
            **os.environ,
            "HOME": str(home),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback alone
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate("")


def knowing(placed: Placing, home: Path) -> Placing:
    token = str(home / ".ray/auth_token")
    return replace(placed, environment={**placed.environment, "RAY_AUTH_TOKEN_PATH": token})


def test_a_cluster_whose_token_is_not_known_is_a_sentence(tmp_path: Path, address: str) -> None:
    placed = placing(tmp_path, f'[launchers.ray]\naddress = "{address}"\n', seeds=1)
    said = placed.train("exp-0001", "--launcher", "ray")
    assert (said["error"]["code"], said["exit"]) == ("ray_refused", 3)
    with placed.project(read_only=True) as project:
        assert project.ledger.runs("exp-0001") == []


LOST = """
import os, sys, time
from pathlib import Path
from harness.runs.launchers.on_node import Watch
from harness.runs.launchers.ray_cluster import RayEngine
engine = RayEngine({"address": sys.argv[1]}, inherited={}, state=Path(sys.argv[2]))
watch = Watch(["/no/such/python"], dict(os.environ), Path(sys.argv[2]))
task = engine.submit(watch, title="exp-0001 seed 1", minutes=1)
while not task.lost():
    time.sleep(0.1)
print(task.said().strip(), file=sys.__stdout__)
engine.close()
"""


def test_a_task_that_fails_on_its_node_says_why(tmp_path: Path, address: str, home: Path) -> None:
    environment = {**os.environ, "RAY_AUTH_TOKEN_PATH": str(home / ".ray/auth_token")}
    done = subprocess.run(
        [sys.executable, "-c", LOST, address, str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "No such file or directory: '/no/such/python'" in done.stdout.splitlines()[-1]


def test_sixteen_experiments_of_one_plan_outlive_a_killed_worker(
    tmp_path: Path, address: str, home: Path
) -> None:
    config = f'[launchers.ray]\naddress = "{address}"\ncpus = 1\n'
    made = placing(tmp_path, config, seeds=1, experiments=16, train=program(30, 0.2))
    placed = knowing(made, home)
    names = [f"exp-{number:04}" for number in range(1, 17)]
    started = [placed.start(name, "--launcher", "ray") for name in names]
    with placed.project(read_only=True) as project:

        def running() -> list[int]:
            runs = [run for name in names for run in project.ledger.runs(name)]
            return [
                run.supervisor["pid"]
                for run in runs
                if run.status is RunStatus.RUNNING and run.supervisor
            ]

        def running_or_refused() -> bool:
            ended = [process for process in started if process.poll()]
            assert not ended, answer(ended[0])
            return bool(running())

        wait_until(running_or_refused, 900)
        # The worker is the supervisor's parent.
        worker = psutil.Process(running()[-1]).parent()
        assert worker is not None
        assert "ray::" in " ".join(worker.cmdline())
        worker.send_signal(signal.SIGKILL)
        said = [answer(process, 1200) for process in started]
        assert [one for one in said if one["exit"]] == []
        runs = [run for name in names for run in project.ledger.runs(name)]
        assert all(run.status in FINAL_RUNS for run in runs)
        newest = {run.experiment: run for run in runs}
        assert {run.status for run in newest.values()} == {RunStatus.COMPLETED}
        assert {run.job["launcher"] for run in newest.values()} == {"ray"}
        assert len({run.handle["placed"]["job"] for run in newest.values()}) == 16
        # It had a checkpoint, or it had not: then it began anew.
        assert len(runs) > 16 or 2 in {run.attempt for run in runs}
        layout = project.layout
    assert verify(layout.ledger_db, layout.anchors, layout.facts_dir) == []


def test_the_run_of_a_killed_worker_goes_on(tmp_path: Path, address: str, home: Path) -> None:
    config = f'[launchers.ray]\naddress = "{address}"\n'
    placed = knowing(placing(tmp_path, config, seeds=1, train=program(60, 0.2)), home)
    process = placed.start("exp-0001", "--launcher", "ray")
    wait_until(lambda: rows_of(placed).count('"epoch"') > 3, 300)
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        worker = psutil.Process(run.supervisor["pid"]).parent()
        assert worker is not None
        worker.send_signal(signal.SIGKILL)
        said = answer(process, 600)
        assert said["ok"], said
        (run,) = project.ledger.runs("exp-0001")
        assert (run.status, run.attempt) == (RunStatus.COMPLETED, 2)


def test_a_worker_that_is_killed_before_the_first_row_loses_its_run(
    tmp_path: Path, address: str, home: Path
) -> None:
    config = f'[launchers.ray]\naddress = "{address}"\n'
    train = program(3, 0.1).replace("with Run", "time.sleep(20)\nwith Run", 1)
    placed = knowing(placing(tmp_path, config, seeds=1, train=train), home)
    process = placed.start("exp-0001", "--launcher", "ray")
    with placed.project(read_only=True) as project:

        def supervisor() -> int:
            runs = project.ledger.runs("exp-0001")
            return (runs[0].supervisor or {}).get("pid", 0) if runs else 0

        wait_until(supervisor, 300)
        worker = psutil.Process(supervisor()).parent()
        assert worker is not None
        worker.send_signal(signal.SIGKILL)
        said = answer(process, 600)
        assert said["ok"], said
        lost, again = project.ledger.runs("exp-0001")
    assert (lost.status, again.status) == (RunStatus.LOST, RunStatus.COMPLETED)
    assert "its ray worker on " in lost.reason


def test_a_stop_here_ends_the_task_there(tmp_path: Path, address: str, home: Path) -> None:
    config = f'[launchers.ray]\naddress = "{address}"\n'
    placed = knowing(placing(tmp_path, config, seeds=2, train=program(600, 0.1)), home)
    process = placed.start("exp-0001", "--launcher", "ray")
    with placed.project(read_only=True) as project:
        wait_until(lambda: len(project.ledger.runs("exp-0001")) == 2, 120)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
        runs = project.ledger.runs("exp-0001")
        assert [run.status for run in runs] == [RunStatus.CANCELLED] * 2
