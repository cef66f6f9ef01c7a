"""A data loader that can be resumed at any batch: seed and epoch fix the order."""

import hashlib
from collections.abc import (
    Iterator,
    Mapping,
)
from typing import Any

import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
)

from harness.errors import UsageError


def order_of(size: int, *, seed: int, epoch: int, shuffle: bool = True) -> list[int]:
    """The row numbers 0 ... size-1 in the order of `epoch`, a pure function of the arguments."""
    if not shuffle:
        return list(range(size))
    return torch.randperm(size, generator=_generator(seed, epoch)).tolist()


def _generator(seed: int, epoch: int) -> torch.Generator:
    # Through SHA-256, so that neighbouring seeds and epochs give unrelated streams.
    digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


class ResumableLoader:
    """Batches of `dataset`, one epoch an iteration.

    A batch counts as used when it is handed out, so save after the optimizer's step. After the last
    batch the next iteration is the next epoch; an iteration that was left early continues where it
    stopped. It draws nothing from the global random state. `more` goes to
    `torch.utils.data.DataLoader` (num_workers, collate_fn, ...).

    With `num_workers` the order is kept, too. What a data set draws at random inside a worker
    starts again when an epoch is resumed half-way, and `Checkpointer.resume` says so.
    """

    def __init__(
        self,
        dataset: "Dataset[Any]",
        *,
        batch_size: int,
        seed: int,
        shuffle: bool = True,
        drop_last: bool = False,
        **more: Any,
    ) -> None:
        if batch_size < 1:
            raise UsageError(
                f"batch_size is {batch_size}; expected at least 1.",
                hint="Give a size of 1 or more.",
            )
        self.epoch = 0
        self.batch = 0
        """Used batches of the epoch."""
        self.num_workers = int(more.get("num_workers", 0))
        self._dataset, self._more = dataset, more
        self._fixed = {
            "seed": seed,
            "size": len(dataset),  # type: ignore[arg-type] # Dataset declares no __len__
            "batch_size": batch_size,
            "shuffle": shuffle,
            "drop_last": drop_last,
        }

    def __len__(self) -> int:
        """Number of batches an epoch."""
        size, batch = self._fixed["size"], self._fixed["batch_size"]
        return size // batch if self._fixed["drop_last"] else -(-size // batch)

    def __iter__(self) -> Iterator[Any]:
        seed, epoch, size = self._fixed["seed"], self.epoch, self._fixed["batch_size"]
        order = order_of(
            self._fixed["size"], seed=seed, epoch=epoch, shuffle=bool(self._fixed["shuffle"])
        )
        batches = [order[at * size : (at + 1) * size] for at in range(self.batch, len(self))]
        if batches:
            # DataLoader draws its workers' seeds from this generator. From the global one a resumed
            # epoch would draw once more than an unbroken one.
            generator = _generator(seed, ~epoch)
            loader = DataLoader(
                self._dataset, batch_sampler=batches, generator=generator, **self._more
            )
            for data in loader:
                self.batch += 1
                yield data
        self.epoch, self.batch = epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "batch": self.batch, **self._fixed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises UsageError when size, batch size or seed differ: no batch would be the same."""
        other = [
            f"{name} {state.get(name)!r}, here {value!r}"
            for name, value in self._fixed.items()
            if state.get(name) != value
        ]
        if other:
            raise UsageError(
                f"The checkpoint is of another data order: {'; '.join(other)}.",
                hint="Resume with the same data, seed and batch size, or start a new run.",
                code="data_order_differs",
            )
        self.epoch, self.batch = int(state["epoch"]), int(state["batch"])
