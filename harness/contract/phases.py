"""Which evidence each gate requires, by the names of the artifact table and of the ledger's
records."""

from harness.contract.artifacts import BY_NAME, Artifact
from harness.domain.statuses import GateName

_EXPERIMENT = (
    "hypothesis",
    "config",
    "code",
    "metrics",
    "status",
    "checkpoints",
    "evaluation",
    "score",
    "result",
)

REQUIRED: dict[GateName, tuple[str, ...]] = {
    GateName.VALIDATION: _EXPERIMENT,
    GateName.HELD_OUT: _EXPERIMENT,
}
"""Artifacts without which a gate does not pass. The held-out gate needs an evaluation of its own
split on top of a PASS on validation; registered runs for all seeds, lineage and evaluations are
read from the ledger."""


def required(gate: GateName) -> tuple[Artifact, ...]:
    """The artifacts that `gate` requires, in the order in which missing ones are named."""
    return tuple(BY_NAME[name] for name in REQUIRED[gate])
