"""Loads a language model from a folder as the specification says: dtype, device, adapter."""

from pathlib import Path
from typing import Any

import torch
from peft import (
    LoraConfig,
    PeftModel,
)
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
)

from harness.errors import (
    RunError,
    UsageError,
)
from harness.training import processes

CPU_TIER = "cpu-experimental"
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_tokenizer(folder: Path, *, padding_side: str = "right") -> Any:
    """The folder's tokenizer. Its padding token is EOS where the model has none."""
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=padding_side)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(folder: Path, *, dtype: str, tier: str) -> Any:
    """The base model on the tier's device, from safetensors; its repository's code is not run.

    Raises UsageError for a folder that holds an adapter, RunError when the
    tier needs a GPU and there is none.
    """
    # The reference is the model with the adapter off. Were the start itself an adapter, the
    # reference would be another model than the one that training starts from.
    if (folder / "adapter_config.json").exists():
        raise UsageError(
            f"{folder} holds an adapter; expected a whole model.",
            hint="Merge the adapter into its base model first, and name the merged folder.",
            code="model_is_adapter",
        )
    options: dict[str, Any] = {
        "dtype": _DTYPES[dtype],
        "local_files_only": True,
        "use_safetensors": True,
    }
    if tier != CPU_TIER:
        _require_gpu(tier)
        options["device_map"] = {"": processes.local_rank()}
    return AutoModelForCausalLM.from_pretrained(folder, **options)


def load_with_adapter(folder: Path, adapter: Path | None, *, dtype: str, tier: str) -> Any:
    """The model for scoring, in evaluation mode, with the adapter where there is one."""
    model = load_model(folder, dtype=dtype, tier=tier)
    return (model if adapter is None else PeftModel.from_pretrained(model, adapter)).eval()


def lora(rank: int, alpha: int, dropout: float) -> LoraConfig:
    """LoRA (Hu et al. 2021) on every linear layer but the output head."""
    return LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _require_gpu(tier: str) -> None:
    if not torch.cuda.is_available():
        raise RunError(
            f"The hardware tier is {tier}, and torch sees no GPU.",
            hint="Run it on a machine with one, or choose the tier cpu-experimental.",
            code="gpu_missing",
        )
