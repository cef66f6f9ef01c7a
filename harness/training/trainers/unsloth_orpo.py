"""Backend `unsloth-orpo`: the ORPO of `trl-orpo`, the model loaded and adapted by unsloth. One GPU;
not tested with the package.

Rows, masks, loss, budget and result are those of `trl-orpo`. Without the package it is refused
before anything is read.
"""

import contextlib
import importlib
import importlib.util
import sys
from typing import Any

with contextlib.suppress(ImportError):
    importlib.import_module("unsloth")  # before transformers and TRL: it changes their classes

from harness.errors import (
    MissingExtraError,
    UsageError,
)
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask
from harness.training.trainers.trl_orpo import (
    TEXTS,
    trainer_of,
)

HINT = "pip install unsloth"


def require_unsloth() -> None:
    """Raises MissingExtraError with the command that installs it."""
    if importlib.util.find_spec("unsloth") is None:
        raise MissingExtraError(
            "The backend unsloth-orpo needs the package unsloth, which is not installed.",
            hint=f"`{HINT}` on a machine with a GPU, or choose the backend trl-orpo.",
            code="unsloth_missing",
        )


def load(spec: Any, adapter: Any) -> Any:
    """The base model with the specification's LoRA. Raises UsageError on the CPU tier."""
    if spec["hardware_tier"] == "cpu-experimental":
        raise UsageError(
            "unsloth runs on a GPU; the hardware tier is cpu-experimental.",
            hint="Choose trl-orpo.",
            code="gpu_missing",
        )
    fast = importlib.import_module("unsloth").FastLanguageModel
    model, _ = fast.from_pretrained(
        str(spec.model_path),
        max_seq_length=spec.max_length,
        load_in_4bit=spec["hardware_tier"] != "datacenter-gpu",
    )
    return fast.get_peft_model(
        model,
        r=adapter.r,
        lora_alpha=adapter.lora_alpha,
        lora_dropout=adapter.lora_dropout,
        random_state=spec.seed,
        max_seq_length=spec.max_length,
    )


def build(task: TrainingTask) -> Any:
    return trainer_of(task, load(task.spec, task.lora()), adapter=None)


def main() -> int:
    try:
        require_unsloth()
    except MissingExtraError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return run("unsloth-orpo", "orpo", TEXTS, build)


if __name__ == "__main__":
    sys.exit(main())
