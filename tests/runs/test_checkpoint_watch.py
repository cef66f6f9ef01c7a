"""Checkpoints are hashed when they are told of, outside training's way; what a killed supervisor
leaves is completed only when it had hashed the final one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer, wait_until

from harness.artifacts import birth
from harness.artifacts.birth import birth_time
from harness.artifacts.content import hash_path
from harness.domain.records import Run
from harness.domain.statuses import ExperimentStatus, RunStatus, Verdict
from harness.gates.check import check_gate
from harness.gates.findings import FINDINGS
from harness.ledger.project import Project
from harness.runs import checkpoint_watch, origin
from harness.runs.checkpoint_removal import remove_unneeded
from harness.runs.closing import recover
from tests.runs.test_limits import short_plan, supervisor_process

SAVES = """
import os, time
from pathlib import Path
from harness.run_logger import RunLogger

log = RunLogger.from_environment()
log.start(); log.epoch(0, {"loss": 1.0})
weights = log.checkpoint_dir / "weights.bin"

def save(text, **more):
    weights.write_text(text * 20)
    log.checkpoint_saved(weights, **more)

"""
WAITS = "save('one ', epoch=0); save('two ', epoch=1, final=True); END; time.sleep(600)\n"


def final_of(project: Project) -> str:
    (final,) = [item for item in project.ledger.checkpoints("exp-0001") if item.final]
    return final.id


def told(project: Project) -> dict[str, tuple[int, str]]:
    return project.ledger.tellings("exp-0001", "run-01")


def codes(project: Project) -> set[str]:
    return {found.code for found in check_gate(project, "exp-0001").findings}


def test_each_telling_is_hashed_while_the_run_goes_on(
    project: Project, run_training: Trainer
) -> None:
    code = SAVES + "for i in range(3):\n    save(f'{i} ', epoch=i); time.sleep(0.4)\nlog.end()"
    (run,) = run_training(code, seeds=[1]).runs
    assert (run.status, run.findings) == (RunStatus.COMPLETED, ())
    recorded = [fact for fact in project.ledger.facts() if fact.kind == "checkpoint_recorded"]
    started = next(fact for fact in project.ledger.facts() if fact.kind == "run_started")
    assert len(recorded) == 4, "one a telling, and the end says which is final"
    assert recorded[0].at < recorded[1].at < recorded[2].at
    assert started.at < recorded[0].at
    [(path, (number, content))] = told(project).items()
    assert (number, content) == (3, final_of(project))
    assert content == hash_path(project.layout.root / path)


def test_one_that_is_not_final_and_was_written_again_is_a_note(
    project: Project, run_training: Trainer
) -> None:
    code = SAVES + (
        "save('best ', epoch=0); time.sleep(0.5); weights.write_text('other')\n"
        "last = log.checkpoint_dir / 'last'; last.write_text('last ' * 20)\n"
        "log.checkpoint_saved(last, epoch=1, final=True); log.end()"
    )
    (run,) = run_training(code, seeds=[1]).runs
    assert [found.code for found in run.findings] == ["checkpoint_overwritten"]
    assert FINDINGS["checkpoint_overwritten"].outcome is Verdict.PASS
    assert "checkpoint_overwritten" in codes(project)


def test_gc_removes_one_that_was_written_over_and_told_of_again(
    project: Project, run_training: Trainer
) -> None:
    code = SAVES + (
        "save('one ', epoch=0); time.sleep(0.5); save('two ', epoch=1); time.sleep(0.5)\n"
        "last = log.checkpoint_dir / 'last'; last.write_text('last ' * 20)\n"
        "log.checkpoint_saved(last, epoch=2, final=True); log.end()"
    )
    assert run_training(code, seeds=[1]).ok
    assert len(project.ledger.checkpoints("exp-0001")) == 3
    project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "tried")
    outcome = remove_unneeded(project, ["exp-0001"], by="a person", dry_run=False)
    assert sorted(Path(item["path"]).name for item in outcome.removed) == ["last", "weights.bin"]
    assert outcome.kept == []


def test_of_a_folder_every_file_counts(project: Project, run_training: Trainer) -> None:
    code = SAVES + (
        "model = log.checkpoint_dir / 'model'; (model / 'part').mkdir(parents=True)\n"
        "for name in ('a', 'part/b'):\n    (model / name).write_text(name * 50)\n"
        "log.checkpoint_saved(model, final=True); time.sleep(0.5)\n"
        "(model / 'part/b').write_text('c' * 300); log.end()"
    )
    (run,) = run_training(code, seeds=[1]).runs
    assert [found.code for found in run.findings] == ["checkpoint_changed"]
    assert FINDINGS["checkpoint_changed"].outcome is Verdict.FAIL


def test_a_run_that_failed_is_not_accused_of_a_half_written_checkpoint(
    project: Project, run_training: Trainer
) -> None:
    code = SAVES + "save('one '); time.sleep(0.4); weights.write_text('hal'); os._exit(3)"
    (run,) = run_training(code, seeds=[1]).runs
    assert (run.status, run.findings) == (RunStatus.FAILED, ())


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hashing takes as long as it may; the names of the threads that hash."""
    threads: list[str] = []

    def slow(path: Path, *, at_block: Callable[[], None]) -> str:
        threads.append(threading.current_thread().name)
        while True:
            at_block()
            time.sleep(0.01)

    monkeypatch.setattr(checkpoint_watch, "hash_path", slow)
    return threads


