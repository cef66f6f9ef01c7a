"""`train --resume`: the same run goes on in its own folder, its rows and checkpoints as they were
left."""

import hashlib
import json
import os
import textwrap
import time
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer

from harness.domain.statuses import GateName, RunStatus, Verdict
from harness.errors import RefusedError
from harness.gates.check import check_gate
from harness.gates.findings import FINDINGS
from harness.ledger.project import Project
from harness.ledger.verify import verify
from tests.metrics_rows import read_rows

CUT = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from harness.run_logger import RunLogger

    with RunLogger.from_environment() as log:
        state = log.checkpoint_dir / "state"
        first = int(state.read_text()) + 1 if state.exists() else 0
        print(f"attempt {os.environ['HARNESS_ATTEMPT']}, from {first}", flush=True)
        log.start(6, resumed_at=first if first else None)
        for epoch in range(first, 6):
            log.epoch(epoch, {"loss": 1 / (epoch + 1)})
            if epoch % 2 == 0:
                state.write_text(str(epoch))
                weights = log.checkpoint_dir / f"w{epoch}"
                weights.write_text(f"weights {epoch}")
                log.checkpoint_saved(weights, epoch=epoch)
            if epoch == 3 and os.environ["HARNESS_ATTEMPT"] == "1":
                HOW
        log.checkpoint_saved(log.checkpoint_dir / "w2", epoch=2, final=True)
