"""Limits end everything that a run started, also what ran away; TERM comes first."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from runs_support import GOOD, Trainer, Unconfined, processes_with, register, wait_until

from harness.clock import SystemClock
from harness.domain.statuses import RunStatus, SandboxKind
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.process import identity
from harness.runs.closing import recover
from harness.runs.launchers.launcher import is_alive
from harness.runs.launchers.local import Pump
from harness.runs.lock import try_supervising
from harness.sandbox.select import SANDBOXES, available

REPOSITORY = Path(__file__).parents[2]
KINDS = [None, *SandboxKind]

FAMILY = """
import os, signal, subprocess, sys, time
from harness.run_logger import RunLogger

log = RunLogger.from_environment()
log.start()
sleeper = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", "MARK"]
subprocess.Popen(sleeper)
subprocess.Popen(sleeper, start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sleeper[0], sleeper)
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
AFTER
"""


def sandbox_of(kind: SandboxKind | None) -> object:
    if kind is None:
        return Unconfined()
    if (reason := available()[kind]) is not None:
        pytest.skip(f"{kind}: {reason}")
    return SANDBOXES[kind]()


def short_plan(project: Project, minutes: float, total: float = 5) -> None:
    plan = project.layout.root / "plan.md"
    text = re.sub(
        r"run_minutes: [\d.]+, total_minutes: [\d.]+",
        "run_minutes: RUN, total_minutes: TOTAL",
        plan.read_text(),
    )
    plan.write_text(text.replace("RUN", f"{minutes:.6f}").replace("TOTAL", f"{total:.6f}"))
    approve_plan(project, plan, by="tester")


def family(mark: str, after: str) -> str:
    return FAMILY.replace("MARK", mark).replace("AFTER", after)


@pytest.mark.parametrize("kind", KINDS)
def test_w8_at_its_limit_nothing_of_a_run_is_left_alive(
    project: Project, run_training: Trainer, kind: SandboxKind | None, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    short_plan(project, 0.03)
    report = run_training(family(mark, "time.sleep(600)"), seeds=[1], sandbox=sandbox_of(kind))
    run = report.runs[0]
    assert run.status is RunStatus.KILLED, run.reason
    assert run.reason.startswith("ended at budget.run_minutes, 0.03 minutes")
    assert [finding.code for finding in report.findings] == ["run_not_completed"]
    assert processes_with(mark) == []


@pytest.mark.parametrize("kind", [None, SandboxKind.NONE])
def test_what_a_run_leaves_behind_is_ended_before_it_is_closed(
    project: Project, run_training: Trainer, kind: SandboxKind | None, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    run = run_training(family(mark, "log.end()"), seeds=[1], sandbox=sandbox_of(kind)).runs[0]
    assert run.status is RunStatus.COMPLETED
    assert processes_with(mark) == []


@pytest.mark.parametrize("kind", KINDS)
def test_term_comes_first(
    project: Project, run_training: Trainer, kind: SandboxKind | None
) -> None:
    short_plan(project, 0.03)
    code = """
        import signal, sys, time
        from harness.run_logger import RunLogger
        log = RunLogger.from_environment()
        log.start()
        def stop(*_):
            log.end("failed", error="told to stop")
            sys.exit(0)
        signal.signal(signal.SIGTERM, stop)
        time.sleep(600)
    """
    run = run_training(code, seeds=[1], sandbox=sandbox_of(kind), grace_s=8.0).runs[0]
    assert (run.status, run.rows) == (RunStatus.KILLED, 2)


@pytest.mark.parametrize("kind", list(SandboxKind))
def test_a_run_in_each_sandbox(project: Project, run_training: Trainer, kind: SandboxKind) -> None:
    report = run_training(GOOD, seeds=[3], sandbox=sandbox_of(kind))
    assert report.ok, (
        report.runs[0].reason,
        (project.layout.run("exp-0001", "run-01", "stderr")).read_text(),
    )
    assert (report.runs[0].sandbox, report.runs[0].rows) == (kind.value, 6)
    assert len(project.ledger.checkpoints("exp-0001", "run-01")) == 1


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")
def test_sandboxed_training_reaches_neither_state_nor_protected_files(
    project: Project, run_training: Trainer, root: Path
) -> None:
    state = project.layout.state
    code = f"""
        import os
        from harness.run_logger import RunLogger
        problems = []
        def attempt(what, path, mode):
            try:
                open(path, mode).close()
                problems.append(what)
            except OSError:
                pass
        with RunLogger.from_environment() as log:
            log.start()
            attempt("ledger", {str(state / "ledger.db")!r}, "rb")
            attempt("config", ".harness/config.toml", "r")
            attempt("sibling", ".harness/experiments/exp-0001/code.json", "r")
            for name in ("plan.md", "own_results.txt"):
                open(name, "a").write("a copy of the code, for this run alone")
            import socket
            try:
                socket.create_connection(("127.0.0.1", 9), timeout=2)
            except ConnectionRefusedError:
                pass
            except OSError:
                pass
            log.epoch(0, {{"reached": len(problems)}})
            print(problems)
    """
    plan = (root / "plan.md").read_bytes()
    report = run_training(code, seeds=[1], sandbox=sandbox_of(SandboxKind.BWRAP))
    assert report.ok, report.findings
    assert project.layout.run("exp-0001", "run-01", "stdout").read_text() == "[]\n"
    assert (root / "plan.md").read_bytes() == plan
    assert not (root / "own_results.txt").exists()


def test_the_total_budget_counts_all_runs(project: Project, run_training: Trainer) -> None:
    short_plan(project, 1, total=1)
    assert run_training(seeds=[1]).ok
    spent = project.ledger.runs("exp-0001")[0].seconds
    assert spent is not None
    short_plan(project, spent / 120, total=spent / 120)
    report = run_training(seeds=[1, 2])
    assert not report.ok
    assert [finding.code for finding in report.findings] == ["budget_spent"]
    assert len(project.ledger.runs("exp-0001")) == 1


def test_output_is_bounded_with_one_note(tmp_path: Path) -> None:
    code = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1000); sys.stdout.flush()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    pump = Pump(tmp_path / "stdout.log", most_bytes=5_500)
    pump.start(process.stdout)
    assert process.wait(timeout=60) == 0, "the command is not stopped by the limit"
    pump.finish(10)
    text = (tmp_path / "stdout.log").read_text()
    assert text == "x" * 5_500 + "\n[harness: output beyond 5500 bytes was dropped]\n"
    assert pump.cut


SUPERVISE = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from runs_support import Unconfined
from harness.sandbox.select import SANDBOXES
from harness.ledger.project import open_project
from harness.runs import train
train.plan_seeds = lambda approved, asked: [1]
kind = sys.argv[3]
sandbox = Unconfined() if kind == "None" else SANDBOXES[kind]()
with open_project(Path(sys.argv[1]), os.environ) as project:
    train.train(project, "exp-0001", None, sandbox=sandbox, grace_s=2.0)
"""


