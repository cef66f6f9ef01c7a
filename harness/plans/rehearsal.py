"""The plan of a clone: what git carried of it goes into this machine's vault, and a scenario is
played under a name of its own.

Every budget, comparison and count is of a plan's name. Under another one nothing of the project's
history ends the scenario, and nothing that it does counts for the project.
"""

from dataclasses import fields
from pathlib import Path

from harness.artifacts.content import hash_file
from harness.artifacts.objects import copy_file
from harness.artifacts.trees import is_known
from harness.errors import UsageError
from harness.ledger.facts import ApprovedPlan, PlanApproved
from harness.ledger.facts.plan import REHEARSAL
from harness.ledger.project import Project
from harness.plans.approved import secret


def take_in(project: Project) -> None:
    """Of a plan that was approved on another machine: its scorer and its open validation, as far as
    they are what was approved. What is secret stays where it is."""
    approved = project.ledger.plan()
    if approved is None or approved.tree is None or is_known(project.layout, approved.tree["id"]):
        return
    root, layout = project.layout.root, project.layout
    frozen = {approved.path: approved.sha256, **approved.scorer["files"]}
    for relative, sha256 in frozen.items():
        if _is(root / relative, sha256):
            copy_file(root / relative, layout.objects, sha256)
    for name, split in approved.splits.items():
        if secret(approved, name) or not {"path", "vault"} <= split.keys():
            continue
        source, target = root / split["path"], layout.state / split["vault"]
        if _is(source, split["sha256"]):
            copy_file(source, target.parent, split["sha256"], suffix=target.suffix)


def rehearse(project: Project) -> ApprovedPlan:
    """The plan in force, under the name of a rehearsal."""
    approved = project.plan()
    if REHEARSAL in approved.name:
        return approved
    take_in(project)
    said = {part.name: getattr(approved, part.name) for part in fields(PlanApproved)}
    name = f"{approved.name}{REHEARSAL}{project.ledger.writer}"
    project.ledger.append(PlanApproved(**said | {"name": name, "version": 1}))
    return project.plan()


def require_no_rehearsal(approved: ApprovedPlan) -> None:
    """Raises UsageError (rehearsal): no budget or count of the project limits a loop under it."""
    if REHEARSAL not in approved.name:
        return
    raise UsageError(
        f"This clone plays scenarios under {approved.name}, which counts for nothing else: a loop"
        " of models under it would have a budget of its own.",
        hint="Run it where the plan was approved, or let a person approve the plan here first:"
        f" `harness plan approve {approved.path}`. `--scenario FILE` plays one.",
        code="rehearsal",
    )


def _is(path: Path, sha256: str) -> bool:
    try:
        return not path.is_symlink() and hash_file(path) == sha256
    except UsageError:
        return False
