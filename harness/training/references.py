"""Log-probabilities of recorded responses: of the policy, and of DPO's reference."""

import json
from collections.abc import (
    Callable,
    Sequence,
)
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

import torch

from harness.files import (
    atomic_write,
    canonical_json,
    pretty_json,
    sha256_bytes,
)
from harness.training import processes
from harness.training.chat import ChatTurn
from harness.training.collators import pad_turns

Pair = tuple[ChatTurn, ChatTurn]
"""(chosen, rejected)."""
_BATCH = 8


def pair_logps(model: Any, pairs: Sequence[Pair], pad: int) -> torch.Tensor:
    """Sums over each response's tokens, shape (2 * pairs,): the chosen ones, then the rejected.

    `model` has TRL's fused output head at temperature 1: no tensor of all logits exists.
    """
    turns = [pair[side] for side in (0, 1) for pair in pairs]
    ids, mask, labels = (one.to(model.device) for one in pad_turns(turns, pad))
    out = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    sums: torch.Tensor = out.log_probs.sum(-1)
    return sums


@dataclass(frozen=True, kw_only=True)
class AdapterOff:
    """The base model below the adapter."""

    model: Callable[[], Any]
    """The policy, a PeftModel."""
    pairs: Sequence[Pair]
    pad: int

    @torch.no_grad()
    def logps(self, numbers: Sequence[int]) -> torch.Tensor:
        """Of the pairs with these numbers, as `pair_logps`."""
        model = self.model()
        with model.disable_adapter():
            return pair_logps(model, [self.pairs[one] for one in numbers], self.pad)


@dataclass(frozen=True, kw_only=True)
class FrozenCopy:
    """A model of its own, which nothing trains."""

    copy: Any
    pairs: Sequence[Pair]
    pad: int

    @torch.no_grad()
    def logps(self, numbers: Sequence[int]) -> torch.Tensor:
        return pair_logps(self.copy, [self.pairs[one] for one in numbers], self.pad)


@dataclass(kw_only=True)
class Precomputed:
    """Computed once with the adapter off, and kept with the hash of what they were computed from.
    A resumed training reads them; of other tokens or another model they are computed anew."""

    source: AdapterOff
    path: Path
    base_sha256: str
    sha256: str = field(init=False)
    """Of the file's bytes."""
    _table: torch.Tensor | None = field(init=False, default=None)
    """Shape (2, pairs)."""

    def logps(self, numbers: Sequence[int]) -> torch.Tensor:
        table = self.ready()
        return torch.cat([table[0, list(numbers)], table[1, list(numbers)]])

    def ready(self) -> torch.Tensor:
        if self._table is None:
            device = self.source.model().device
            kept = self._kept()
            # One process could find what another has just written; all must compute, or none.
            known = all(processes.gathered(kept is not None))
            table = kept if known else self._computed()
            processes.wait()
            self._table = torch.tensor(table, device=device)
            self.sha256 = sha256_bytes(self.path.read_bytes())
        return self._table

    def _key(self) -> str:
        tokens = [[turn.prompt, turn.response] for pair in self.source.pairs for turn in pair]
        return sha256_bytes(canonical_json([self.base_sha256, tokens]))

    def _kept(self) -> list[list[float]] | None:
        if not self.path.is_file():
            return None
        kept = json.loads(self.path.read_text("utf-8"))
        return kept["logps"] if kept["of"] == self._key() else None

    def _computed(self) -> list[list[float]]:
        table: list[list[float]] = [[], []]
        count = len(self.source.pairs)
        for start in range(0, count, _BATCH):
            numbers = range(start, min(start + _BATCH, count))
            halves = self.source.logps(numbers).chunk(2)
            for row, half in zip(table, halves, strict=True):
                row += half.tolist()
        if processes.rank() == 0:
            atomic_write(self.path, pretty_json({"of": self._key(), "logps": table}))
        return table