def supervisor_process(project: Project, kind: SandboxKind | None) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "XDG_STATE_HOME": str(project.layout.state.parents[1]),
        "HOME": str(project.layout.root),
    }
    words = [
        sys.executable,
        "-c",
        SUPERVISE,
        str(project.layout.root),
        str(Path(__file__).parent),
        str(kind),
    ]
    return subprocess.Popen(words, env=environment)


@pytest.mark.parametrize(
    ("kind", "ended"),
    [
        (None, False),
        (None, True),
        (SandboxKind.BWRAP, False),
        (SandboxKind.BWRAP, True),
        (SandboxKind.LANDLOCK, False),
    ],
)
def test_what_survived_a_killed_supervisor_is_ended_before_its_run_is_closed(
    project: Project, root: Path, tmp_path: Path, kind: SandboxKind | None, ended: bool
) -> None:
    if kind is not None:
        sandbox_of(kind)
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    saved = "path = log.checkpoint_dir / 'w'; path.write_text('w'); log.checkpoint_saved(path)\n"
    saved += "log.end()\n" if ended else ""
    (root / "train.py").write_text(family(mark, f"{saved}time.sleep(600)"))
    supervisor = supervisor_process(project, kind)
    rows = 3 if ended else 2
    metrics = project.layout.run("exp-0001", "run-01", "metrics")
    try:
        wait_until(lambda: len(processes_with(mark)) >= 3)
        wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") == rows)
        wait_until(lambda: project.ledger.tellings("exp-0001", "run-01"))
        # Killed before it saw the end row, its run is lost, as it must be.
        wait_until(lambda: not ended or any(project.layout.ends.glob("*")))
        assert recover(project) == [], "its supervisor lives"
        assert len(list(project.layout.workspaces.iterdir())) == 1
    finally:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
    if kind is None:
        assert processes_with(mark), "without a guardian they survive"
    [finding] = recover(project)
    assert processes_with(mark) == []
    assert list(project.layout.workspaces.iterdir()) == [], "its workspace ends with the run"
    run = project.ledger.run("exp-0001", "run-01")
    assert (run.status, run.rows) == (RunStatus.COMPLETED if ended else RunStatus.LOST, rows)
    assert "exp-0001/run-01 was closed" in finding.message
    assert recover(project) == []


