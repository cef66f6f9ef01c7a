"""Prints of the rows that a model was given: rows of training that are evaluated, and the order."""

import torch
from torch import Tensor

_A_BATCH = 256
"""Rows of a batch that are printed, evenly spread."""
_VALUES = 1_024
"""Values of a row, evenly spread."""
_KEPT = 65_536
"""Prints of training rows, all epochs together."""
_AN_EPOCH = 4_096
_ORDER = 256
"""Prints whose order is compared with the last epoch's."""
_LEAST = 32
"""Prints below which nothing is said."""


class RowPrints:
    """64-bit prints of rows, equal where all looked-at values are equal to the last bit."""

    def __init__(self) -> None:
        self._trained: set[int] = set()
        self._before: list[int] = []
        """The first prints of the epoch before."""
        self._epoch: list[int] = []
        self._evaluated: set[int] = set()

    def add(self, batch: Tensor, *, training: bool) -> None:
        """Print rows of a batch (rows, ...)."""
        taken = self._epoch if training else self._evaluated
        if len(taken) >= _AN_EPOCH:
            return
        spread = max(1, -(-len(batch) // _A_BATCH))
        prints = _prints(batch.detach()[::spread])
        if not training:
            self._evaluated.update(prints)
            return
        self._epoch += prints
        if len(self._trained) < _KEPT:
            self._trained.update(prints)

    def values(self) -> dict[str, float]:
        """Shares since the last call; then the next epoch begins."""
        found = {}
        if len(self._evaluated) >= _LEAST and self._trained:
            shared = len(self._evaluated & self._trained)
            found["overlap"] = shared / len(self._evaluated)
        now = self._epoch
        if len(now) >= _LEAST:
            found["distinct"] = len(set(now)) / len(now)
        order = now[:_ORDER]
        if len(order) >= _LEAST and len(order) == len(self._before):
            same = sum(a == b for a, b in zip(order, self._before, strict=True))
            found["same_order"] = same / len(order)
        self._before = order
        self._epoch, self._evaluated = [], set()
        return found


def _prints(rows: Tensor) -> list[int]:
    """Whole numbers, which wrap around: their sum has no order that a device could change."""
    flat = rows.reshape(len(rows), -1)
    flat = flat[:, :: max(1, flat.shape[1] // _VALUES)][:, :_VALUES]
    if flat.is_floating_point():
        bits = flat.to(torch.float32).contiguous().view(torch.int32).to(torch.int64)
    else:
        bits = flat.to(torch.int64)
    place = torch.arange(1, bits.shape[1] + 1, dtype=torch.int64, device=bits.device)
    # Odd factors of the splitmix64 step; values are mixed before they are summed.
    mixed = (bits + place * -7046029254386353131) * -4658895280553007687
    mixed = (mixed ^ (mixed >> 31)) * -7723592293110705685
    sums: list[int] = (mixed ^ (mixed >> 29)).sum(1).tolist()
    return sums
