"""Figures of one step, from what its micro-batches in all processes note."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from harness.training import processes


class Kind(StrEnum):
    SUM = "sum"
    PART = "part"
    """Of a mean over the processes: each has its parts of it."""
    MEAN = "mean"


class StepFigures:
    def __init__(self) -> None:
        self._noted: dict[tuple[str, Kind], list[float]] = defaultdict(list)

    def note(self, name: str, value: float, kind: Kind = Kind.MEAN) -> None:
        self._noted[name, kind].append(value)

    def told(self) -> dict[str, float]:
        """Name -> value; begins anew. All processes must ask."""
        values: dict[tuple[str, Kind], list[float]] = defaultdict(list)
        for noted in processes.gathered(dict(self._noted)):
            for key, some in noted.items():
                values[key] += some
        self._noted.clear()
        return {name: _one(kind, some) for (name, kind), some in values.items()}


def _one(kind: Kind, values: list[float]) -> float:
    over = {Kind.SUM: 1, Kind.PART: processes.count(), Kind.MEAN: len(values)}
    return sum(values) / over[kind]


@dataclass
class StepLoss:
    """Of one step in this process, for callbacks whose `note` takes it, e.g. DiLoCo's."""

    loss: torch.Tensor | float = 0.0
    """Sum of the micro-batches' shares: the step's mean."""
    tokens: int = 0
    """That the step learns from: of completions, and of both answers of each pair."""

    def tell(self, callbacks: Iterable[Any]) -> None:
        """Before the optimizer's step; begins anew."""
        for each in callbacks:
            if (note := getattr(each, "note", None)) is not None:
                note(self.loss, tokens=self.tokens)
        self.loss, self.tokens = 0.0, 0