def test_w4_a_supervisor_that_is_told_to_stop_closes_its_run(
    project: Project, root: Path, tmp_path: Path
) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    (root / "train.py").write_text(family(mark, "time.sleep(600)"))
    supervisor = supervisor_process(project, None)
    try:
        wait_until(lambda: len(processes_with(mark)) >= 3)
        wait_until(lambda: project.ledger.run("exp-0001", "run-01").status is RunStatus.RUNNING)
    finally:
        supervisor.terminate()
    assert supervisor.wait(timeout=60) != 0
    assert processes_with(mark) == []
    run = project.ledger.run("exp-0001", "run-01")
    assert run.status is RunStatus.CANCELLED
    assert run.seconds is not None, "what was trained until then is paid for"
    assert 0 < run.seconds < 600


STUBBORN = """
import signal, time
from harness.run_logger import RunLogger
log = RunLogger.from_environment()
def deaf(*_):
    log.epoch(0, {"told": 1})
signal.signal(signal.SIGTERM, deaf)
log.start()
while True:
    time.sleep(0.05)
"""


def test_a_second_signal_while_a_run_is_ended_changes_nothing(
    project: Project, root: Path, tmp_path: Path
) -> None:
    """The run does not heed TERM; the second one used to end the supervisor before it sent KILL."""
    (root / "train.py").write_text(STUBBORN)
    supervisor = supervisor_process(project, None)
    metrics = project.layout.run("exp-0001", "run-01", "metrics")

    def rows() -> int:
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    try:
        wait_until(lambda: rows() == 1)
        supervisor.terminate()
        wait_until(lambda: rows() == 2)  # the run was told, its grace goes on
        supervisor.terminate()
        supervisor.send_signal(signal.SIGINT)
    finally:
        supervisor.terminate()
    assert supervisor.wait(timeout=60) != 0
    run = project.ledger.run("exp-0001", "run-01")
    assert run.status is RunStatus.CANCELLED
    assert not is_alive(run)


def test_a_run_whose_terminal_closes_is_cancelled(
    project: Project, root: Path, environment: dict[str, str]
) -> None:
    """The kernel sends SIGHUP, and nobody reads what the supervisor says."""
    (root / "train.py").write_text(STUBBORN)
    ours, theirs = os.openpty()
    metrics = project.layout.run("exp-0001", "run-01", "metrics")
    words = [sys.executable, "-P", "-I", "-m", "harness", "train", "exp-0001", "--sandbox", "none"]
    words += ["--reason", "A test of its terminal.", "--", sys.executable, "train.py"]

    def attach() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    state = {**os.environ, **environment}
    supervisor = subprocess.Popen(words, cwd=root, env=state, preexec_fn=attach, **streams)
    os.close(theirs)
    try:
        wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") == 1)
    finally:
        os.close(ours)
    assert supervisor.wait(timeout=60) == 130
    run = project.ledger.run("exp-0001", "run-01")
    assert run.status is RunStatus.CANCELLED
    assert not is_alive(run)


def test_a_run_that_was_registered_and_never_launched_is_lost(project: Project) -> None:
    register(project)
    with try_supervising(project.layout, "exp-0001") as held:
        assert held
        assert recover(project) == []
    recover(project)
    assert project.ledger.run("exp-0001", "run-01").status is RunStatus.LOST


def test_a_process_that_reused_the_id_is_not_ended(project: Project) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        register(project)
        known = identity(bystander.pid)
        stale = {**known, "started": known["started"] - 3600.0}
        project.ledger.append(
            RunStarted(experiment="exp-0001", run="run-01", supervisor=stale, job=local_job(stale))
        )
        assert not is_alive(project.ledger.run("exp-0001", "run-01"))
        recover(project)
        time.sleep(0.1)
        assert bystander.poll() is None
        assert project.ledger.run("exp-0001", "run-01").status is RunStatus.LOST
    finally:
        bystander.kill()
        bystander.wait()


class Hurried(SystemClock):
    """Ninety seconds in one."""

    def monotonic(self) -> float:
        return 90 * super().monotonic()


def test_a_training_may_load_a_model_for_minutes_before_its_first_row(
    project: Project, run_training: Trainer
) -> None:
    short_plan(project, 120, 600)
    object.__setattr__(project, "clock", Hurried())
    slow = GOOD.replace("\nwith ", "\nimport time\ntime.sleep(1.5)\nwith ", 1)
    (run,) = run_training(slow, seeds=[1]).runs
    assert (run.status, [found.code for found in run.findings]) == (
        RunStatus.COMPLETED,
        ["clock_set"],
    )
    assert run.seconds is not None
    assert run.seconds > 120
