"""What bench/composed_gpu.py and its part bench/_preferences.py share: models of random weights, a
tokenizer of 151,936 words, and the pace of a training."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    TrainerCallback,
    set_seed,
)

from harness.clock import SystemClock
from harness.run_logger import RunLogger
from harness.training.chat import read_rows
from harness.training.language_model import load_tokenizer
from harness.training.trainers.task import TrainerSpec, TrainingTask
from tests.training.tiny_model import SPECIAL, TEMPLATE

WORDS, GIB = 151_936, 2**30
ON = "cuda" if torch.cuda.is_available() else "cpu"
LARGE = {
    "vocab_size": WORDS,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
}
LARGE |= {"num_attention_heads": 32, "num_key_value_heads": 8}
SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
}
SMALL |= {"num_attention_heads": 9, "num_key_value_heads": 3}
TINY = {"vocab_size": 512, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
TINY |= {"num_attention_heads": 2, "num_key_value_heads": 1}


@dataclass
class Pace(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """Seconds of each step, and the rows that were logged; stops when `until` has passed."""

    until: float = float("inf")
    seconds: list[float] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    _began: float = 0.0

    def on_step_begin(self, *_words: Any, **_more: Any) -> None:
        wait()
        self._began = time.perf_counter()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_more: Any) -> None:
        wait()
        now = time.perf_counter()
        self.seconds.append(now - self._began)
        control.should_training_stop |= now > self.until

    def on_log(
        self, _args: Any, state: Any, _control: Any, logs: Any = None, **_more: Any
    ) -> None:
        self.rows.append({"step": state.global_step, **(logs or {})})

    @property
    def median(self) -> float:
        """Of the steps after the first two."""
        return statistics.median(self.seconds[2:] or self.seconds)

    @property
    def losses(self) -> list[float]:
        return [row["loss"] for row in self.rows if "loss" in row]


class RandomTask(TrainingTask):
    """Its model has random weights of `sizes`, or is that of the folder where `sizes` is None."""

    sizes: dict[str, int] | None

    def model(self) -> Any:
        return super().model() if self.sizes is None else random_model(self.sizes)


def wait() -> None:
    if ON == "cuda":
        torch.cuda.synchronize()


def random_model(sizes: dict[str, int]) -> Any:
    set_seed(0)
    config = LlamaConfig(
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=False,
        **sizes,
    )
    with torch.device(ON):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    model.config.dtype = torch.bfloat16
    return model


def save_tokenizer(folder: Path, count: int) -> None:
    """A byte tokenizer with a large vocabulary: a random model answers with any of its words."""
    words = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words += [f"w{n}" for n in range(count - len(words))]
    backend = Tokenizer(models.BPE(vocab={text: n for n, text in enumerate(words)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    unknown, begin, end = SPECIAL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token=unknown, bos_token=begin, eos_token=end, pad_token=end
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text("{}")


def task_of(
    spec: Path, data: Path, log: RunLogger, sizes: dict[str, int] | None, *, side: str
) -> RandomTask:
    made = RandomTask(
        spec=TrainerSpec.read(spec),
        output=spec.parent / "checkpoints",
        log=log,
        clock=SystemClock(),
        began=time.monotonic(),
        tokenizer=load_tokenizer(TrainerSpec.read(spec).model_path, padding_side=side),
        rows=read_rows(data, "prompt"),
    )
    made.sizes = sizes
    return made


def trained(make: Callable[[], Any], until: float = float("inf")) -> tuple[Pace, float]:
    """(pace, GiB at the most) of one training; nothing is saved."""
    if ON == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    trainer, pace = make(), Pace(until=until)
    trainer.args.save_strategy = "no"
    trainer.add_callback(pace)
    trainer.train()
    return pace, torch.cuda.max_memory_allocated() / GIB if ON == "cuda" else 0.0


def own_environment(folder: Path) -> None:
    os.environ |= {
        "HARNESS_RUN_DIR": str(folder),
        "HARNESS_EXPERIMENT": "exp-0001",
        "HARNESS_RUN": "run-01",
        "HARNESS_RUN_TOKEN": "t",
        "HARNESS_SEED": "1",
    }
