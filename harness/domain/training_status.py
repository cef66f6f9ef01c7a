"""Where a training is, as its run logger says: the one list of fields of training_status.json."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class TrainingStatus:
    """The run logger writes it and others read it; rows and ledger decide."""

    run: str
    seed: int = 0
    attempt: int = 1
    status: str = "running"
    """running, completed or failed, as the training wrote it; a killed process leaves "running"."""
    started_at: str = ""
    updated_at: str = ""
    epoch: int | None = None
    total_epochs: int | None = None
    step: int | None = None
    learning_rate: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    """Non-finite numbers are words in the file, and floats again where it is read."""
    metrics_left_out: int = 0
    rows: int = 0
    non_finite: int = 0
    first_non_finite_epoch: int | None = None
    checkpoints: int = 0
    checkpoint: dict[str, Any] | None = None
    resumed: int = 0
    error: str | None = None


def last_epoch(epoch: float | None, total: float | None) -> int | None:
    """What `epoch` is shown "of". Counted from 0, as the rows are: the last of 4 is "3 of 3".
    None for a total that says nothing: of one epoch, or of fewer than there were."""
    if epoch is None or total is None or total <= 1 or epoch > total - 1:
        return None
    return int(total) - 1
