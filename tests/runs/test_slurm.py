"""Slurm through submitit: its local executor runs the jobs, and the script of the real one is
checked."""

import os
import signal
import stat
from pathlib import Path

import psutil
import pytest
from placed_support import Placing, answer, placing, program, rows_of
from runs_support import wait_until

from harness.domain.statuses import RunStatus
from harness.process import boot_id
from harness.runs.launchers.on_node import Watch
from harness.runs.launchers.slurm import SlurmEngine, SlurmLauncher

pytest.importorskip("submitit", reason="submitit is not installed: the extra `slurm` brings it")
LOCAL = '[launchers.slurm]\ncluster = "local"\n'


def test_the_script_of_the_real_executor_says_what_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sbatch` is a program that keeps its script; the job's name is what it prints."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "srun": "exit 0",
        "sbatch": f'cp "$1" {tmp_path}/script; env > {tmp_path}/env; echo Submitted batch job 77',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not for another machine")
    options = {
        "partition": "gpu",
        "account": "team",
        "gpus": 2,
        "cpus": 8,
        "memory_gb": 32,
        "time": 240,
        "setup": ["module load cuda"],
        "more": {"reservation": "night"},
    }
    engine = SlurmEngine(options, inherited={}, state=tmp_path / "state")
    watch = Watch(["true"], {"HOME": "/home/me"}, tmp_path)
    job = engine.submit(watch, title="exp-0001 seed 3", minutes=30)
    assert job.job == "77"
    script = (tmp_path / "script").read_text()
    for line in (
        "#SBATCH --partition=gpu",
        "#SBATCH --account=team",
        "#SBATCH --gpus-per-node=2",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=32GB",
        "#SBATCH --time=240",
        "#SBATCH --reservation=night",
        "#SBATCH --requeue",
        "#SBATCH --signal=USR2@120",
        "#SBATCH --job-name='harness exp-0001 seed 3'",
        "module load cuda",
    ):
        assert line in script.splitlines(), script
    (start,) = [line for line in script.splitlines() if line.startswith("srun")]
    assert " -P -I -u -m submitit.core._submit " in start
    assert "ANTHROPIC_API_KEY" not in (tmp_path / "env").read_text()
    assert os.environ["ANTHROPIC_API_KEY"]
    # Without `time` the plan's limit is the job's.
    assert SlurmEngine({}, inherited={}, state=tmp_path).parameters("x", 30)["time"] == 30


def test_seeds_train_as_jobs_and_the_facts_say_where(tmp_path: Path) -> None:
    placed = placing(tmp_path, LOCAL)
    said = placed.train("exp-0001", "--launcher", "slurm")
    assert said["ok"], said
    assert "exp-0001 seed" in said["stderr"] or said["stderr"] == ""
    with placed.project(read_only=True) as project:
        runs = project.ledger.runs("exp-0001")
        assert [run.status for run in runs] == [RunStatus.COMPLETED] * 2
        for run in runs:
            assert run.job["launcher"] == "slurm"
            where = run.handle["placed"]
            assert where["job"].isdecimal()
            assert (where["engine"], where["elsewhere"]) == ("slurm", False)
            assert run.rows > 3
            assert run.caller == "person"
    assert not any((placed.state / "placements").iterdir())


def test_a_launcher_that_config_does_not_allow_is_refused(tmp_path: Path) -> None:
    placed = placing(tmp_path, "")
    said = placed.train("exp-0001", "--launcher", "slurm")
    assert (said["error"]["code"], said["exit"]) == ("launcher_not_allowed", 2)


def test_a_command_that_cannot_start_there_is_said_here(tmp_path: Path) -> None:
    placed = placing(tmp_path, LOCAL)
    said = placed.train("exp-0001", "--launcher", "slurm", "--", "python", "trian.py")
    assert said["error"]["code"] == "command_not_found"
    with placed.project(read_only=True) as project:
        assert project.ledger.runs("exp-0001") == []


def test_a_stop_here_cancels_the_job_there(tmp_path: Path) -> None:
    placed = placing(tmp_path, LOCAL, seeds=1, train=program(600, 0.1))
    process = placed.start("exp-0001", "--launcher", "slurm")
    _wait_for_rows(placed)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=90)
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        assert run.status is RunStatus.CANCELLED
    assert _left(placed) == []


def test_a_preempted_job_is_queued_again_and_goes_on(tmp_path: Path) -> None:
    """USR2 is what Slurm sends: the training is told by TERM, its run closed, the job requeued."""
    placed = placing(tmp_path, LOCAL, seeds=1, train=program(40, 0.2))
    process = placed.start("exp-0001", "--launcher", "slurm")
    _wait_for_rows(placed)
    _signal(placed, signal.SIGUSR2)
    said = answer(process)
    assert said["ok"], said
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        assert (run.status, run.attempt) == (RunStatus.COMPLETED, 2)


def test_a_job_that_is_preempted_before_the_first_row_trains_anew(tmp_path: Path) -> None:
    """No person stopped the first run, and its facts say so."""
    train = program(3, 0.1).replace("with Run", "time.sleep(12)\nwith Run", 1)
    placed = placing(tmp_path, LOCAL, seeds=1, train=train)
    process = placed.start("exp-0001", "--launcher", "slurm")
    with placed.project(read_only=True) as project:
        wait_until(lambda: [run for run in project.ledger.runs("exp-0001") if run.supervisor], 120)
        _signal(placed, signal.SIGUSR2)
        said = answer(process)
        assert said["ok"], said
        lost, again = project.ledger.runs("exp-0001")
    assert (lost.status, again.status) == (RunStatus.LOST, RunStatus.COMPLETED)
    assert lost.reason.startswith("slurm took the node ")


def test_a_lost_node_loses_the_run_and_resume_goes_on(tmp_path: Path) -> None:
    placed = placing(tmp_path, LOCAL, seeds=1, train=program(40, 0.2))
    process = placed.start("exp-0001", "--launcher", "slurm")
    _wait_for_rows(placed)
    for one in _left(placed):
        one.kill()
    said = answer(process)
    assert not said["ok"]
    assert {found["code"] for found in said["findings"]} == {"run_recovered"}
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        assert run.status is RunStatus.LOST
    again = placed.train("exp-0001", "--launcher", "slurm", "--resume")
    assert again["ok"], again
    with placed.project(read_only=True) as project:
        (run,) = project.ledger.runs("exp-0001")
        assert (run.status, run.attempt) == (RunStatus.COMPLETED, 2)


def test_seen_from_another_machine_slurm_says_whether_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    handle = {"pid": 1, "boot": f"not {boot_id()}", "started": 1.0, "placed": {"job": "12"}}
    launcher = SlurmLauncher()
    assert not launcher.lost(handle)  # nobody to ask: it may go on
    for state, lost in {"RUNNING": False, "PENDING": False, "NODE_FAIL": True}.items():
        (programs / "sacct").write_text(f"#!/bin/sh\necho {state}\n")
        (programs / "scancel").write_text(f"#!/bin/sh\necho $1 > {tmp_path}/cancelled\n")
        for one in programs.iterdir():
            one.chmod(one.stat().st_mode | stat.S_IXUSR)
        assert launcher.lost(handle) is lost
        assert launcher.kill(handle, "t").left == (0 if lost else 1)
        assert (tmp_path / "cancelled").read_text() == "12\n"


@pytest.mark.parametrize("state", ["PREEMPTED", "REVOKED"])
def test_a_preempted_job_is_gone_when_the_queue_does_not_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def says(name: str, text: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)

    launcher = SlurmLauncher()
    says("sacct", f"echo {state}")
    assert not launcher.is_gone("12")  # nobody to ask
    says("squeue", "echo JOBID; echo 12; echo 13")
    assert not launcher.is_gone("12")
    says("squeue", "echo JOBID; echo 112")
    assert launcher.is_gone("12")
    says("squeue", "echo slurm_load_jobs error >&2; exit 1")
    assert not launcher.is_gone("12")
    says("sacct", "echo BOOT_FAIL")
    assert launcher.is_gone("12")


def _wait_for_rows(placed: Placing) -> None:
    wait_until(lambda: rows_of(placed).count('"epoch"') > 3, 90)


def _left(placed: Placing) -> list[psutil.Process]:
    """Processes of the project's jobs, and what they started."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            home = process.environ().get("HOME", "")
        except psutil.Error:
            continue
        is_job = "submitit" in words or "--placed" in words or "train.py" in words
        if is_job and (home == placed.environment["HOME"] or str(placed.root) in words):
            found.append(process)
    return found


def _signal(placed: Placing, number: int) -> None:
    (job,) = [one for one in _left(placed) if "submitit.core._submit" in " ".join(one.cmdline())]
    job.send_signal(number)
