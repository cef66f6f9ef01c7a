"""What each process of a training takes."""

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

import torch.distributed as dist

from harness.errors import UsageError
from harness.training import processes
from harness.training.sharding import leave_to_sharding, shard


def of(rows: int, micro: int) -> dict[str, Any]:
    return {"batch_size": rows, "gradient_accumulation": micro}


def test_the_rows_of_a_step_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.shares(of(4, 3)) == (4, 3)
    monkeypatch.setattr(processes, "count", lambda: 2)
    assert processes.shares(of(3, 4)) == (3, 2)
    assert processes.shares(of(4, 3)) == (2, 3)
    with pytest.raises(UsageError) as refused:
        processes.shares(of(3, 1))
    assert refused.value.code == "ranks_do_not_divide"


@pytest.mark.parametrize(("shown", "taken"), [(None, "0"), ("2,3", "2"), ("", "")])
def test_one_process_takes_one_card(
    monkeypatch: pytest.MonkeyPatch, shown: str | None, taken: str
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    if shown is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    processes.start(cpu=False)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == taken


def test_accelerate_lets_ddp_stand_beside_sharded_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On several GPUs it refuses a model with any sharded parameter."""
    pytest.importorskip("transformers")
    from accelerate import accelerator
    from transformers import LlamaConfig, LlamaForCausalLM

    monkeypatch.setattr(accelerator, "model_has_dtensor", accelerator.model_has_dtensor)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 8}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=1, num_key_value_heads=1))
    leave_to_sharding(model)
    group = {"init_method": f"file://{tmp_path}/group", "rank": 0, "world_size": 1}
    dist.init_process_group("gloo", **group)
    try:
        sharded = shard(model)
        assert accelerator.model_has_dtensor(sharded)
        leave_to_sharding(sharded)
        assert not accelerator.model_has_dtensor(sharded)
    finally:
        dist.destroy_process_group()
