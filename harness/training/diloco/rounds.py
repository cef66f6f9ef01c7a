"""What the replicas tell each other beside the parameters: a table with a row for each of them,
summed over all."""

import math
from dataclasses import dataclass

import torch

COLUMNS = ("present", "worked", "tokens", "loss", "global")


@dataclass(kw_only=True)
class Work:
    """Of one replica since its last round."""

    tokens: float = 0.0
    loss: float | torch.Tensor = 0.0
    """Summed over the tokens; (), float64, where the losses were tensors."""
    seconds: float = 0.0
    healed: bool = False
    broken: bool = False
    """Its pseudo-gradient is not finite: averaged, it would break the others."""
    drift: float = 0.0
    """Norm of its pseudo-gradient."""
    digest: int = 0
    """Of the global parameters that it started from: 32 bits, so that a float holds it."""

    def table(self, replica: int, replicas: int) -> torch.Tensor:
        """(replicas, columns), float64; zero but in its own row. A replica that was healed, or is
        broken, brings no work: what it did is thrown away."""
        table = torch.zeros(replicas, len(COLUMNS), dtype=torch.float64)
        own = [1.0, 0.0, 0.0, 0.0, float(self.digest)]
        if not (self.healed or self.broken):
            own[1:4] = [1.0, self.tokens, float(self.loss)]
        table[replica] = torch.tensor(own, dtype=torch.float64)
        return table


@dataclass(frozen=True, kw_only=True)
class Round:
    """What all replicas know of one round."""

    number: int
    """From 0."""
    members: list[int]
    """Who took part."""
    worked: list[int]
    """Whose work counts: those of `members` that were neither healed in it nor broken."""
    tokens: float
    loss: float | None
    """Mean over the tokens of those who worked; None where nobody noted a loss."""


def round_of(table: torch.Tensor, number: int) -> Round:
    """From the summed table."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table.tolist()]
    worked = {place: row for place, row in enumerate(rows) if row["worked"]}
    tokens = sum(row["tokens"] for row in worked.values())
    total = sum(row["loss"] for row in worked.values())
    return Round(
        number=number,
        members=[place for place, row in enumerate(rows) if row["present"]],
        worked=list(worked),
        tokens=tokens,
        loss=total / tokens if tokens else None,
    )


def strays(table: torch.Tensor) -> dict[int, int]:
    """Replica -> digest of the global parameters that it started from, of all that took part,
    where they are not the same."""
    digests = {
        place: int(row[-1]) for place, row in enumerate(table.tolist()) if row[0] and row[-1] >= 0
    }
    return digests if len(set(digests.values())) > 1 else {}


def norm(tensors: list[torch.Tensor]) -> float:
    return math.sqrt(sum(torch.stack([each.double().square().sum() for each in tensors]).tolist()))
