"""The composed trainer on a GPU: memory, tokens a second, its step as a ratio to TRL's trainers one
after the other, a curve, and preference tuning beside TRL's. About eight minutes, no network.

- small: an architecture of 135 million parameters with a vocabulary of 151,936 words; reward,
  self-distillation and DPO by TRL's GRPOTrainer, SDPOTrainer and DPOTrainer, an equal number of
  steps each, and by the composed trainer.
- preferences: ORPO and DPO on rows of 1,024 tokens (bench/_preferences.py).
- large: an architecture of 8 billion parameters with LoRA, 20 steps of the three channels. A random
  model earns no reward; that channel computes a loss of 0.
- curve: 200 steps in bfloat16, four from the same rollouts. The prompt asks for ten numbers; the
  reward is the share of even ones in the answer. With `--model FOLDER` the weights of that folder,
  else random ones.

    python bench/composed_gpu.py [--record] [--out FOLDER] [--model FOLDER] [--minutes 8.5]
                                 [--parts small preferences large curve]
    python bench/composed_gpu.py --tiny   # on a CPU: shows only that the program runs

`--record` writes docs/evidence/composed-gpu.json, of fewer parts composed-gpu-PARTS.json. FOLDER
(by default this one) gets composed-gpu-steps.csv, of the large model, and composed-gpu-curve.csv:
what each step logged.
"""

import argparse
import csv
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch
from _gpu import (
    LARGE,
    ON,
    SMALL,
    TINY,
    own_environment,
    random_model,
    save_tokenizer,
    task_of,
    trained,
)
from _preferences import Setting, measured
from _record import record
from datasets import Dataset
from peft import LoraConfig
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer
from trl.experimental.sdpo import SDPOConfig, SDPOTrainer

from harness.domain.composition import (
    Composition,
    DistillationChannel,
    FrozenFunction,
    PreferenceChannel,
    RewardChannel,
    Rollouts,
)
from harness.files import sha256_bytes
from harness.run_logger import RunLogger
from harness.training.language_model import load_tokenizer
from harness.training.trainers import composed
from harness.training.trainers.task import TrainingTask
from tests.training.tiny_model import specification, write_rows

STEPS, LARGE_STEPS, CURVE_STEPS = 6, 20, 200
ROWS, GENERATIONS, COMPLETION = 8, 4, 48
PARTS = ("small", "preferences", "large", "curve")
PROMPT = "Count from {n} in words, one line a number, and explain each step. " * 4
NUMBERS = {"batch_size": ROWS, "gradient_accumulation": 1, "max_steps": STEPS, "lora_rank": 16}
NUMBERS |= {"max_seq_length": 1024, "learning_rate": 1e-5, "lora_dropout": 0.0}


EVENS = """
import re

def evens(completions, **more):
    found = [re.findall("[0-9]+", one[-1]["content"]) for one in completions]
    return [sum(n[-1] in "02468" for n in each) / len(each) if each else 0.0 for each in found]
"""
Figures = dict[str, float | str]


@dataclass(frozen=True, kw_only=True)
class Bench:
    folder: Path
    log: RunLogger
    tiny: bool
    until: float
    """On time.perf_counter: no step of the curve begins later."""
    model: Path | None

    @property
    def tier(self) -> str:
        return "cpu-experimental" if self.tiny else "datacenter-gpu"

    @property
    def steps(self) -> int:
        return 2 if self.tiny else STEPS

    @property
    def small(self) -> dict[str, int]:
        return TINY if self.tiny else SMALL


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


def number_rows() -> list[dict[str, Any]]:
    """Prompts of the curve: an answer with even numbers is better than one with odd ones."""
    draw = random.Random(0)
    found = []
    for n in range(64):
        numbers = [draw.randrange(10, 990, 2) for _ in range(10)]
        question = f"Write ten different numbers between {n} and 999, separated by commas."
        found.append(
            {
                "id": f"r{n}",
                "prompt": question,
                "chosen": ", ".join(str(one) for one in numbers),
                "rejected": ", ".join(str(one + 1) for one in numbers),
                "answer": "0",
                "hint": "Every number must be even: it ends in 0, 2, 4, 6 or 8.",
            }
        )
    return found


def task(
    bench: Bench,
    sizes: dict[str, int] | None,
    composition: Composition,
    rows: str = "rows.jsonl",
    **numbers: float,
) -> TrainingTask:
    folder, data = bench.folder, bench.folder / rows
    spec = specification(
        folder if sizes or bench.model is None else bench.model,
        data,
        "composed",
        "composed",
        dtype="bfloat16",
        hardware_tier=bench.tier,
        hyperparameters=NUMBERS | numbers,
    )
    (folder / "spec.json").write_text(json.dumps({**spec, "composition": composition.plain()}))
    return task_of(folder / "spec.json", data, bench.log, sizes, side="left")


def three(max_tokens: int = COMPLETION, **more: Any) -> Composition:
    return Composition(
        distillation=DistillationChannel(contexts=("hint",)),
        dpo=PreferenceChannel(pairs=ROWS),
        rollouts=Rollouts(
            generations=GENERATIONS, max_tokens=max_tokens, iterations=more.pop("iterations", 1)
        ),
        gradients_every=0,
        **more,
    )


def score(completions: list[Any], **_more: Any) -> list[float]:
    return [float(len(str(one)) % 7) for one in completions]


