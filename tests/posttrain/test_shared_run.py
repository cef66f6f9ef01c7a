"""`posttrain run --launcher torchrun`: a trainer of the package as two processes, in one run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.posttrain.base_models import add_base_model
from harness.posttrain.program import TrainingProgram
from harness.runs.many_processes import trainer_ranks
from harness.sandbox.select import choose
from tests.blobs import own_environment
from tests.posttrain import programs
from tests.posttrain.test_resume_trl import SMALL
from tests.training.tiny_model import save_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
NUMBERS = SMALL | {"max_steps": 4, "lora_dropout": 0.0}


def run(root: Path, tmp_path: Path, experiment: str, *words: str) -> dict[str, Any]:
    command = ["-m", "harness", "posttrain", "run", experiment, "--json", "--project", str(root)]
    done = subprocess.run(
        [sys.executable, *command, "--sandbox", "none", "--reason", "a test", *words],
        capture_output=True,
        text=True,
        timeout=600,
        env={**own_environment(tmp_path), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told | {"exit": done.returncode}


def test_two_processes_are_one_run_with_the_losses_of_one(
    project: Project, program: TrainingProgram, root: Path, tmp_path: Path
) -> None:
    config = root / ".harness/config.toml"
    config.write_text(config.read_text() + "\n[launchers.torchrun]\nprocesses = 2\nshard = true\n")
    tiny = save_tiny_model(tmp_path / "tiny")
    add_base_model(project, programs.MODEL, weights=tiny, gguf=None, inherited={})
    how = {"backend": "trl-dpo", "mode": "dpo", "tier": "cpu-experimental"}
    wanted = programs.request(**how, evaluator="preference", hyperparameters=NUMBERS)
    losses, results = [], []
    told = run(root, tmp_path, program.create(wanted, by="me").experiment, "--launcher", "slurm")
    assert told["error"]["code"] == "wrong_launcher"
    for launcher in ("local", "torchrun"):
        experiment = program.create(wanted, by="me").experiment
        told = run(root, tmp_path, experiment, "--launcher", launcher)
        assert told["exit"] == 0, told
        (judged,) = [one for one in project.ledger.judgements(experiment) if one.accepted]
        assert judged.result is not None
        results.append(judged.result)
        rows = project.layout.run(experiment, "run-01", "metrics").read_text().splitlines()
        metrics = [json.loads(line).get("metrics", {}) for line in rows]
        losses.append([one["loss"] for one in metrics if "loss" in one])
    assert len(losses[0]) == 4
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert results[1]["extra"] | {"ranks": 2, "base_model": "sharded"} == results[1]["extra"]
    seen = [one["metrics"]["tokens_seen"] for one in results]
    assert seen[0] == seen[1]


class Landlocked:
    kind = SandboxKind.LANDLOCK


def test_processes_need_a_loopback(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    alone = choose(SandboxKind.NONE, required=False)
    assert trainer_ranks(project.settings, "torchrun", alone) == 2
    assert trainer_ranks(project.settings, None, alone) is None
    with pytest.raises(RefusedError) as refused:
        trainer_ranks(project.settings, "torchrun", cast(Sandbox, Landlocked()))
    assert refused.value.code == "no_loopback"
