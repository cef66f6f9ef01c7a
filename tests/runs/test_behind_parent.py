"""`alarms.stop_on: behind_parent`: a run that trails its parent is ended, as a decision with what
shows it; without the plan's word nothing is compared."""

import os
from pathlib import Path

import pytest
from runs_support import Unconfined

from harness.decisions.experiments import decide
from harness.domain.statuses import DecisionKind, RunStatus
from harness.gates.check import check_gate
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.runs.train import train
from harness.views.experiments import details

CURVE = """
import time
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=60)
    for epoch in range(60):
        score = BASE + 0.002 * epoch + 0.01 * (log.seed % 3)
        log.epoch(epoch, {"loss": 2 / (1 + epoch), "val_accuracy": score})
        time.sleep(PAUSE)
    weights = log.checkpoint_dir / "weights.bin"
    weights.write_text(str(log.seed))
    log.checkpoint_saved(weights, epoch=59, final=True)
"""


def trained(project: Project, root: Path, experiment: str, base: float, pause: float) -> None:
    code = CURVE.replace("BASE", str(base)).replace("PAUSE", str(pause))
    (root / "train.py").write_text(code)
    inherited = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    train(project, experiment, None, sandbox=Unconfined(), inherited=inherited, grace_s=1.0)


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_behind_its_parent_is_ended_where_the_plan_says_so(
    project: Project, root: Path, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runs.train.plan_seeds", lambda approved, count=None: [3, 4, 5])
    plan = root / "plan.md"
    if asked:
        said = "alarms: {stop_on: [behind_parent]}\nloop: {"
        plan.write_text(plan.read_text().replace("loop: {", said, 1))
        approve_plan(project, plan, by="tester")
    trained(project, root, "exp-0001", 0.7, 0.0)
    assert all(run.status is RunStatus.COMPLETED for run in project.ledger.runs("exp-0001"))
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(project, kind="CANCEL", experiment="exp-0001", by="ada", confidence="high", **words)
    opened = project.ledger.open_experiment(hypothesis="worse", parent="exp-0001", by="tester").id
    trained(project, root, opened, 0.5, 0.05 if asked else 0.0)
    runs = project.ledger.runs(opened)
    stops = [one for one in project.ledger.decisions() if one.kind is DecisionKind.STOP]
    if not asked:
        assert [run.status for run in runs] == [RunStatus.COMPLETED] * 3
        assert (stops, project.ledger.alarms(opened)) == ([], [])
        return
    (run,) = runs
    assert run.status is RunStatus.KILLED
    assert run.reason.startswith("stopped by the alarm behind_parent at row ")
    (stop,) = stops
    assert f"{opened}/{run.id} builds on exp-0001" in stop.context
    assert "there over 3 seeds" in stop.reason
    found = check_gate(project, opened).findings
    assert any("behind_parent" in one.message for one in found), found
    assert not any(one.code == "alarm_undiagnosed" for one in found), "it is no fault"
    (shown,) = details(project, project.ledger.experiment(opened))["alarms"]
    assert (shown["code"], shown["severity"]) == ("behind_parent", "note")
