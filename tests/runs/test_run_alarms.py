"""A supervised run is watched: alarms are facts and lines, a fatal one ends the run, a replay adds
nothing."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from runs_support import GOOD, Trainer, register

from harness.artifacts.experiment_files import (
    DiagnosedAlarm,
    Diagnosis,
    RunDiagnosis,
    read_diagnosis,
    render_diagnosis,
)
from harness.clock import ManualClock, parse_iso
from harness.decisions.diagnoses import record_diagnosis
from harness.detectors.alarm import Alarm
from harness.domain.records import Run
from harness.domain.statuses import RunStatus, Verdict
from harness.errors import UsageError
from harness.gates.alarms import open_by_run as alarms_by_run
from harness.gates.alarms import undiagnosed_runs
from harness.gates.check import check_gate
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.runs import run_tail
from harness.runs.closing import read_all, recover
from harness.runs.run_tail import RunAlarms
from harness.views.experiments import details
from harness.views.snapshot import experiment_row, snapshot

BROKEN = """
import time
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=2000)
    for epoch in range(2000):
        log.epoch(epoch, {"loss": 1.0 if epoch < 2 else float("nan")})
        time.sleep(0.03)
"""
QUICK = BROKEN.replace("2000", "8").replace("time.sleep(0.03)", "")
RAW = """
import os
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=4)
    run, large = os.environ["HARNESS_EXPERIMENT"] + "/" + os.environ["HARNESS_RUN"], "1" + "0" * 400
    rows = ['"epoch":0,"metrics":{"n":LARGE}', '"epoch":LARGE,"metrics":{"n":LARGE}']
    rows += ['"epoch":%d,"metrics":{"loss\\\\ud800":NaN}' % epoch for epoch in (1, 2)]
    with open(os.environ["HARNESS_RUN_DIR"] + "/metrics.jsonl", "a") as stream:
        for row in rows:
            stream.write('{"event":"epoch","run":"%s",%s}\\n' % (run, row.replace("LARGE", large)))
    log.epoch(3, {"loss": 1.0})
"""
"""Rows of its own making: integers beyond any float, and a name that is no Unicode text."""


def codes(project: Project) -> list[str]:
    return [item.alarm["code"] for item in project.ledger.alarms("exp-0001")]


def test_every_alarm_is_told_also_one_of_the_last_rows(
    project: Project, run_training: Trainer
) -> None:
    """The run is over before its supervisor looks at its rows."""
    events: list[dict[str, Any]] = []
    run_training(QUICK, seeds=[1], on_event=events.append)
    told = [event["alarm"]["code"] for event in events if event["kind"] == "alarm"]
    assert told == codes(project)
    assert "non_finite" in told


def test_a_fatal_alarm_ends_the_run_and_leaves_its_seed_outstanding(
    project: Project, run_training: Trainer
) -> None:
    report = run_training(BROKEN)
    (run,) = report.runs
    assert not report.ok
    assert run.status is RunStatus.KILLED
    assert run.reason.startswith("stopped by the alarm non_finite at row ")
    assert run.rows < 1000
    assert [found.code for found in run.findings][:1] == ["stopped_by_alarm"]
    raised = [Alarm.from_plain(item.alarm) for item in project.ledger.alarms("exp-0001", run.id)]
    assert {alarm.severity.value for alarm in raised} == {"warning", "fatal"}
    kept = project.layout.run("exp-0001", run.id, "alarms").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in kept] == [alarm.plain() for alarm in raised]
    verdict = check_gate(project, "exp-0001")
    assert {"alarm_undiagnosed", "seeds_outstanding"} <= {found.code for found in verdict.findings}
    assert verdict.verdict is Verdict.FAIL


SILENT = """
import sys
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=40)
    for epoch in range(40):
        falling = 2 / (1 + epoch)
        rising = falling if epoch < 15 else 1.7 ** (epoch - 14)
        log.epoch(epoch, VALUES)
        if epoch % 10 == 9:
            weights = log.checkpoint_dir / f"{epoch}.pt"
            weights.write_text(f"{epoch} {log.seed}")
            log.checkpoint_saved(weights, epoch=epoch, final=epoch == 39)
