"""How large each channel's gradient is, and whether channels pull the same way."""

from collections.abc import (
    Mapping,
    Sequence,
)
from itertools import combinations

import torch

from harness.training import processes


class ChannelGradients:
    """Sums the gradients of a step's micro-batches, a channel each."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._sums: dict[str, torch.Tensor] = {}

    def add(self, losses: Mapping[str, torch.Tensor]) -> None:
        """The graph of each loss is kept, for the backward pass of their sum."""
        for name, loss in losses.items():
            parts = torch.autograd.grad(
                loss, self._parameters, retain_graph=True, allow_unused=True
            )
            flat = torch.cat(
                [
                    (torch.zeros_like(one) if part is None else part).flatten().float()
                    for one, part in zip(self._parameters, parts, strict=True)
                ]
            )
            self._sums[name] = self._sums[name] + flat if name in self._sums else flat

    def told(self) -> dict[str, float]:
        """Metric -> value, of all processes' gradients; begins anew. Norms are of the channels' own
        losses, without weights; the cosine of a gradient of 0 is left out."""
        self._sums = {name: processes.mean(self._sums[name]) for name in sorted(self._sums)}
        norms = {name: float(one.norm()) for name, one in self._sums.items()}
        rows = {f"channel/{name}/grad_norm": norm for name, norm in norms.items()}
        for left, right in combinations(sorted(self._sums), 2):
            if norms[left] and norms[right]:
                dot = float(self._sums[left] @ self._sums[right])
                rows[f"channel/cosine/{left}_{right}"] = dot / (norms[left] * norms[right])
        self._sums = {}
        return rows
