"""Whether what was frozen at approval is still what it was."""

from pathlib import Path

from harness.artifacts.content import hash_file
from harness.domain.findings import Finding
from harness.domain.records import ApprovedPlan
from harness.errors import UsageError
from harness.ledger.project import Project

MISSING = "missing"


def frozen_changes(project: Project) -> list[Finding]:
    """Findings plan_changed, scorer_changed and split_changed, each naming the file, the expected
    and the actual hash.

    The project's files and the vault's copies are read; nothing is changed. Raises RefusedError
    when no plan is approved.
    """
    approved = project.plan()
    root, state = project.layout.root, project.layout.state
    findings = [
        *_compare("plan_changed", root / approved.path, approved.path, approved.sha256, "The plan"),
        *_scorer(project, approved),
    ]
    for name, split in approved.splits.items():
        if "path" in split:
            what = f"The {name} split"
            findings += _compare(
                "split_changed", root / split["path"], split["path"], split["sha256"], what
            )
        if "vault" in split:
            path = state / split["vault"]
            findings += _compare(
                "split_changed", path, str(path), split["sha256"], f"The vault's {name} split"
            )
    return findings


def _scorer(project: Project, approved: ApprovedPlan) -> list[Finding]:
    findings = []
    for relative, expected in approved.scorer["files"].items():
        path = project.layout.root / relative
        findings += _compare("scorer_changed", path, relative, expected, "The scorer's file")
        frozen = project.layout.objects / expected
        findings += _compare(
            "scorer_changed", frozen, str(frozen), expected, f"The vault's copy of {relative}"
        )
    return findings


def _compare(code: str, path: Path, name: str, expected: str, what: str) -> list[Finding]:
    try:
        actual = hash_file(path)
    except UsageError:  # missing, unreadable or no file
        actual = MISSING
    if actual == expected:
        return []
    found = "is missing" if actual == MISSING else f"has SHA-256 {actual[:12]}"
    return [
        Finding(
            code,
            f"{what} {name} {found}; {expected[:12]} was approved.",
            "Restore it, or let a person approve the plan again as a new version.",
            {"path": name, "expected": expected, "actual": actual},
        )
    ]
