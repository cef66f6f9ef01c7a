"""FSDP2 for what an adapter trains on: each process holds its part of the frozen layers' weights
(Rajbhandari et al. 2020, ZeRO, third stage).

The layers are gathered one by one for a pass, and all at once while answers are generated. What is
trained, the adapter, stands whole in every process, as do embeddings and output head.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from accelerate import accelerator
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard

from harness.errors import UsageError


def shard(model: Any) -> Any:
    """`model`, a causal language model that nothing trains, with its layers sharded in place. All
    processes must call it. Raises UsageError (not_shardable)."""
    model.requires_grad_(False)
    backbone = model.base_model
    layers = getattr(backbone, "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise UsageError(
            f"{type(backbone).__name__} has no list `layers`, which could be sharded.",
            hint="Leave `shard` out: each process then holds the whole model.",
            code="not_shardable",
        )
    inside = set(layers.parameters())
    for layer in layers:
        fully_shard(layer, reshard_after_forward=True)
    # Without weights of its own: the layers then share their streams, and gather ahead.
    rest = {one for one in backbone.parameters() if one not in inside}
    fully_shard(backbone, ignored_params=rest)
    with torch.no_grad():  # it makes the backbone the root, whoever is called first later
        ids = torch.zeros(1, 1, dtype=torch.long, device=model.device)
        backbone(input_ids=ids, use_cache=False)
    _generate_whole(model, layers)
    return model


def sharded_names(model: nn.Module) -> list[str]:
    """Parameters that DDP must leave alone: the frozen ones of a sharded model."""
    if not any(isinstance(one, FSDPModule) for one in model.modules()):
        return []
    return [name for name, one in model.named_parameters() if not one.requires_grad]


def leave_to_sharding(model: nn.Module) -> None:
    """Must be called before accelerate lets DDP wrap the model."""
    names = sharded_names(model)
    if names:
        parallel = nn.parallel.DistributedDataParallel
        ignore: Any = parallel._set_params_and_buffers_to_ignore_for_model
        ignore(model, names)
        # On GPUs accelerate 1.15 refuses every sharded parameter, also those that DDP leaves alone.
        accelerator.model_has_dtensor = lambda _model: False


def _generate_whole(model: Any, layers: nn.ModuleList) -> None:
    """Answers differ in length: no process may wait for another's at each token."""
    generate = model.generate

    def whole(*words: Any, **more: Any) -> Any:
        with _gathered(layers):
            return generate(*words, **more)

    model.generate = whole


@contextlib.contextmanager
def _gathered(layers: Any) -> Iterator[None]:
    for one in layers:
        one.set_reshard_after_forward(False, recurse=False)
        one.unshard()
    try:
        yield
    finally:
        for one in layers:
            one.set_reshard_after_forward(True, recurse=False)
            one.reshard()
