"""A data loader that goes on at the batch where it was: the order of each epoch is a function of
seed and epoch."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from harness.errors import UsageError


def order_of(size: int, *, seed: int, epoch: int, shuffle: bool = True) -> list[int]:
    """The row numbers 0 ... size-1 in the order of `epoch`, always the same for the same
    arguments."""
    return (
        torch.randperm(size, generator=_generator(seed, epoch)).tolist()
        if shuffle
        else list(range(size))
    )


def _generator(seed: int, epoch: int) -> torch.Generator:
    """Seeds and epochs that are near each other give streams that are not: both go through
    SHA-256."""
    digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


class ResumableLoader:
    """Batches of `dataset`, an epoch each time it is iterated.

    A batch counts as used when it is handed out, so save after the optimizer's step. After the last
    batch the next iteration is the next epoch; an iteration that was left early goes on where it
    stopped. It draws nothing from the global random numbers. `more` goes to
    `torch.utils.data.DataLoader` (num_workers, collate_fn, ...).

    With `num_workers` the order is kept, too; what a data set draws at random inside a worker
    starts again when an epoch is resumed in its middle, and `Checkpointer.resume` says so.
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
        """Batches of the epoch that are used."""
        self.num_workers = int(more.get("num_workers", 0))
        self._dataset, self._more = dataset, more
        self._fixed = {
            "seed": seed,
            "size": len(dataset),  # type: ignore[arg-type] # torch's Dataset has no __len__ in its type
            "batch_size": batch_size,
            "shuffle": shuffle,
            "drop_last": drop_last,
        }

    def __len__(self) -> int:
        """Batches an epoch."""
        size, batch = self._fixed["size"], self._fixed["batch_size"]
        return size // batch if self._fixed["drop_last"] else -(-size // batch)

    def __iter__(self) -> Iterator[Any]:
        seed, epoch, size = self._fixed["seed"], self.epoch, self._fixed["batch_size"]
        order = order_of(
            self._fixed["size"], seed=seed, epoch=epoch, shuffle=bool(self._fixed["shuffle"])
        )
        batches = [order[at * size : (at + 1) * size] for at in range(self.batch, len(self))]
        if batches:
            # DataLoader draws its workers' seeds from here; from the global stream a resume would
            # draw once more
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
        """Raises UsageError when the data, the batch size or the seed is another: no batch would be
        the same."""
        other = [
            f"{name} {state.get(name)!r}, here {value!r}"
            for name, value in self._fixed.items()
            if state.get(name) != value
        ]
        if other:
            raise UsageError(
                f"The checkpoint's data order is of another loader: {'; '.join(other)}.",
                hint="Resume with the same data, seed and batch size, or start a new run.",
                code="data_order_differs",
            )
        self.epoch, self.batch = int(state["epoch"]), int(state["batch"])