""")
KILLED = CUT.replace("HOW", "os.kill(os.getpid(), signal.SIGKILL)")


@pytest.fixture
def cut(run_training: Trainer, project: Project) -> Path:
    """A run that was killed after epoch 3; its folder."""
    report = run_training(KILLED, seeds=[1])
    assert not report.ok
    return project.layout.run("exp-0001", "run-01")


def test_a_run_goes_on_where_it_was(run_training: Trainer, project: Project, cut: Path) -> None:
    before = project.ledger.run("exp-0001", "run-01")
    report = run_training(KILLED, seeds=[1], resume=True)
    # The program does not say what it restored.
    assert (report.ok, [found.code for found in report.findings]) == (True, ["resume_not_exact"])
    [run] = project.ledger.runs("exp-0001")
    assert (run.status, run.attempt, run.token) == (RunStatus.COMPLETED, 2, before.token)
    assert run.seconds is not None
    assert before.seconds is not None
    assert run.seconds > before.seconds, "all attempts count"
    metrics = read_rows(cut / "metrics.jsonl")
    epochs = [row["epoch"] for row in metrics.effective if row["event"] == "epoch"]
    assert epochs == list(range(6))
    assert [
        (row["attempt"], row["event"])
        for row in metrics.rows
        if row["event"] in ("start", "attempt")
    ] == [
        (1, "start"),
        (2, "attempt"),
    ]
    assert (cut / "stdout.log").read_text() == "attempt 1, from 0\nattempt 2, from 3\n"
    told = json.loads((cut / "run.json").read_text())
    assert (told["status"], told["attempt"], told["registered_at"]) == (
        "completed",
        2,
        before.registered_at,
    )
    finals = [item for item in project.ledger.checkpoints("exp-0001") if item.final]
    assert [item.id for item in finals] == [hashlib.sha256(b"weights 2").hexdigest()]
    kinds = [fact.kind for fact in project.ledger.facts() if fact.kind.startswith("run_")]
    assert kinds == [
        "run_registered",
        "run_started",
        "run_ended",
        "run_resumed",
        "run_started",
        "run_ended",
    ]
    layout = project.layout
    assert verify(layout.ledger_db, layout.anchors, layout.facts_dir) == []


def test_a_resume_that_is_not_exact_is_a_fact_of_the_run_and_a_note_of_its_gate(
    run_training: Trainer, project: Project
) -> None:
    without = "    first and log.resumed(['optimizer', 'bad \\x1b[2J'])\n"
    inexact = KILLED.replace("    log.start(", f"{without}    log.start(")
    assert not run_training(inexact, seeds=[1]).ok
    report = run_training(inexact, seeds=[1], resume=True)
    assert report.ok
    (found,) = report.findings
    assert (found.code, found.data) == (
        "resume_not_exact",
        {"run": "exp-0001/run-01", "resumes": 1},
    )
    assert "but not exactly: optimizer, bad not restored" in found.message
    (run,) = project.ledger.runs("exp-0001")
    assert [item.code for item in run.findings] == ["resume_not_exact"]
    verdict = check_gate(project, "exp-0001", GateName.VALIDATION)
    assert "resume_not_exact" in [item.code for item in verdict.findings]
    assert "exp-0001/run-01: a resume was not exact: optimizer, bad not restored" in verdict.notes
    assert FINDINGS["resume_not_exact"].outcome is Verdict.PASS


def test_an_exit_code_and_a_crash_again_are_resumed_too(
    run_training: Trainer, project: Project
) -> None:
    code = (
        CUT.replace("HOW", "sys.exit(3)")
        .replace('== "1"', 'in "12"')
        .replace("epoch == 3", "epoch in (3, 4)")
    )
    assert not run_training(code, seeds=[1]).ok
    assert not run_training(code, seeds=[1], resume=True).ok
    assert run_training(code, seeds=[1], resume=True).ok
    assert project.ledger.run("exp-0001", "run-01").attempt == 3


def test_a_seed_without_a_run_starts_and_a_completed_one_is_over(
    run_training: Trainer, project: Project
) -> None:
    run_training(KILLED, seeds=[1])
    report = run_training(KILLED, seeds=[1, 2], resume=True)
    assert [(run.id, run.status) for run in report.runs] == [
        ("run-01", "completed"),
        ("run-02", "failed"),
    ]
    assert run_training(KILLED, seeds=[1, 2], resume=True).ok
    with pytest.raises(RefusedError, match="No run of exp-0001 can go on") as caught:
        run_training(KILLED, seeds=[1, 2], resume=True)
    assert caught.value.code == "nothing_to_resume"


def refused(run_training: Trainer, code: str = KILLED, **more: object) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        run_training(code, seeds=[1], resume=True, **more)
    return caught.value


def test_other_code_is_refused_by_file(run_training: Trainer, project: Project, cut: Path) -> None:
    kept = project.layout.experiment("exp-0001", "code").read_bytes()
    error = refused(run_training, KILLED + "# another thought\n")
    assert (error.code, "train.py" in error.message) == ("code_differs", True)
    assert project.layout.experiment("exp-0001", "code").read_bytes() == kept
    assert refused(run_training, argv=["python", "train.py", "--x"]).code == "command_differs"
    assert [run.attempt for run in project.ledger.runs("exp-0001")] == [1]


def test_a_checkpoint_that_was_put_there_afterwards_is_refused(
    run_training: Trainer, cut: Path
) -> None:
    planted = cut / "checkpoints" / "state"
    time.sleep(0.02)
    planted.write_text("5")
    os.utime(planted, (0, 0))  # the time of change, which is what is looked at, cannot be set
    error = refused(run_training)
    assert (error.code, "checkpoints/state" in error.message) == ("run_changed", True)


@pytest.mark.parametrize("name", ["metrics.jsonl", "stdout.log"])
def test_rows_that_were_edited_are_refused(run_training: Trainer, cut: Path, name: str) -> None:
    with (cut / name).open("a") as stream:
        stream.write("{}\n")
    assert refused(run_training).code == "run_changed"


def test_rows_that_the_second_attempt_rewrites_are_found(run_training: Trainer) -> None:
    code = KILLED.replace(
        "log.start(",
        "rows = log.checkpoint_dir.parent / 'metrics.jsonl'\n    rows.exists() and"
        " rows.write_bytes(rows.read_bytes().replace(b'0.25', b'0.24'))\n    log.start(",
    )
    run_training(code, seeds=[1])
    report = run_training(code, seeds=[1], resume=True)
    assert "metrics_rewritten" in [found.code for found in report.findings]


def test_a_run_that_never_logged_starts_again(run_training: Trainer, project: Project) -> None:
    assert not run_training("raise SystemExit(1)", seeds=[1]).ok
    assert refused(run_training, "raise SystemExit(1)").code == "nothing_to_resume"
    assert not run_training(GOOD + "raise SystemExit(1)", seeds=[1]).ok
