"""Writes all files that derive from a project's ledger: projections and policy snapshot."""

from pathlib import Path

from harness.ledger.project import Project
from harness.projections.refresh import refresh
from harness.rendering.policy_snapshot import write_policy_snapshot
from harness.rendering.standing import next_steps


def write_derived(project: Project, *, everything: bool = False) -> list[Path]:
    """Write what is stale or missing, or with `everything` all; returns the projections written."""
    # In a clone without imported facts the committed projections know more than the empty ledger.
    written = (
        []
        if project.ledger.facts_wait()
        else refresh(project.ledger, project.layout, next_steps(project), everything=everything)
    )
    write_policy_snapshot(project)
    return written
