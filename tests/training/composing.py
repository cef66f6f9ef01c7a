"""A composed trainer of the tiny model, ready for one batch or for training."""

import json
import time
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from harness.clock import SystemClock
from harness.domain.composition import Composition, Rollouts
from harness.run_logger import RunLogger
from harness.training.chat import read_rows
from harness.training.composed_trainer import ComposedTrainer
from harness.training.language_model import load_tokenizer
from harness.training.trainers import composed
from harness.training.trainers.task import TrainerSpec, TrainingTask
from tests.training.tiny_model import preferences, save_tiny_model, specification, write_rows

SHORT = Rollouts(max_tokens=8)


def task_of(
    folder: Path,
    log: RunLogger,
    composition: Composition,
    *,
    rows: list[dict[str, Any]] | None = None,
    **more: Any,
) -> TrainingTask:
    model = folder / "model"
    if not model.exists():
        save_tiny_model(model)
    data = write_rows(folder / "rows.jsonl", rows or preferences(6))
    numbers = {"lora_dropout": 0.0, "max_seq_length": 128, **more.pop("hyperparameters", {})}
    spec = specification(model, data, "composed", "composed", hyperparameters=numbers, **more)
    (folder / "spec.json").write_text(json.dumps({**spec, "composition": composition.plain()}))
    set_seed(1)
    torch.set_num_threads(1)
    return TrainingTask(
        spec=TrainerSpec.read(folder / "spec.json"),
        output=folder / "checkpoints",
        log=log,
        clock=SystemClock(),
        began=time.monotonic(),
        tokenizer=load_tokenizer(model, padding_side="left"),
        rows=read_rows(data, "prompt"),
    )


def ready(
    task: TrainingTask, *, checkpointing: bool = False, away: float = 0.3
) -> tuple[ComposedTrainer, dict[str, Any]]:
    """A trainer away from its start, so that no channel's gradient is trivial, and the inputs of
    its first micro-batch."""
    trainer = composed.build(task)
    trainer._started = True
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    trainer.model.train()
    if checkpointing:
        trainer.model.gradient_checkpointing_enable()
        trainer.model.enable_input_require_grads()
    torch.manual_seed(3)
    for one in trained(trainer):
        one.data.add_(away * torch.randn_like(one))
    inputs = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
    return trainer, inputs


def trained(trainer: ComposedTrainer) -> list[torch.Tensor]:
    return [one for one in trainer.model.parameters() if one.requires_grad]


def gradient(trainer: ComposedTrainer, loss: torch.Tensor) -> torch.Tensor:
    parts = torch.autograd.grad(loss, trained(trainer), allow_unused=True, retain_graph=True)
    return torch.cat(
        [
            (torch.zeros_like(one) if part is None else part).flatten()
            for one, part in zip(trained(trainer), parts, strict=True)
        ]
    )
