"""What a backend's `build` gets of one training, and the arguments that follow from its
specification."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.training.chat import RowRefusedError
from harness.training.language_model import CPU_TIER, lora
from harness.training.trainers.spec import Rows, Spec

_SAVES = 5


@dataclass(kw_only=True)
class Job:
    spec: Spec
    output: Path
    log: RunLogger
    clock: Clock
    began: float
    tokenizer: Any
    rows: Rows
    refused: Counter[str] = field(default_factory=Counter)
    used: int = 0
    extra: dict[str, float | str] = field(default_factory=dict)

    def each(self, encode: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
        """`encode` of every row; one that it refuses is counted under the reason. Raises UsageError
        if none is left."""
        found = []
        for row in self.rows.rows:
            try:
                found.append(encode(row))
            except RowRefusedError as error:
                self.refused[error.reason] += 1
        self.used = len(found)
        if not found:
            raise UsageError(
                f"No row of {len(self.rows.rows)} can be used: {dict(self.refused)}.",
                hint="Raise max_seq_length, or fix the dataset.",
                code="dataset_unusable",
            )
        return found

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Arguments of transformers' trainer that follow from the specification; `more` are the
        backend's own."""
        given, cpu = self.spec.hyperparameters, self.spec["hardware_tier"] == CPU_TIER
        steps = int(given["max_steps"])
        settings: dict[str, Any] = {
            "output_dir": str(self.output),
            "max_steps": steps,
            "per_device_train_batch_size": given["batch_size"],
            "gradient_accumulation_steps": given["gradient_accumulation"],
            "learning_rate": given["learning_rate"],
            "warmup_steps": round(given["warmup_ratio"] * steps),
            "seed": self.spec.seed,
            "data_seed": self.spec.seed,
            "logging_steps": 1,
            "logging_nan_inf_filter": False,  # it replaces a NaN loss by the running mean
            "save_strategy": "steps",
            "save_steps": math.ceil(steps / _SAVES),
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": cpu,
            "bf16": self.spec["dtype"] == "bfloat16",
            "fp16": self.spec["dtype"] == "float16",
            "gradient_checkpointing": not cpu,
            "dataloader_pin_memory": not cpu,
        }
        return settings | more

    def lora(self) -> Any:
        given = self.spec.hyperparameters
        return lora(given["lora_rank"], given["lora_alpha"], given["lora_dropout"])
