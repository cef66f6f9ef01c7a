"""ORPO and DPO on rows of 1,024 tokens, 16 rows a step: tokens a second of TRL's trainers, of ours
with the same settings, and of ours as a specification on a GPU trains (the micro-batch that memory
holds)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _gpu import random_model, task_of, trained
from datasets import Dataset
from peft import LoraConfig
from trl import DPOConfig, DPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

from harness.run_logger import RunLogger
from harness.training.chat import turn
from harness.training.language_model import load_tokenizer
from harness.training.trainers import micro_batch, trl_dpo, trl_orpo
from tests.training.tiny_model import specification, write_rows

TOKENS, ROWS, AT_ONCE = 1024, 16, 2
Figures = dict[str, float | str]
BUILDS = {"orpo": trl_orpo.build, "dpo": trl_dpo.build}


@dataclass(frozen=True, kw_only=True)
class Setting:
    folder: Path
    log: RunLogger
    sizes: dict[str, int]
    steps: int
    tokens: int = TOKENS
    tier: str = "datacenter-gpu"


def rows(folder: Path, tokens: int) -> list[dict[str, str]]:
    """Each answer ends where its row has `tokens` of them: a letter is a token."""
    tokenizer = load_tokenizer(folder)
    prompt = "Say it in words, one after the other, and explain each of them. "
    made = []
    for number in range(4 * ROWS):
        row = {"id": f"r{number}", "prompt": f"{number}. {prompt}"}
        for name in ("chosen", "rejected"):
            text = f"{name} {number} "
            short = len(turn(tokenizer, row["prompt"], text, limit=4 * tokens).ids)
            row[name] = text + f"{name} and "[: tokens - short] * (tokens - short)
            row[name] = row[name][: len(text) + tokens - short]
        made.append(row)
    return made


def measured(setting: Setting) -> Figures:
    """Prints and returns the figures."""
    figures: Figures = {}
    given = rows(setting.folder, setting.tokens)
    write_rows(setting.folder / "pairs.jsonl", given)
    for kind in BUILDS:
        told = {}
        for name, make in _ways(kind, setting, given).items():
            pace, held = trained(make)
            speed = 2 * ROWS * setting.tokens / pace.median
            told[name] = pace.losses
            figures |= {f"{kind} {name}: tokens per second": round(speed)}
            figures |= {f"{kind} {name}: GiB": round(held, 2)}
            losses = ", ".join(f"{one:.4f}" for one in pace.losses)
            print(f"{kind} {name}: {speed:,.0f} tokens/s, {held:.1f} GiB, loss {losses}")
        speeds = {name: float(figures[f"{kind} {name}: tokens per second"]) for name in told}
        same, ours = told["ours, same settings"], told["ours"]
        most = max(abs(a - b) / abs(a) for a, b in zip(same, ours, strict=True))
        figures |= {
            f"{kind}: same settings over TRL": _ratio(speeds, "ours, same settings"),
            f"{kind}: ours over TRL": _ratio(speeds, "ours"),
            f"{kind}: largest difference of a loss": float(f"{most:.2g}"),
        }
        print(json.dumps(figures), flush=True)
    return figures


def _ratio(speeds: dict[str, float], name: str) -> float:
    return round(speeds[name] / speeds["TRL"], 3)


def _ways(
    kind: str, setting: Setting, given: list[dict[str, str]]
) -> dict[str, Callable[[], Any]]:
    build = BUILDS[kind]

    def found() -> Any:
        task = _task(kind, setting)
        trainer = micro_batch.fitted(task, build)
        print(f"{kind}: {task.extra}", flush=True)
        return trainer

    return {
        "TRL": lambda: _plain(kind, setting, given),
        "ours, same settings": lambda: build(_task(kind, setting)),
        "ours": found,
    }


def _task(kind: str, setting: Setting) -> Any:
    folder, data = setting.folder, setting.folder / "pairs.jsonl"
    numbers = {"batch_size": AT_ONCE, "gradient_accumulation": ROWS // AT_ONCE, "lora_rank": 16}
    numbers |= {"max_seq_length": setting.tokens, "learning_rate": 1e-4, "lora_dropout": 0.0}
    numbers |= {"max_steps": setting.steps, "lora_alpha": 32, "warmup_ratio": 0.0}
    spec = specification(
        folder,
        data,
        f"trl-{kind}",
        kind,
        dtype="bfloat16",
        hardware_tier=setting.tier,
        hyperparameters=numbers,
    )
    (folder / "pairs.json").write_text(json.dumps(spec))
    return task_of(folder / "pairs.json", data, setting.log, setting.sizes, side="right")


def _plain(kind: str, setting: Setting, given: list[dict[str, str]]) -> Any:
    shared: dict[str, Any] = {
        "output_dir": str(setting.folder / "trl"),
        "max_steps": setting.steps,
        "per_device_train_batch_size": AT_ONCE,
        "gradient_accumulation_steps": ROWS // AT_ONCE,
        "learning_rate": 1e-4,
        "bf16": setting.tier != "cpu-experimental",
        "use_cpu": setting.tier == "cpu-experimental",
        "gradient_checkpointing": True,
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "save_strategy": "no",
        "seed": 1,
        "data_seed": 1,
        "max_length": setting.tokens,
    }
    data = [
        {"prompt": [{"role": "user", "content": row["prompt"]}]}
        | {name: [{"role": "assistant", "content": row[name]}] for name in ("chosen", "rejected")}
        for row in given
    ]
    trainer, config = (DPOTrainer, DPOConfig) if kind == "dpo" else (ORPOTrainer, ORPOConfig)
    return trainer(
        model=random_model(setting.sizes),
        args=config(**shared),
        train_dataset=Dataset.from_list(data),
        processing_class=load_tokenizer(setting.folder),
        peft_config=LoraConfig(
            r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
