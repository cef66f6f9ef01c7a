"""A trainer of the package, killed with -9 under the harness and resumed: its model is the unbroken
one."""

import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from harness.ledger.project import Project
from harness.posttrain.base_models import add_base_model
from harness.posttrain.program import TrainingProgram
from tests.posttrain import programs
from tests.posttrain.test_kill import start
from tests.training.calling_model import BOARD, PLAYING, save_calling_model
from tests.training.tiny_model import save_tiny_model

SMALL = {
    "learning_rate": 1e-2,
    "batch_size": 2,
    "gradient_accumulation": 2,
    "lora_rank": 4,
    "lora_alpha": 8,
}
SMALL |= {"lora_dropout": 0.1, "max_steps": 20, "max_seq_length": 64}


def kill_the_trainer_after_its_first_checkpoint(
    project: Project, experiment: str, tmp_path: Path
) -> None:
    supervisor = start(project, experiment, tmp_path)
    checkpoints = project.layout.run(experiment, "run-01", "checkpoints")
    deadline = time.monotonic() + 240
    while not list(checkpoints.glob("checkpoint-*/harness.json")):
        assert supervisor.poll() is None, "the trainer ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (run,) = project.ledger.runs(experiment)
    os.kill(run.pid or 0, signal.SIGKILL)
    supervisor.wait(timeout=120)
    (run,) = project.ledger.runs(experiment)
    assert run.status == "failed", run.reason


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", ["orpo", "dpo", "sft", "grpo", "composed", "playing"])
def test_killed_and_resumed_it_is_the_unbroken_one(
    project: Project, program: TrainingProgram, root: Path, tmp_path: Path, mode: str
) -> None:
    playing = mode == "playing"  # in an environment
    rows = [{**row, "answer": row["chosen"], "hint": row["chosen"]} for row in programs.rows(20)]
    programs.write_rows(root / "train.jsonl", rows)
    add_base_model(
        project,
        programs.MODEL,
        weights=(save_calling_model if playing else save_tiny_model)(tmp_path / "tiny"),
        gguf=None,
        inherited={},
    )
    how = {
        "backend": f"trl-{mode}",
        "mode": mode,
        "tier": "cpu-experimental",
        "evaluator": "preference",
    }
    numbers = SMALL
    if mode in ("composed", "playing"):
        how |= {"backend": "composed", "mode": "composed"}
    if playing:
        how |= {"composition": "playing.toml"}
        numbers = SMALL | {"max_seq_length": 2048, "max_steps": 8}
        (root / "board.py").write_text(BOARD)
        (root / "playing.toml").write_text(PLAYING)
    wanted = programs.request(**how, hyperparameters=numbers)
    straight = program.execute(program.create(wanted, by="me").experiment)
    assert straight.model is not None, straight.run.reason
    experiment = program.create(wanted, by="me").experiment
    kill_the_trainer_after_its_first_checkpoint(project, experiment, tmp_path)
    resumed = program.execute(experiment, resume=True)
    assert (resumed.run.status, resumed.run.attempt) == ("completed", 2), resumed.run.reason
    assert resumed.model == straight.model
    (judged,) = [item for item in project.ledger.judgements(experiment) if item.accepted]
    assert judged.result is not None
    assert judged.result["extra"]["resume"] == "exact"
