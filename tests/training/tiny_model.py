"""A random Llama of two thin layers with a byte tokenizer and SmolLM2's chat template, and
specifications for it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from harness.artifacts.content import hash_path
from harness.files import sha256_bytes

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' +"
    " '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<|unk|>", "<|im_start|>", "<|im_end|>")


def save_tiny_model(folder: Path) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(
        models.BPE(vocab={text: i for i, text in enumerate([*SPECIAL, *alphabet])}, merges=[])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    unknown, begin, end = SPECIAL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token=unknown, bos_token=begin, eos_token=end, pad_token=end
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        **sizes,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def save_tool_model(folder: Path, template: str) -> Path:
    """With a chat template of TRL's, by its name, and room for what that writes."""
    save_tiny_model(folder)
    source = Path(trl.__file__).parent / f"chat_templates/{template}.jinja"
    (folder / "chat_template.jinja").write_text(source.read_text("utf-8"), "utf-8")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 8192}))
    return folder


def preferences(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{i}",
            "prompt": f"{i}+1?",
            "chosen": f"{i + 1}.",
            "rejected": f"{i + 2}.",
            "answer": f"{i + 1}",
            "hint": f"It is {i + 1}.",
        }
        for i in range(count)
    ]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def specification(model: Path, data: Path, backend: str, mode: str, **more: Any) -> dict[str, Any]:
    hyperparameters = {
        "learning_rate": 1e-2,
        "batch_size": 2,
        "gradient_accumulation": 2,
        "lora_rank": 4,
    }
    hyperparameters |= {
        "lora_alpha": 8,
        "lora_dropout": 0.1,
        "warmup_ratio": 0.1,
        "max_steps": 4,
        "beta": 0.1,
    }
    hyperparameters |= {"max_seq_length": 64} | more.pop("hyperparameters", {})
    return {
        "schema": 1,
        "experiment": "exp-0001",
        "run": "run-01",
        "backend": backend,
        "mode": mode,
        "profile": "local-reader",
        "hardware_tier": "cpu-experimental",
        "command": None,
        "model": {"id": "tiny", "family": "tiny", "path": str(model), "sha256": hash_path(model)},
        "dataset": {
            "path": str(data),
            "sha256": sha256_bytes(data.read_bytes()),
            "rows": data.read_text("utf-8").count("\n"),
        },
        "benchmark": None,
        "seed": 1,
        "dtype": "float32",
        "hyperparameters": hyperparameters,
        "budget": {"minutes": 10.0, "tokens": 1_000_000},
        "artifact": {"path": "adapter", "format": "peft-adapter"},
        "config_fingerprint": "0" * 64,
        "code_hash": "0" * 64,
    } | more


def environment(run_dir: Path, attempt: int = 1) -> dict[str, str]:
    run = {
        "HARNESS_RUN_DIR": str(run_dir),
        "HARNESS_EXPERIMENT": "exp-0001",
        "HARNESS_RUN": "run-01",
    }
    run |= {"HARNESS_RUN_TOKEN": "t", "HARNESS_SEED": "1", "HARNESS_ATTEMPT": str(attempt)}
    return run | {
        "HOME": str(run_dir),
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "1",
    }


def start(
    name: str, spec: dict[str, Any], run_dir: Path, attempt: int = 1
) -> subprocess.CompletedProcess[str]:
    """Run the trainer program `name` as the harness would."""
    output = run_dir / "checkpoints"
    output.mkdir(parents=True, exist_ok=True)
    (run_dir / "spec.json").write_text(json.dumps(spec), "utf-8")
    words = [
        "-m",
        f"harness.training.trainers.{name}",
        "--spec",
        str(run_dir / "spec.json"),
        "--output-dir",
        str(output),
    ]
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(run_dir, attempt),
    )
