"""Every file that is derived from a project's ledger, brought up to date in one place: projections and snapshot."""

from pathlib import Path

from harness.project.context import Project
from harness.projections.refresh import refresh
from harness.rendering.snapshot import write_policy_snapshot


def write_derived(project: Project, *, everything: bool = False) -> list[Path]:
    """Write what is out of date or gone, with `everything` all projections anew; returns the projections written.

    The policy snapshot is what hooks judge by, so it follows every fact too.
    """
    written = [] if facts_wait(project) else refresh(project.ledger, project.layout, everything=everything)
    write_policy_snapshot(project)
    return written


def facts_wait(project: Project) -> bool:
    """Whether the ledger is empty and the project brings facts as text: a clone, before `harness ledger import`.

    Its committed projections say more than an empty ledger does, so they are left as they are.
    """
    return project.ledger.position() == 0 and any(project.layout.facts_dir.glob("*.jsonl"))