def test_a_large_checkpoint_holds_up_neither_rows_nor_limits(
    project: Project, run_training: Trainer, endless: list[str]
) -> None:
    short_plan(project, 0.03)  # 1.8 s
    events: list[dict[str, object]] = []
    code = SAVES + (
        "save('one ')\nfor i in range(1, 400):\n    log.epoch(i, {'loss': 1.0}); time.sleep(0.1)"
    )
    began = time.monotonic()
    (run,) = run_training(code, seeds=[1], on_event=events.append).runs
    assert time.monotonic() - began < 30
    assert (run.status, run.findings) == (RunStatus.KILLED, ())
    assert endless == ["checkpoints"]
    assert len([event for event in events if event["kind"] == "epoch"]) >= 1
    assert run.rows > 5


def test_what_could_not_be_hashed_in_time_is_compared_by_its_files(
    project: Project, run_training: Trainer, endless: list[str]
) -> None:
    good = SAVES + "save('one ', final=True); time.sleep(0.5); log.end()"
    assert run_training(good, seeds=[1]).runs[0].findings == ()
    assert told(project)["".join(told(project))][0] == 1
    bad = good.replace("time.sleep(0.5)", "time.sleep(0.5); weights.write_text('two')")
    (run,) = run_training(bad, seeds=[2]).runs
    assert [found.code for found in run.findings] == ["checkpoint_changed"]
    assert project.ledger.tellings("exp-0001", run.id) == {}, "nobody vouches for it"


# A supervisor that was killed


def killed(project: Project, end: str, ready: Callable[[], object]) -> None:
    """Train with WAITS; kill -9 of the supervisor once `ready`."""
    (project.layout.root / "train.py").write_text(SAVES + WAITS.replace("END", end))
    supervisor = supervisor_process(project, None)
    try:
        wait_until(ready)
    finally:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()


def hashed(project: Project) -> Callable[[], bool]:
    return lambda: any(number == 2 for number, _ in told(project).values())


def closed(project: Project) -> Run:
    recover(project)
    return project.ledger.run("exp-0001", "run-01")


def test_hashed_while_it_lived_and_still_the_same(project: Project) -> None:
    killed(project, "log.end()", hashed(project))
    run = closed(project)
    assert (run.status, run.findings) == (RunStatus.COMPLETED, ())
    assert final_of(project) == hash_path(project.layout.root / next(iter(told(project))))


def test_swapped_after_the_supervisor_was_killed_it_is_lost_and_resumes(
    project: Project, run_training: Trainer
) -> None:
    killed(project, "log.end()", hashed(project))
    path = project.layout.root / next(iter(told(project)))
    path.write_text("weights from elsewhere")
    run = closed(project)
    assert run.status is RunStatus.LOST
    assert "the final checkpoint is not what it had recorded" in run.reason
    report = run_training(SAVES + WAITS.replace("END; time.sleep(600)", "log.end()"), seeds=[1])
    assert report.ok
    assert [item.status for item in project.ledger.runs("exp-0001")] == ["lost", "completed"]


def test_an_earlier_checkpoint_of_the_run_is_no_final_one(project: Project) -> None:
    """It was hashed, too: but as what another row told of."""
    killed(project, "log.end()", hashed(project))
    path = project.layout.root / next(iter(told(project)))
    path.write_text("one " * 20)
    assert closed(project).status is RunStatus.LOST


def test_an_end_row_that_comes_after_its_death_completes_nothing(project: Project) -> None:
    """The checkpoint was seen and is the same; when to stop was not the run's to choose then."""
    go = project.layout.root / "go"
    wait = f"[time.sleep(0.02) for _ in iter(Path({str(go)!r}).exists, True)]; log.end()"
    killed(project, wait, hashed(project))
    go.touch()
    metrics = project.layout.run("exp-0001", "run-01", "metrics")
    wait_until(lambda: '"end"' in metrics.read_text())
    run = closed(project)
    assert run.status is RunStatus.LOST
    assert "it had not seen the end row" in run.reason


