"""The composed trainer on a GPU with models of random weights: memory, tokens a second, and its
step as a ratio to TRL's trainers one after the other on the same rows.

- large: an architecture of 8 billion parameters with LoRA, 20 steps of reward, self-distillation
  over the whole vocabulary and DPO. A random model earns no reward; that channel computes a loss of
  0. What was logged of each step goes to FILE.
- small: an architecture of 135 million parameters with a vocabulary of 151,936 words; the same
  channels by TRL's GRPOTrainer, SDPOTrainer and DPOTrainer, an equal number of steps each.

Nothing is learned from random weights: what a training learns, bench/composed.py shows.

    python bench/composed_gpu.py [--record] [--rows FILE]

`--record` writes docs/evidence/composed-gpu.json.
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}

import torch
from _record import record
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    TrainerCallback,
    set_seed,
)
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer
from trl.experimental.sdpo import SDPOConfig, SDPOTrainer

sys.path.append(str(Path(__file__).resolve().parents[1]))
from harness.clock import SystemClock
from harness.domain.composition import (
    Composition,
    DistillationChannel,
    PreferenceChannel,
    Rollouts,
)
from harness.run_logger import RunLogger
from harness.training.chat import read_rows
from harness.training.language_model import load_tokenizer
from harness.training.trainers import composed
from harness.training.trainers.task import TrainerSpec, TrainingTask
from tests.training.tiny_model import (
    SPECIAL,
    TEMPLATE,
    environment,
    specification,
    write_rows,
)

WORDS, GIB = 151_936, 2**30
LARGE = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
LARGE |= {"num_attention_heads": 32, "num_key_value_heads": 8}
SMALL = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
SMALL |= {"num_attention_heads": 9, "num_key_value_heads": 3}
STEPS, LARGE_STEPS, ROWS, GENERATIONS, COMPLETION = 6, 20, 8, 4, 48
PROMPT = "Count from {n} in words, one line a number, and explain each step. " * 4
NUMBERS = {"batch_size": ROWS, "gradient_accumulation": 1, "max_steps": STEPS, "lora_rank": 16}
NUMBERS |= {"max_seq_length": 1024, "learning_rate": 1e-5, "lora_dropout": 0.0}


@dataclass
class Pace(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """Seconds of each step after the first two, and the rows that were logged."""

    seconds: list[float] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    _began: float = 0.0

    def on_step_begin(self, *_words: Any, **_more: Any) -> None:
        torch.cuda.synchronize()
        self._began = time.perf_counter()

    def on_step_end(self, *_words: Any, **_more: Any) -> None:
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - self._began)

    def on_log(
        self, _args: Any, state: Any, _control: Any, logs: Any = None, **_more: Any
    ) -> None:
        self.rows.append({"step": state.global_step, **(logs or {})})

    @property
    def median(self) -> float:
        return statistics.median(self.seconds[2:])


class RandomTask(TrainingTask):
    sizes: dict[str, int]

    def model(self) -> Any:
        return random_model(self.sizes)


def random_model(sizes: dict[str, int]) -> Any:
    set_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=False,
        **sizes,
    )
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    model.config.dtype = torch.bfloat16
    return model


def save_tokenizer(folder: Path) -> None:
    """A byte tokenizer with a large vocabulary: a random model answers with any of its words."""
    words = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words += [f"w{n}" for n in range(WORDS - len(words))]
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


def rows() -> list[dict[str, Any]]:
    answer = "One follows the other, and so on until the end. " * 4
    return [
        {
            "id": f"r{n}",
            "prompt": PROMPT.format(n=n),
            "chosen": f"{n + 1}. {answer}",
            "rejected": f"{n + 2}. {answer}",
            "answer": f"{n + 1}",
            "hint": f"Begin with {n + 1}. {answer}",
        }
        for n in range(64)
    ]


def task(folder: Path, sizes: dict[str, int], steps: int, log: RunLogger) -> TrainingTask:
    composition = Composition(
        distillation=DistillationChannel(contexts=("hint",)),
        dpo=PreferenceChannel(pairs=ROWS),
        rollouts=Rollouts(generations=GENERATIONS, max_tokens=COMPLETION),
        gradients_every=0,
    )
    data = folder / "rows.jsonl"
    spec = specification(
        folder,
        data,
        "composed",
        "composed",
        dtype="bfloat16",
        hardware_tier="datacenter-gpu",
        hyperparameters=NUMBERS | {"max_steps": steps},
    )
    (folder / "spec.json").write_text(json.dumps({**spec, "composition": composition.plain()}))
    made = RandomTask(
        spec=TrainerSpec.read(folder / "spec.json"),
        output=folder / "checkpoints",
        log=log,
        clock=SystemClock(),
        began=time.monotonic(),
        tokenizer=load_tokenizer(folder, padding_side="left"),
        rows=read_rows(data, "prompt"),
    )
    made.sizes = sizes
    return made


def trained(make: Callable[[], Any]) -> tuple[Pace, float]:
    """(pace, GiB at the most) of one training; nothing is saved."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trainer, pace = make(), Pace()
    trainer.args.save_strategy = "no"
    trainer.add_callback(pace)
    trainer.train()
    return pace, torch.cuda.max_memory_allocated() / GIB


