"""One composed step on a GPU: time and memory of the three channels together, against the same
three computed one by one by TRL's functions in the same run, from full logits where TRL takes
those.

The model has random weights and an architecture of the size that is asked for, in bfloat16 with
LoRA; prompts, completions and pairs are random tokens. Then whole steps with rollouts are trained,
each a row of the table that `--csv` names.

    python bench/composed_step.py [--layers N] [--width N] [--words N] [--tokens N] [--rows N]
                                  [--steps N] [--csv FILE] [--record]

`--record` writes docs/evidence/composed_step.json. Times are of the card that it names.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}

import torch
from _record import record
from transformers import LlamaConfig, LlamaForCausalLM
from trl import GRPOTrainer
from trl.experimental.gkd import GKDTrainer
from trl.trainer.utils import selective_log_softmax

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from harness.clock import SystemClock  # noqa: E402  it needs the line above
from harness.domain.composition import (  # noqa: E402
    Composition,
    DistillationChannel,
    PreferenceChannel,
    RewardChannel,
    RewardFunction,
    Rollouts,
)
from harness.files import sha256_bytes  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training.chat import ChatTurn, read_rows  # noqa: E402
from harness.training.collators import pad_turns  # noqa: E402
from harness.training.language_model import load_tokenizer  # noqa: E402
from harness.training.trainers import composed  # noqa: E402
from harness.training.trainers.task import TrainerSpec, TrainingTask  # noqa: E402
from tests.training.tiny_model import (  # noqa: E402
    environment,
    preferences,
    save_tiny_model,
    specification,
    write_rows,
)

SOURCE = """def length(completions, **more):
    return [len(one[0]["content"]) for one in completions]
"""
REWARD = RewardFunction(
    name="length", file="length.py", sha256=sha256_bytes(SOURCE.encode()), source=SOURCE
)
COMPOSITION = Composition(
    reward=RewardChannel(functions=(REWARD,), function_weights=(1.0,)),
    distillation=DistillationChannel(success=1e9),
    dpo=PreferenceChannel(),
    gradients_every=0,
)
WEIGHTS = {"reward": 1.0, "distillation": 1.0, "dpo": 0.25}


class RandomTask(TrainingTask):
    """Its model comes from nowhere."""

    config: LlamaConfig

    def model(self) -> Any:
        with torch.device("cuda"):
            kept = torch.get_default_dtype()
            torch.set_default_dtype(torch.bfloat16)
            made = LlamaForCausalLM(self.config)
            torch.set_default_dtype(kept)
        return made


def built(folder: Path, options: argparse.Namespace) -> Any:
    tokenizer_folder = save_tiny_model(folder / "model")
    data = write_rows(folder / "rows.jsonl", preferences(64))
    numbers = {"batch_size": options.rows, "gradient_accumulation": 1, "lora_dropout": 0.0}
    numbers |= {"max_steps": options.steps, "lora_rank": 16, "lora_alpha": 32}
    numbers |= {"learning_rate": 1e-5, "max_seq_length": 4 * options.tokens}
    spec = specification(
        tokenizer_folder,
        data,
        "composed",
        "composed",
        hardware_tier="datacenter-gpu",
        dtype="bfloat16",
        hyperparameters=numbers,
        composition=Composition(
            **{
                **{one: getattr(COMPOSITION, one) for one in ("reward", "distillation", "dpo")},
                "rollouts": Rollouts(max_tokens=options.tokens // 4),
                "gradients_every": 0,
            }
        ).plain(),
    )
    (folder / "spec.json").write_text(json.dumps(spec))
    os.environ |= environment(folder)
    task = RandomTask(
        spec=TrainerSpec.read(folder / "spec.json"),
        output=folder / "checkpoints",
        log=RunLogger.from_environment(),
        clock=SystemClock(),
        began=time.monotonic(),
        tokenizer=load_tokenizer(tokenizer_folder, padding_side="left"),
        rows=read_rows(data, "prompt"),
    )
    task.config = LlamaConfig(
        vocab_size=options.words,
        hidden_size=options.width,
        intermediate_size=int(3.5 * options.width),
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 128,
        num_key_value_heads=max(1, options.width // 512),
        max_position_embeddings=8192,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    return composed.build(task)


def inputs_of(trainer: Any, options: argparse.Namespace) -> dict[str, Any]:
    """A micro-batch of random tokens: half prompt, half completion; the teacher's prompt is longer
    by a quarter."""
    torch.manual_seed(0)
    rows, half = options.rows, options.tokens // 2

    def ids(width: int) -> torch.Tensor:
        return torch.randint(3, options.words, (rows, width), device="cuda")

    def ones(width: int) -> torch.Tensor:
        return torch.ones(rows, width, dtype=torch.long, device="cuda")

    completion, longer = ids(half), half + half // 2
    pairs = [
        tuple(
            ChatTurn(prompt=ids(half)[0].tolist(), response=ids(half)[0].tolist())
            for _ in range(2)
        )
        for _ in range(rows)
    ]
    object.__setattr__(trainer.channels, "pairs", pairs)
    object.__setattr__(trainer.channels.reference, "pairs", pairs)
    return {
        "prompt_ids": ids(half),
        "prompt_mask": ones(half),
        "completion_ids": completion,
        "completion_mask": ones(half),
        "advantages": torch.randn(rows, device="cuda"),
        "num_items_in_batch": torch.tensor(rows * half, device="cuda"),
        "teacher_ids": torch.cat([ids(longer), completion], 1),
        "teacher_mask": ones(longer + half),
        "taught": torch.ones(rows, device="cuda"),
        "token_weights": torch.full((rows, half), 1 / (rows * half), device="cuda"),
    }


def logits_of(model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int) -> torch.Tensor:
    out = model(input_ids=ids, attention_mask=mask, logits_to_keep=keep + 1, use_cache=False)
    logits: torch.Tensor = out.logits[:, :-1]
    return logits


def one_by_one(trainer: Any, inputs: dict[str, Any]) -> None:
    """The three losses with TRL's functions, a backward pass each."""
    model, mask = trainer.model, inputs["completion_mask"]
    (WEIGHTS["reward"] * GRPOTrainer._compute_loss(trainer, model, inputs)).backward()
    student = logits_of(
        model,
        torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
        torch.cat([inputs["prompt_mask"], mask], 1),
        mask.shape[1],
    )
    with torch.no_grad(), model.disable_adapter():
        teacher = logits_of(model, inputs["teacher_ids"], inputs["teacher_mask"], mask.shape[1])
    loss = GKDTrainer.generalized_jsd_loss(student, teacher, labels=mask, beta=0.5)
    (WEIGHTS["distillation"] * loss).backward()
    del student, teacher, loss
    pairs = trainer.channels.pairs
    turns = [pair[side] for side in (0, 1) for pair in pairs]
    ids, seen, labels = (one.cuda() for one in pad_turns(turns, 2))
    kept = (labels[:, 1:] != -100).float()

    def sums() -> torch.Tensor:
        logits = model(input_ids=ids, attention_mask=seen, use_cache=False).logits[:, :-1]
        return (selective_log_softmax(logits, ids[:, 1:]) * kept).sum(1)

    with torch.no_grad(), model.disable_adapter():
        reference = sums()
    chosen, rejected = (sums() - reference).chunk(2)
    loss = -torch.nn.functional.logsigmoid(0.1 * (chosen - rejected)).mean()
    (WEIGHTS["dpo"] * loss).backward()


