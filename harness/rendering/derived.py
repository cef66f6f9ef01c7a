"""Every file that is derived from a project's ledger, brought up to date in one place: projections
and snapshot."""

from pathlib import Path

from harness.ledger.project import Project
from harness.projections.refresh import refresh
from harness.rendering.policy_snapshot import write_policy_snapshot


def write_derived(project: Project, *, everything: bool = False) -> list[Path]:
    """Write what is out of date or gone, with `everything` all projections anew; returns the
    projections written.

    The policy snapshot is what hooks judge by, so it follows every fact too. In a clone whose facts
    are not imported yet the committed projections say more than the empty ledger does: they are
    left as they are.
    """
    written = (
        []
        if project.ledger.facts_wait()
        else refresh(project.ledger, project.layout, everything=everything)
    )
    write_policy_snapshot(project)
    return written