"""


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ('{"loss": rising}', "divergence"),
        ('{"loss": rising, "kl_loss": 0.1}', "divergence"),
        ('{"loss": rising, "reward": 0.1, "kl": 0.1}', "divergence"),
        ('{"loss": float("nan") if epoch % 2 else falling}', "non_finite"),
        ('{"loss": falling, "val_accuracy": 8.8}', "out_of_range"),
    ],
)
def test_a_silent_fault_is_told_and_stands_at_the_gate(
    project: Project, run_training: Trainer, values: str, code: str
) -> None:
    run_training(SILENT.replace("VALUES", values), seeds=[1])
    assert code in codes(project)
    findings = check_gate(project, "exp-0001").findings
    assert any(f.code == "alarm_undiagnosed" and code in f.message for f in findings)


@pytest.fixture
def undisturbed(project: Project, root: Path, run_training: Trainer) -> Project:
    """A run with alarms that nobody stopped, because it had ended before; its plan stops on
    none."""
    plan = root / "plan.md"
    plan.write_text(plan.read_text().replace("loop: {", "alarms: {stop_on: none}\nloop: {", 1))
    approve_plan(project, plan, by="tester")
    run_training(QUICK, seeds=[7])
    return project


def test_the_plan_says_what_stops_a_run(undisturbed: Project) -> None:
    (run,) = undisturbed.ledger.runs("exp-0001")
    assert run.status is RunStatus.COMPLETED
    assert codes(undisturbed) == ["non_finite", "non_finite"]


def test_open_alarms_are_shown(undisturbed: Project) -> None:
    found = undisturbed.ledger.experiment("exp-0001")
    assert [item["code"] for item in experiment_row(undisturbed, found)["findings"]] == [
        "alarm_open"
    ]
    assert [item["code"] for item in details(undisturbed, found)["alarms"]] == [
        "non_finite",
        "non_finite",
    ]
    (told,) = snapshot(undisturbed, sandbox="none")["alarms"]
    assert told["message"].startswith("exp-0001/run-01: fatal non_finite: loss")


@pytest.mark.parametrize(
    ("code", "rows", "told"),
    [
        ("non_finite", (4, 5), None),
        ("non_finite", (4, 500), "quotes row 500 of run-01, which has 10"),
        ("divergence", (4,), "names no non_finite of run-01"),
        (None, (), "there is no diagnosis.md"),
    ],
)
def test_a_gate_asks_for_a_diagnosis_that_names_what_happened(
    undisturbed: Project, code: str | None, rows: tuple[int, ...], told: str | None
) -> None:
    if code is not None:
        diagnosis = Diagnosis(
            experiment="exp-0001",
            alarms=(DiagnosedAlarm(run="run-01", code=code, metric="loss", rows=rows),),
            runs=(
                RunDiagnosis(
                    run="run-01", what_happened="NaN.", mechanism="log(0).", evidence="- row 4"
                ),
            ),
        )
        path = undisturbed.layout.experiment("exp-0001", "diagnosis")
        path.write_text(render_diagnosis(diagnosis, by="training-checker"), "utf-8")
    verdict = check_gate(undisturbed, "exp-0001")
    said = [item.message for item in verdict.findings if item.code == "alarm_undiagnosed"]
    assert (told is None) == (said == [])
    assert all(str(told) in message for message in said)


def test_rows_that_are_read_again_record_no_alarm_twice(undisturbed: Project) -> None:
    (run,) = undisturbed.ledger.runs("exp-0001")
    path = undisturbed.layout.run("exp-0001", run.id, "alarms")
    before = path.read_bytes()
    path.unlink()
    read_all(undisturbed.layout, run, RunAlarms(undisturbed, run))
    assert len(codes(undisturbed)) == 2
    assert path.read_bytes() == before


def test_a_supervisor_that_died_leaves_no_alarm_out(undisturbed: Project) -> None:
    """A run whose rows came after its supervisor's death: closing it records what they say,
    once."""
    run = abandoned(undisturbed)
    recover(undisturbed)
    recover(undisturbed)
    assert [item.run for item in undisturbed.ledger.alarms("exp-0001")] == [
        "run-01",
        "run-01",
        run.id,
        run.id,
    ]
    assert (
        len(undisturbed.layout.run("exp-0001", run.id, "alarms").read_text("utf-8").splitlines())
        == 2
    )


def test_one_diagnosis_explains_the_runs_that_broke_for_the_same_cause(
    undisturbed: Project, run_training: Trainer
) -> None:
    """Seeds that trained at once break together."""
    run_training(QUICK, seeds=[8])
    _, other = undisturbed.ledger.runs("exp-0001")
    raised = [
        {"run": run, "code": alarm.code, "rows": [point.row for point in alarm.evidence]}
        for run, alarms in alarms_by_run(undisturbed, "exp-0001").items()
        for alarm in alarms
    ]
    assert {one["run"] for one in raised} == {"run-01", other.id}
    told = {
        "what_happened": "NaN from row 4 on.",
        "mechanism": "log(0).",
        "candidates": [{"change": "No log", "alarm": "non_finite", "confidence": "high"}],
        "by": "training-checker",
    }
    beyond = [{**one, "rows": [99]} if one["run"] == other.id else one for one in raised]
    with pytest.raises(UsageError, match="rows of non_finite are"):
        record_diagnosis(undisturbed, "exp-0001", run="run-01", alarms=beyond, **told)
    path = record_diagnosis(undisturbed, "exp-0001", run="run-01", alarms=raised, **told)
    diagnosis = read_diagnosis(path)
    assert [part.run for part in diagnosis.runs] == ["run-01", other.id]
    assert [part.mechanism for part in diagnosis.runs] == ["log(0).", "As run-01."]
    assert undiagnosed_runs(undisturbed, "exp-0001") == []
    # Its own explanation takes the place, and leaves that of the first alone.
    told["mechanism"] = "The rate."
    record_diagnosis(undisturbed, "exp-0001", run=other.id, alarms=raised, **told)
    assert [part.mechanism for part in read_diagnosis(path).runs] == ["log(0).", "The rate."]
    assert undiagnosed_runs(undisturbed, "exp-0001") == []


def abandoned(project: Project) -> Run:
    """A run with the rows of run-01, whose supervisor died before it wrote the end."""
    ledger, layout = project.ledger, project.layout
    (old,) = ledger.runs("exp-0001")
    given = {
        name: getattr(old, name) for name in ("code", "data", "environment", "sandbox", "token")
    }
    run = ledger.register_run(
        experiment="exp-0001", seed=7, argv=list(old.argv), session=None, **given
    )
    gone = {"pid": 2**22 - 7, "boot": "another", "started": 1.0}
    ledger.append(
        RunStarted(experiment="exp-0001", run=run.id, supervisor=gone, job=local_job(gone))
    )
    path = layout.run("exp-0001", run.id, "metrics")
    path.parent.mkdir(parents=True)
    text = layout.run("exp-0001", old.id, "metrics").read_text("utf-8")
    path.write_text(
        "".join(
            line for line in text.replace("run-01", run.id).splitlines(True) if '"end"' not in line
        )
    )
    return run


@pytest.mark.parametrize("years", [-5, 5])
def test_a_time_that_training_gives_to_its_files_changes_no_budget(
    undisturbed: Project, years: int
) -> None:
    run = abandoned(undisturbed)
    path = undisturbed.layout.run("exp-0001", run.id, "metrics")
    begun = parse_iso(undisturbed.ledger.run("exp-0001", run.id).started_at or "").timestamp()
    time.sleep(0.02)
    path.write_bytes(path.read_bytes())
    os.utime(path, (begun + years * 365 * 86_400,) * 2)
    recover(undisturbed)
    seconds = undisturbed.ledger.run("exp-0001", run.id).seconds
    assert seconds is not None
    assert 0 < seconds <= undisturbed.clock.now().timestamp() - begun


def test_a_lost_run_counts_at_most_its_limit(root: Path, environment: dict[str, str]) -> None:
    clock = ManualClock()
    with open_project(root, environment, clock=clock) as project:
        approve_plan(project, root / "plan.md", by="tester")
        project.ledger.open_experiment(hypothesis="blobs differ", parent=None, by="tester")
        register(project)
        gone = {"pid": 2**22 - 7, "boot": "another", "started": 1.0}
        project.ledger.append(
            RunStarted(experiment="exp-0001", run="run-01", supervisor=gone, job=local_job(gone))
        )
        path = project.layout.run("exp-0001", "run-01", "metrics")
        path.parent.mkdir(parents=True)
        path.touch()  # by its clock years later
        clock.sleep(86_400)
        recover(project)
        assert project.ledger.run("exp-0001", "run-01").seconds == 60.0


def test_rows_that_no_reader_could_hold_end_neither_the_supervisor_nor_what_closes_its_run(
    project: Project, run_training: Trainer
) -> None:
    (run,) = run_training(RAW, seeds=[7]).runs
    assert (run.status, run.rows) == (RunStatus.COMPLETED, 7)
    assert codes(project) == ["non_finite", "non_finite"]
    run = abandoned(project)
    recover(project)
    assert project.ledger.run("exp-0001", run.id).status is RunStatus.LOST
    assert codes(project) == ["non_finite"] * 4


def test_a_healthy_run_has_no_alarm(project: Project, run_training: Trainer) -> None:
    report = run_training(GOOD)
    assert report.ok
    assert codes(project) == []
    assert not project.layout.run("exp-0001", "run-01", "alarms").exists()


def test_alarms_of_one_run_are_bounded(
    undisturbed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tail, "MOST_ALARMS", 3)
    (run,) = undisturbed.ledger.runs("exp-0001")
    watched = RunAlarms(undisturbed, run)
    rows = [
        {"event": "epoch", "epoch": n, "metrics": {"loss": float("nan") if n % 8 > 3 else 1.0}}
        for n in range(4000)
    ]
    watched.take(rows)
    assert len(codes(undisturbed)) == 3