def measured(trainer: Any, work: Callable[[], None]) -> tuple[float, float]:
    """(median milliseconds, GiB beside what was there), of five after two."""
    times = []
    for at in range(7):
        trainer.model.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if at >= 2:
            times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), (torch.cuda.max_memory_allocated() - before) / 2**30


def compared(trainer: Any, options: argparse.Namespace) -> dict[str, float]:
    inputs = inputs_of(trainer, options)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    trainer._started = True
    trainer._prepare_inputs = lambda _batch: inputs
    trainer.model.gradient_checkpointing_enable()  # as in training; for both
    ours = measured(trainer, lambda: trainer.training_step(trainer.model, inputs))
    trls = measured(trainer, lambda: one_by_one(trainer, inputs))
    print(f"composed {ours[0]:.1f} ms, {ours[1]:.2f} GiB", flush=True)
    print(f"TRL's one by one {trls[0]:.1f} ms, {trls[1]:.2f} GiB", flush=True)
    print(f"ratios: time {ours[0] / trls[0]:.2f}, memory {ours[1] / trls[1]:.2f}", flush=True)
    return {
        "composed_ms": ours[0],
        "composed_gib": ours[1],
        "trl_ms": trls[0],
        "trl_gib": trls[1],
        "time_ratio": ours[0] / trls[0],
        "memory_ratio": ours[1] / trls[1],
    }


def stepped(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Whole steps with rollouts."""
    trainer = built(folder, options)
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    rows = [row for row in trainer.state.log_history if "channel/dpo/loss" in row]
    names = sorted({name for row in rows for name in row})
    if options.csv:
        lines = [",".join(names)]
        lines += [",".join(str(row.get(name, "")) for name in names) for row in rows]
        Path(options.csv).write_text("\n".join(lines) + "\n")
    peak = torch.cuda.max_memory_allocated() / 2**30
    parameters = sum(one.numel() for one in trainer.model.parameters())
    each = seconds / len(rows)
    print(f"{len(rows)} steps of {parameters:,} parameters: {each:.2f} s each, {peak:.1f} GiB")
    return {"steps": len(rows), "step_s": each, "peak_gib": peak, "parameters": parameters}


def main() -> int:
    parser = argparse.ArgumentParser()
    sizes = {"layers": 32, "width": 4096, "words": 128_256, "tokens": 1024, "rows": 8}
    for name, value in (sizes | {"steps": 20}).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--csv")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    card = torch.cuda.get_device_name(0)
    print(card, torch.__version__, flush=True)
    figures: dict[str, float | str] = {"card": card, **{n: getattr(options, n) for n in sizes}}
    for name in ("compare", "steps"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            if name == "compare":
                figures |= compared(built(folder, options), options)
            else:
                figures |= stepped(folder, options)
        torch.cuda.empty_cache()
    if options.record:
        words = [word for word in sys.argv[1:] if word != "--record"]
        record(
            "composed_step", " ".join(["python bench/composed_step.py", *words]), figures, seed=0
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