def test_rows_that_are_taken_away_or_added_after_its_death_complete_nothing(
    project: Project,
) -> None:
    metrics = project.layout.run("exp-0001", "run-01", "metrics")
    killed(project, "log.end()", hashed(project))
    rows = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join(row for row in rows if '"final":true' not in row))
    run = closed(project)
    assert run.status is RunStatus.LOST
    assert "rows that it had seen are gone" in run.reason


def test_an_end_row_without_a_hashed_checkpoint_is_lost(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor was killed in the middle of the hash."""
    program = (
        "import os, sys, time\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
        "from harness.ledger.project import open_project\n"
        "from harness.runs import checkpoint_watch, train\nfrom runs_support import Unconfined\n"
        "checkpoint_watch.hash_path = lambda path, at_block: time.sleep(600)\n"
        "with open_project(Path(sys.argv[1]), os.environ) as project:\n"
        "    train.train(project, 'exp-0001', None, sandbox=Unconfined(), grace_s=2.0)\n"
    )
    (project.layout.root / "train.py").write_text(SAVES + WAITS.replace("END", "log.end()"))
    here = Path(__file__)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(here.parents[2]),
        "XDG_STATE_HOME": str(project.layout.state.parents[1]),
        "HOME": str(project.layout.root),
    }
    words = [sys.executable, "-c", program, str(project.layout.root), str(here.parent)]
    supervisor = subprocess.Popen(words, env=environment)
    metrics = project.layout.run("exp-0001", "run-01", "metrics")
    try:
        wait_until(lambda: metrics.exists() and '"end"' in metrics.read_text())
        time.sleep(0.3)
    finally:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
    run = closed(project)
    assert run.status is RunStatus.LOST
    assert "it had not hashed the final checkpoint" in run.reason


# Birth


def test_the_birth_of_a_file_stays_whatever_is_done_to_it(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("x")
    born = birth_time(first)
    if born is None:
        pytest.skip("this file system keeps no birth")
    time.sleep(0.02)
    first.write_text("y")
    os.utime(first)
    os.link(first, tmp_path / "link")
    first.rename(tmp_path / "moved")
    assert birth_time(tmp_path / "moved") == birth_time(tmp_path / "link") == born
    later = tmp_path / "later"
    later.write_bytes((tmp_path / "moved").read_bytes())
    made = birth_time(later)
    assert made is not None
    assert made > born
    (tmp_path / "symbolic").symlink_to(later)
    assert birth_time(tmp_path / "symbolic") != made


def test_without_statx_there_is_no_birth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(birth, "_statx", lambda: None)
    if sys.platform == "linux":
        assert birth_time(tmp_path) is None
    with pytest.raises(FileNotFoundError):
        birth_time(tmp_path / "absent")


@pytest.mark.parametrize(("age", "found"), [(1e9, True), (0.0, False)])
def test_a_file_system_without_births_goes_by_the_time_of_writing(
    project: Project,
    run_training: Trainer,
    monkeypatch: pytest.MonkeyPatch,
    age: float,
    found: bool,
) -> None:
    monkeypatch.setattr(origin, "birth_time", lambda path: None)
    before = project.layout.root.parent / "before.bin"
    before.write_text("made before " * 9)
    code = SAVES + (
        f"os.rename({str(before)!r}, weights)\n"
        f"os.utime(weights, (time.time() - {age},) * 2)\n"
        "log.checkpoint_saved(weights, final=True); log.end()"
    )
    (run,) = run_training(code, seeds=[1]).runs
    assert ("checkpoint_out_of_window" in {one.code for one in run.findings}) is found


def test_a_resumed_run_keeps_the_birth_of_its_folder(
    project: Project, run_training: Trainer
) -> None:
    """What its first attempt saved is its own; a file from before the run still is not."""
    before = project.layout.root.parent / "before.bin"
    before.write_text("made before " * 9)
    code = SAVES + (
        "if os.environ['HARNESS_ATTEMPT'] == '1':\n    save('one ', epoch=0); os._exit(1)\n"
        "ANOTHER\nlog.checkpoint_saved(weights, epoch=0, final=True); log.end()"
    )
    honest = code.replace("ANOTHER", "")
    assert not run_training(honest, seeds=[1]).ok
    report = run_training(honest, seeds=[1], resume=True)
    assert (report.ok, report.findings) == (True, [])
    hostile = code.replace("ANOTHER", f"os.replace({str(before)!r}, weights); os.utime(weights)")
    assert not run_training(hostile, seeds=[2]).ok
    (run,) = run_training(hostile, seeds=[2], resume=True).runs
    assert "checkpoint_out_of_window" in {found.code for found in run.findings}


def test_a_run_without_a_change_has_no_finding(project: Project, run_training: Trainer) -> None:
    report = run_training(GOOD)
    assert (report.ok, report.findings) == (True, [])
