"""`harness demo --launcher NAME` allows it as a person would, and ends like `harness demo`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.demo.run import allow
from harness.ledger.project import open_project
from harness.ledger.verify import verify
from harness.process import harness_command
from harness.runs.launchers.launcher import open_engine
from harness.runs.launchers.slurm import SlurmEngine
from harness.settings import create_config, load_settings
from tests.demo.demo_end import assert_target_hit

PACKAGES = {"slurm": "submitit", "ray": "ray"}


@pytest.mark.parametrize(("programs", "cluster"), [([], "local"), (["sbatch"], None)])
def test_slurm_is_that_of_the_machine_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: list[str], cluster: str | None
) -> None:
    create_config(tmp_path, name="demo", token="cafe")
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told: list[object] = []
    allow(tmp_path, "slurm", told.append)
    settings = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert settings.launchers["slurm"].get("cluster") == cluster
    assert len(told) == (1 if cluster else 0)
    assert isinstance(open_engine(settings, "slurm", {}, tmp_path), SlurmEngine)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("launcher", PACKAGES)
def test_the_whole_demo_ends_as_without_it(tmp_path: Path, launcher: str) -> None:
    for package in (PACKAGES[launcher], "mnist1d", "torch", "claude_agent_sdk"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "OMP_NUM_THREADS": "1",
        "LANG": "C.UTF-8",
    }
    root = tmp_path / "demo"
    done = subprocess.run(
        harness_command("demo", str(root), "--launcher", launcher, "--json"),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert_target_hit(json.loads(done.stdout))
    with open_project(root, environment, read_only=True) as project:
        names = [f"exp-{number:04}" for number in range(1, 5)]
        runs = [run for name in names for run in project.ledger.runs(name)]
        layout = project.layout
    assert {run.job["launcher"] for run in runs if run.job is not None} == {launcher}
    assert len(runs) >= 10  # three, one at least, three, three
    assert verify(layout.ledger_db, layout.anchors, layout.facts_dir) == []
