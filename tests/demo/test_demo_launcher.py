"""`harness demo --launcher NAME` allows it as a person would; tests/scenarios plays such a loop."""

from pathlib import Path

import pytest

from harness.demo.run import allow
from harness.runs.launchers.launcher import open_engine
from harness.runs.launchers.slurm import SlurmEngine
from harness.settings import create_config, load_settings


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
