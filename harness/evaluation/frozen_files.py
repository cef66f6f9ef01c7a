"""The frozen scorer and tables of an approved plan, as evaluations take them."""

from harness.evaluation.rows import TableFile
from harness.evaluation.scoring import FrozenScorer
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project


def scorer_of(approved: ApprovedPlan) -> FrozenScorer:
    frozen = approved.scorer
    return FrozenScorer(name=frozen["name"], entry=frozen["entry"], files=frozen["files"])


def table_of(project: Project, approved: ApprovedPlan, split: str) -> TableFile:
    """The vault's copy where there is one: an agent cannot reach it."""
    entry = approved.splits[split]
    path = (
        project.layout.state / entry["vault"]
        if "vault" in entry
        else project.layout.root / entry["path"]
    )
    return TableFile(path=path, sha256=entry["sha256"])
