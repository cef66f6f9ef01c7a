"""The processes of one training that share each step, as torchrun starts them: what each of them
has is put together here. Alone, a process is all of them.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from harness.errors import UsageError

_WAIT = timedelta(minutes=10)
T = TypeVar("T")


def count() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """0 for the first process, which alone writes."""
    return int(os.environ.get("RANK") or 0)


def local_rank() -> int:
    """The number of this process' GPU on its host."""
    return int(os.environ.get("LOCAL_RANK") or 0)


def start(*, cpu: bool) -> None:
    """Let the processes find each other, where torchrun started several. One alone takes one GPU:
    of more, transformers would make a step of as many times the rows."""
    alone = int(os.environ.get("WORLD_SIZE") or 1) == 1
    if alone and not cpu:
        shown = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
        os.environ["CUDA_VISIBLE_DEVICES"] = shown.partition(",")[0]
    if alone or dist.is_initialized():
        return
    if cpu:
        dist.init_process_group("gloo", timeout=_WAIT)
        return
    card = torch.device("cuda", local_rank())
    torch.cuda.set_device(card)
    dist.init_process_group("nccl", timeout=_WAIT, device_id=card)


def stop() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def gathered(own: T) -> list[T]:
    """Of every process, in the order of ranks."""
    found: list[Any] = [own] * count()
    if count() > 1:
        dist.all_gather_object(found, own)
    return found


def joined(own: Sequence[T]) -> list[T]:
    """The lists of all processes as one."""
    return [one for each in gathered(list(own)) for one in each]


def mean(own: torch.Tensor) -> torch.Tensor:
    """Over the processes; of equal shape in all."""
    if count() > 1:
        own = own.clone()
        dist.all_reduce(own)
    return own / count()


def wait() -> None:
    if count() > 1:
        dist.barrier()


def shares(numbers: Mapping[str, Any]) -> tuple[int, int]:
    """(rows of a micro-batch, micro-batches) of one process: the rows of a step are those of the
    specification, `batch_size` times `gradient_accumulation`, over all processes. Raises UsageError
    (ranks_do_not_divide)."""
    rows, micro = int(numbers["batch_size"]), int(numbers["gradient_accumulation"])
    if micro % count() == 0:
        return rows, micro // count()
    if rows % count() == 0:
        return rows // count(), micro
    raise UsageError(
        f"A step has {micro} micro-batches of {rows} rows, which {count()} processes cannot share.",
        hint=f"Make gradient_accumulation or batch_size a multiple of {count()}.",
        code="ranks_do_not_divide",
    )