def score(completions: list[Any], **_more: Any) -> list[float]:
    return [float(len(str(one)) % 7) for one in completions]


def of_trl(folder: Path) -> dict[str, Callable[[], Any]]:
    """TRL's trainers of each channel, with the same rows, batches and lengths."""
    given = rows()
    shared: dict[str, Any] = {
        "output_dir": str(folder / "trl"),
        "max_steps": STEPS,
        "per_device_train_batch_size": ROWS,
        "learning_rate": 1e-5,
        "bf16": True,
        "gradient_checkpointing": True,
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "save_strategy": "no",
    }
    rolled = {"num_generations": GENERATIONS, "max_completion_length": COMPLETION}
    tokenizer = load_tokenizer(folder, padding_side="left")
    asked = [{"prompt": [{"role": "user", "content": one["prompt"]}]} for one in given]
    hinted = [
        one | {"privileged_context": row["hint"]} for one, row in zip(asked, given, strict=True)
    ]
    pairs = [
        one
        | {name: [{"role": "assistant", "content": row[name]}] for name in ("chosen", "rejected")}
        for one, row in zip(asked, given, strict=True)
    ]

    def kind(trainer: Any, config: Any, data: list[Any], **more: Any) -> Callable[[], Any]:
        return lambda: trainer(
            model=random_model(SMALL),
            args=config,
            train_dataset=Dataset.from_list(data),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=16, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"
            ),
            **more,
        )

    sdpo = {"distillation_alpha": 0.5, "distillation_mode": "full_logits"}
    sdpo |= {"include_environment_feedback": True}
    return {
        "GRPO": kind(GRPOTrainer, GRPOConfig(**shared, **rolled), asked, reward_funcs=[score]),
        "SDPO": kind(
            SDPOTrainer, SDPOConfig(**shared, **rolled, **sdpo), hinted, reward_funcs=[score]
        ),
        "DPO": kind(DPOTrainer, DPOConfig(**shared, max_length=1024), pairs),
    }


def main(given: argparse.Namespace) -> int:
    if not torch.cuda.is_available():
        print("No CUDA GPU is here: nothing was measured.")
        return 0
    figures: dict[str, float | str] = {"card": torch.cuda.get_device_name(0)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_tokenizer(folder)
        write_rows(folder / "rows.jsonl", rows())
        os.environ |= environment(folder / "run")
        (folder / "run").mkdir()
        with RunLogger.from_environment() as log:
            times, most = {}, {}
            for label, make in of_trl(folder).items():
                pace, held = trained(make)
                times[label], most[label] = pace.median, held
                print(f"TRL {label}: {pace.median:.2f} s a step, {held:.2f} GiB", flush=True)
            pace, held = trained(lambda: composed.build(task(folder, SMALL, STEPS, log)))
            print(f"composed: {pace.median:.2f} s a step, {held:.2f} GiB", flush=True)
            figures |= {f"TRL {label} s": round(one, 3) for label, one in times.items()}
            figures |= {f"TRL {label} GiB": round(one, 2) for label, one in most.items()}
            figures |= {"composed s": round(pace.median, 3), "composed GiB": round(held, 2)}
            figures["time ratio"] = round(pace.median / sum(times.values()), 3)
            figures["memory ratio"] = round(held / max(most.values()), 3)
            pace, held = trained(lambda: composed.build(task(folder, LARGE, LARGE_STEPS, log)))
            tokens = max(row.get("num_tokens", 0) for row in pace.rows) / len(pace.seconds)
            print(f"8B: {pace.median:.2f} s a step, {held:.2f} GiB", flush=True)
            figures |= {"8B s": round(pace.median, 3), "8B GiB": round(held, 2)}
            figures |= {"8B steps": len(pace.seconds)}
            figures["8B tokens per second"] = round(tokens / pace.median, 1)
    names = sorted({key for row in pace.rows for key in row}, key=lambda key: (key != "step", key))
    with given.rows.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(pace.rows)
    print(json.dumps(figures, indent=1))
    if given.record:
        record("composed-gpu", "python bench/composed_gpu.py --record", figures, seed=0)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--rows", type=Path, default=Path("composed-gpu-steps.csv"))
    sys.exit(main(parser.parse_args()))
