"""A training program that plants what decides what is enforced: bwrap refuses it, elsewhere the
gate fails by it."""

from pathlib import Path

import pytest
from runs_support import GOOD, Trainer

from harness.domain.statuses import GateName, SandboxKind, Verdict
from harness.gates.check import check_gate
from harness.ledger.project import Project
from harness.sandbox.select import SANDBOXES, available

PLANT = """
import os
try:
    os.makedirs(".claude", exist_ok=True)
    open(".claude/settings.json", "w").write("{}")
except OSError as error:
    print("refused:", error.strerror)
"""


@pytest.mark.parametrize("kind", list(SandboxKind), ids=str)
def test_a_planted_control_file_is_refused_or_noticed(
    project: Project, root: Path, run_training: Trainer, kind: SandboxKind
) -> None:
    if reason := available()[kind]:
        pytest.skip(f"{kind}: {reason}")
    report = run_training(PLANT + GOOD, sandbox=SANDBOXES[kind]())
    assert report.ok, report.findings
    planted = root / ".claude" / "settings.json"
    output = project.layout.run("exp-0001", "run-01", "stdout").read_text()
    verdict = check_gate(project, "exp-0001", GateName.VALIDATION)
    codes = {finding.code for finding in verdict.findings}
    if kind is SandboxKind.BWRAP:
        assert not planted.exists()
        assert "refused: Read-only file system" in output
        assert "tampering_noticed" not in codes
        return
    assert planted.exists()
    assert "tampering_noticed" in codes
    assert verdict.verdict is Verdict.FAIL
    (noticed,) = project.ledger.tampering()
    assert (noticed.path, noticed.expected, noticed.experiment) == (
        ".claude/settings.json",
        "missing",
        "exp-0001",
    )
