"""What a backend's `build` gets of one training: specification, rows, and the arguments of both."""

import json
import math
import os
from collections import Counter
from collections.abc import (
    Callable,
    Mapping,
)
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.domain import variables
from harness.errors import UsageError
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.run_logger import RunLogger
from harness.training import processes
from harness.training.chat import (
    ChatTurn,
    DatasetRows,
    RowRefusedError,
    pair,
)
from harness.training.language_model import (
    CPU_TIER,
    load_model,
    lora,
)
from harness.training.sharding import shard

_SAVES = 5


@dataclass(frozen=True, kw_only=True)
class TrainerSpec:
    """spec.json; the harness has checked every bound before."""

    raw: Mapping[str, Any]
    sha256: str
    """Of the bytes of the file as read."""

    @classmethod
    def read(cls, path: Path) -> "TrainerSpec":
        """Raises UsageError when the file is not a specification of schema 1."""
        data = path.read_bytes()
        raw = json.loads(data)
        if not isinstance(raw, dict) or raw.get("schema") != 1:
            raise UsageError(
                f"{path} is not a specification of schema 1.",
                hint="Write one with `harness posttrain spec`.",
            )
        return cls(raw=raw, sha256=sha256_bytes(data))

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        return dict(self.raw["hyperparameters"])

    @property
    def max_length(self) -> int:
        return int(self.hyperparameters["max_seq_length"])

    @property
    def seed(self) -> int:
        return int(self.raw["seed"])

    @property
    def model_path(self) -> Path:
        """Raises UsageError when the specification names no folder."""
        if not self.raw["model"].get("path"):
            raise UsageError(
                f"{self.raw['model'].get('id')} has no folder on this machine.",
                hint="Add it with `harness posttrain model add`.",
                code="model_missing",
            )
        return Path(self.raw["model"]["path"])

    def config_fingerprint(self) -> str:
        """Fingerprint of what is used here, not copied; docs/training-programs.md defines it."""
        parts = ("backend", "dtype", "hyperparameters", "mode", "seed")
        used = {name: self.raw[name] for name in parts}
        if "composition" in self.raw:
            used["composition"] = self.raw["composition"]
        return sha256_bytes(canonical_json(used))


@dataclass(kw_only=True)
class TrainingTask:
    spec: TrainerSpec
    output: Path
    log: RunLogger
    clock: Clock
    began: float
    tokenizer: Any
    rows: DatasetRows
    refused: Counter[str] = field(default_factory=Counter)
    """Rows that were not used, by reason."""
    used: int = 0
    extra: dict[str, float | str] = field(default_factory=dict)
    """Of the result: what the protocol does not ask for."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of transformers' trainer in place of the specification's: a micro-batch."""

    def each(self, encode: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
        """`encode` of every row; a refused row is counted by its reason. Raises UsageError when no
        row is left."""
        encoded = []
        for row in self.rows.rows:
            try:
                encoded.append(encode(row))
            except RowRefusedError as error:
                self.refused[error.reason] += 1
        self.used = len(encoded)
        if not encoded:
            raise UsageError(
                f"No row of {len(self.rows.rows)} can be used: {dict(self.refused)}.",
                hint="Raise max_seq_length, or fix the dataset.",
                code="dataset_unusable",
            )
        return encoded

    def pairs(
        self, to_row: Callable[[ChatTurn, ChatTurn], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """`to_row` of the chosen and the rejected turn of every row."""

        def encode(row: dict[str, Any]) -> dict[str, Any]:
            texts = row["prompt"], row["chosen"], row["rejected"]
            chosen, rejected = pair(self.tokenizer, *texts, limit=self.spec.max_length)
            self.count_cut("chosen", chosen)
            self.count_cut("rejected", rejected)
            return to_row(chosen, rejected)

        return self.each(encode)

    def count_cut(self, name: str, answered: ChatTurn) -> None:
        """In the result, as e.g. `cut_rejected`: answers that lost their end to max_seq_length."""
        if answered.cut:
            self.extra[f"cut_{name}"] = int(self.extra.get(f"cut_{name}", 0)) + 1

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Arguments of transformers' trainer by the specification, and the backend's own `more`."""
        numbers, cpu = self.spec.hyperparameters, self.spec["hardware_tier"] == CPU_TIER
        steps = int(numbers["max_steps"])
        rows, micro = processes.shares(numbers)
        settings: dict[str, Any] = {
            "output_dir": str(self.output),
            "max_steps": steps,
            "per_device_train_batch_size": rows,
            "gradient_accumulation_steps": micro,
            "ddp_find_unused_parameters": False,
            "learning_rate": numbers["learning_rate"],
            "warmup_steps": round(numbers["warmup_ratio"] * steps),
            "seed": self.spec.seed,
            "data_seed": self.spec.seed,
            "logging_steps": 1,
            "logging_nan_inf_filter": False,  # it would replace a NaN loss by the running mean
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
        return settings | more | self.settings

    def model(self) -> Any:
        """The base model, ready for training."""
        spec = self.spec
        return self.placed(
            load_model(spec.model_path, dtype=spec["dtype"], tier=spec["hardware_tier"])
        )

    @property
    def shards(self) -> bool:
        """Whether each process holds a part of the frozen weights only."""
        return os.environ.get(variables.SHARD) == "1" and processes.count() > 1

    def placed(self, model: Any) -> Any:
        """A model that nothing trains, sharded where the training is."""
        return shard(model) if self.shards else model

    def lora(self) -> Any:
        numbers = self.spec.hyperparameters
        return lora(numbers["lora_rank"], numbers["lora_alpha"], numbers["lora_dropout"])
