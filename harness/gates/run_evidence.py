"""Gathers what one run left behind: its files, its rows, its checkpoints."""

from collections.abc import Sequence
from typing import Any

from harness.artifacts.content import read_text
from harness.artifacts.metrics_file import Metrics, read_rows
from harness.artifacts.metrics_notes import notes_of, row_times
from harness.artifacts.training_status import read_status
from harness.domain.records import Checkpoint, Run
from harness.files import sha256_bytes
from harness.gates.cadence import longest_gap
from harness.gates.evidence import CheckpointEvidence, RunEvidence
from harness.gates.files import content_hash, read_evidence
from harness.ledger.project import Project


def run_evidence(project: Project, run: Run, counted: Sequence[Run]) -> RunEvidence:
    """`counted`: the runs of its experiment that count. Whatever is wrong with a file is a finding
    in the evidence."""
    layout = project.layout
    metrics, rows = read_evidence(
        layout, "metrics", layout.run(run.experiment, run.id, "metrics"), read_rows
    )
    status, said = read_evidence(
        layout, "status", layout.run(run.experiment, run.id, "status"), read_status
    )
    evaluation, _ = read_evidence(
        layout, "evaluation", layout.run(run.experiment, run.id, "evaluation"), read_text
    )
    recorded = project.ledger.checkpoints(run.experiment, run.id)
    removed = {
        fact.checkpoint: at
        for fact, at in project.ledger.removed_checkpoints(run.experiment)
        if fact.run == run.id
    }
    return RunEvidence(
        run=run,
        metrics=metrics,
        status=status,
        evaluation=evaluation,
        **_of_rows(rows),
        status_run=said.run if said else None,
        status_state=said.status if said else None,
        checkpoints=tuple(
            CheckpointEvidence(
                checkpoint=item,
                actual=(actual := content_hash(layout, item.path) if item.final else item.id),
                earlier=_earlier(project, item, counted),
                removed=removed.get(item.id) if actual is None else None,
            )
            for item in recorded
        ),
    )


def _earlier(project: Project, checkpoint: Checkpoint, counted: Sequence[Run]) -> str | None:
    """Who left these bytes first, when it was another experiment, or another seed's run of this one
    that does not count any more. Of seeds that count, `seed_ignored` tells. A run that repeats the
    first one, code, command, data and seed, is expected to leave the same bytes."""
    first = project.ledger.first_with_checkpoint(checkpoint.id)
    if first is None or (first.experiment, first.run) == (checkpoint.experiment, checkpoint.run):
        return None
    theirs, own = (project.ledger.run(item.experiment, item.run) for item in (first, checkpoint))
    if first.experiment == checkpoint.experiment:
        if theirs.seed == own.seed or first.run in {run.id for run in counted}:
            return None
    elif (theirs.code, theirs.argv, theirs.data, theirs.seed) == (
        own.code,
        own.argv,
        own.data,
        own.seed,
    ):
        return None
    return f"{first.experiment}/{first.run}"


def _of_rows(metrics: Metrics | None) -> dict[str, Any]:
    if metrics is None:
        return {}
    starts = [row for row in metrics.rows if row.get("event") in ("start", "attempt")]
    return {
        "row_runs": frozenset(str(row.get("run", "")) for row in metrics.rows),
        "row_tokens": frozenset(sha256_bytes(str(row.get("token")).encode()) for row in starts),
        "epochs": sum(row.get("event") == "epoch" for row in metrics.rows),
        "without_checkpoint": longest_gap(metrics.rows, metrics.effective),
        "starts": len(starts),
        "times": row_times(metrics.rows),
        "notes": tuple(notes_of(metrics)),
    }
