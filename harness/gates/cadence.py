"""How long a run went on without a checkpoint."""

from collections.abc import Iterable

from harness.artifacts.metrics_file import Row, place
from harness.domain.records import ApprovedPlan
from harness.plans.plan import plan_from


def cadence_of(approved: ApprovedPlan) -> int | None:
    """The plan's training.checkpoint_every; None for classical machine learning, whose rows are
    folds or trials."""
    plan = plan_from(approved.content)
    return None if plan.workflow == "classical-ml" else plan.training.checkpoint_every


def longest_gap(rows: Iterable[Row], effective: Iterable[Row]) -> tuple[float, float] | None:
    """(first, last) of the longest stretch of logged epochs without a checkpoint; None when there
    is none.

    A checkpoint is of the epoch that its row names, else of the epoch row before it. Weights from
    before the training are none. `rows` are all rows, with those of earlier attempts: a resume does
    not undo what was saved.
    """
    saved, latest = set(), None
    for row in rows:
        if row.get("event") == "epoch":
            latest = place(row)
        elif row.get("event") == "checkpoint" and row.get("initial") is not True:
            named = row.get("epoch")
            epoch = named if isinstance(named, int | float) else latest
            if epoch is not None:
                saved.add(epoch)
    longest: tuple[float, float] | None = None
    first: float | None = None
    logged = {
        at for row in effective if row.get("event") == "epoch" and (at := place(row)) is not None
    }
    for epoch in sorted(logged | saved):
        if epoch in saved:
            first = None
            continue
        first = epoch if first is None else first
        if longest is None or epoch - first > longest[1] - longest[0]:
            longest = first, epoch
    return longest