def of_trl(bench: Bench) -> dict[str, Callable[[], Any]]:
    """TRL's trainers of each channel, with the same rows, batches and lengths."""
    given, folder = rows(), bench.folder
    shared: dict[str, Any] = {
        "output_dir": str(folder / "trl"),
        "max_steps": bench.steps,
        "per_device_train_batch_size": ROWS,
        "learning_rate": 1e-5,
        "bf16": not bench.tiny,
        "use_cpu": bench.tiny,
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
            model=random_model(bench.small),
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


def channels(bench: Bench) -> Figures:
    times, most = {}, {}
    for label, make in of_trl(bench).items():
        pace, most[label] = trained(make)
        times[label] = pace.median
        print(f"TRL {label}: {pace.median:.2f} s a step, {most[label]:.2f} GiB", flush=True)
    pace, held = trained(
        lambda: composed.build(task(bench, bench.small, three(), max_steps=bench.steps))
    )
    print(f"composed: {pace.median:.2f} s a step, {held:.2f} GiB", flush=True)
    return {
        **{f"TRL {label} s": round(one, 3) for label, one in times.items()},
        **{f"TRL {label} GiB": round(one, 2) for label, one in most.items()},
        "composed s": round(pace.median, 3),
        "composed GiB": round(held, 2),
        "time ratio": round(pace.median / sum(times.values()), 3),
        "memory ratio": round(held / max(*most.values(), 1e-9), 3),
    }


def preferences(bench: Bench) -> Figures:
    few = {"tokens": 96, "tier": bench.tier} if bench.tiny else {}
    return measured(
        Setting(
            folder=bench.folder,
            log=bench.log,
            sizes=bench.small,
            steps=3 if bench.tiny else 7,
            **few,
        )
    )


def large(bench: Bench, out: Path) -> Figures:
    sizes = TINY if bench.tiny else LARGE
    steps = 2 if bench.tiny else LARGE_STEPS
    pace, held = trained(lambda: composed.build(task(bench, sizes, three(), max_steps=steps)))
    write_table(out / "composed-gpu-steps.csv", pace.rows)
    tokens = max(row.get("num_tokens", 0) for row in pace.rows) / len(pace.seconds)
    print(f"8B: {pace.median:.2f} s a step, {held:.2f} GiB", flush=True)
    return {
        "8B s": round(pace.median, 3),
        "8B GiB": round(held, 2),
        "8B steps": len(pace.seconds),
        "8B tokens per second": round(tokens / pace.median, 1),
    }


def curve(bench: Bench, out: Path) -> Figures:
    source = FrozenFunction(
        name="evens", file="evens.py", source=EVENS, sha256=sha256_bytes(EVENS.encode())
    )
    reward = RewardChannel(functions=(source,), function_weights=(1.0,))
    composition = three(COMPLETION, iterations=4, reward=reward)
    numbers = {"max_steps": 8 if bench.tiny else CURVE_STEPS, "learning_rate": 1e-4}
    sizes = None if bench.model else bench.small
    pace, held = trained(
        lambda: composed.build(task(bench, sizes, composition, "numbers.jsonl", **numbers)),
        bench.until,
    )
    write_table(out / "composed-gpu-curve.csv", pace.rows)
    told: Figures = {
        "curve steps": len(pace.seconds),
        "curve s": round(pace.median, 3),
        "curve GiB": round(held, 2),
        "curve weights": "random" if bench.model is None else bench.model.name,
    }
    for name in ("reward", "channel/distillation/loss", "channel/dpo/loss"):
        values = [row[name] for row in pace.rows if name in row]
        for label, part in (("first", values[:20]), ("last", values[-20:])):
            told[f"curve {name}, {label} 20"] = round(sum(part) / max(1, len(part)), 4)
    return told


def write_table(path: Path, given: list[dict[str, float]]) -> None:
    names = sorted({key for row in given for key in row}, key=lambda key: (key != "step", key))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(given)


def main(given: argparse.Namespace) -> int:
    if ON == "cpu" and not given.tiny:
        print("No CUDA GPU is here: nothing was measured.")
        return 0
    began = time.perf_counter()
    given.out.mkdir(parents=True, exist_ok=True)
    figures: Figures = {"card": "none" if ON == "cpu" else torch.cuda.get_device_name(0)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_tokenizer(folder, (TINY if given.tiny else SMALL)["vocab_size"])
        write_rows(folder / "rows.jsonl", rows())
        write_rows(folder / "numbers.jsonl", number_rows())
        (folder / "run").mkdir()
        own_environment(folder / "run")
        with RunLogger.from_environment() as log:
            bench = Bench(
                folder=folder,
                log=log,
                tiny=given.tiny,
                until=began + 60 * given.minutes,
                model=given.model,
            )
            parts: dict[str, Callable[[], Figures]] = {
                "small": lambda: channels(bench),
                "preferences": lambda: preferences(bench),
                "large": lambda: large(bench, given.out),
                "curve": lambda: curve(bench, given.out),
            }
            for label in given.parts:
                figures |= parts[label]()
                print(f"{label}: {time.perf_counter() - began:.0f} s so far", flush=True)
                print(json.dumps(figures), flush=True)
    if given.record and not given.tiny:
        few = [] if given.parts == list(PARTS) else given.parts
        words = ["python bench/composed_gpu.py --record"]
        words += ["--parts", *few] if few else []
        words += ["--model FOLDER"] if given.model else []
        record("-".join(["composed-gpu", *few]), " ".join(words), figures, seed=0)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--model", type=Path, default=None)
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    sys.exit(main(parser.parse_args()))
