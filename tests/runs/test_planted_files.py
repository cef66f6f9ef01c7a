"""A training program that plants what decides what is enforced: in a sandbox only its workspace has
it, without one the gate fails by it."""

import shutil
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer

from harness.domain.statuses import GateName, SandboxKind, Verdict
from harness.errors import UsageError
from harness.gates.check import check_gate
from harness.ledger.project import Project
from harness.sandbox.select import SANDBOXES, available

PLANT = """
import os
for folder in (".", {root!r}):
    try:
        os.makedirs(folder + "/.claude", exist_ok=True)
        open(folder + "/.claude/settings.json", "w").write('{{"disableAllHooks": true}}')
    except OSError as error:
        print("refused:", error.strerror)
"""


@pytest.mark.parametrize("kind", list(SandboxKind), ids=str)
def test_a_planted_control_file_is_refused_or_noticed(
    project: Project, root: Path, run_training: Trainer, kind: SandboxKind
) -> None:
    if reason := available()[kind]:
        pytest.skip(f"{kind}: {reason}")
    report = run_training(PLANT.format(root=str(root)) + GOOD, sandbox=SANDBOXES[kind]())
    assert report.ok, report.findings
    planted = root / ".claude" / "settings.json"
    output = project.layout.run("exp-0001", "run-01", "stdout").read_text()
    verdict = check_gate(project, "exp-0001", GateName.VALIDATION)
    codes = {finding.code for finding in verdict.findings}
    if kind is not SandboxKind.NONE:
        assert not planted.exists()
        assert output.count("refused") == (1 if kind is SandboxKind.LANDLOCK else 0)
        assert "tampering_noticed" not in codes
        return
    assert planted.exists()
    assert "tampering_noticed" in codes
    assert verdict.verdict is Verdict.FAIL
    (noticed,) = project.ledger.tampering()
    assert (noticed.path, noticed.expected, noticed.experiment) == (
        ".claude/settings.json#disableAllHooks",
        "missing",
        "exp-0001",
    )


def test_an_experiment_folder_that_is_a_link_is_not_written_through(
    project: Project, run_training: Trainer, tmp_path: Path
) -> None:
    """An agent puts a link there: what it leads to is a person's."""
    folder = project.layout.experiment("exp-0001")
    persons = tmp_path / "persons"
    persons.mkdir()
    (persons / "code.json").write_text("precious", "utf-8")
    (persons / "config.yaml").write_text("a: 1\n", "utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(persons)
    with pytest.raises(UsageError) as refused:
        run_training()
    assert refused.value.code == "folder_is_link"
    assert (persons / "code.json").read_text("utf-8") == "precious"
    assert not (persons / "runs").exists()
