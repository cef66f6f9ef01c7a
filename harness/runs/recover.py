"""Closes the runs whose supervisor died, after what survived of them was ended."""

from datetime import UTC, datetime
from pathlib import PurePosixPath

from harness.artifacts.content import content_hash
from harness.clock import parse_iso
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.ledger.facts import Judgement
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.plans.parse import plan_from
from harness.runs.alarms import RunAlarms
from harness.runs.collect import close_run, read_all
from harness.runs.endings import Ending
from harness.runs.environment import remove_private
from harness.runs.launchers.launcher import job_of
from harness.runs.lock import try_supervising
from harness.runs.run_tail import RunRows
from harness.runs.tellings import end_noted, final
from harness.runs.workspace import remove_workspace


def recover(project: Project) -> list[Finding]:
    """Close every open run of this tree that no living supervisor holds; one finding a run."""
    findings: list[Finding] = []
    for experiment in sorted({run.experiment for run in project.ledger.open_runs()}):
        if not project.is_here(project.ledger.experiment(experiment)):
            continue  # its files are elsewhere: from here they look lost
        with try_supervising(project.layout, experiment) as held:
            if held:
                findings += close_abandoned(project, experiment)
    return findings


def close_abandoned(
    project: Project, experiment: str, *, seed: int | None = None
) -> list[Finding]:
    """As `recover`, for one experiment that the caller holds, or one seed of it."""
    runs = [run for run in project.ledger.runs(experiment) if run.status not in FINAL_RUNS]
    return [_close(project, run) for run in runs if seed in (None, run.seed)]


def _close(project: Project, run: Run) -> Finding:
    # First of all: rows and files are read, and hashed, only when nothing can change them.
    launcher, handle = job_of(run)
    killed = launcher.kill(handle, run.token)
    layout = project.layout
    remove_workspace(layout, run.token)
    layout.run(run.experiment, run.id).mkdir(parents=True, exist_ok=True)
    rows = read_all(layout, run, RunAlarms(project, run))
    name = f"{run.experiment}/{run.id}"
    what = "nothing of it was left running"
    if killed.count:
        what = f"{killed.count} of its processes were ended"
    if killed.left:
        what += f", but {killed.left} could not be"
    if project.ledger.program(run.experiment) is not None:
        status, reason = _program(project, run, what)
    elif run.status is not RunStatus.RUNNING or (rows.end or {}).get("status") != "completed":
        status, reason = RunStatus.LOST, f"its supervisor died before the run had ended; {what}"
    elif (why := _not_vouched_for(project, run, rows)) is not None:
        status = RunStatus.LOST
        reason = f"its supervisor died, and {why}; its end row says completed; {what}"
    else:
        status = RunStatus.COMPLETED
        reason = f"its supervisor died; its end row says completed; {what}"
    closed = close_run(
        project, run, rows, Ending(status=status, reason=reason, seconds=_seconds(project, run))
    )
    remove_private(run.token)
    return Finding(
        "run_recovered",
        f"{name} was closed as {closed.status}: {reason}.",
        "Nothing to do."
        if status is RunStatus.COMPLETED
        else f"`harness train {run.experiment} --resume` goes on with it; `harness train"
        f" {run.experiment}` trains its seed anew.",
        {"run": name, "status": closed.status.value, "ended_processes": killed.count},
    )


def _not_vouched_for(project: Project, run: Run, rows: RunRows) -> str | None:
    """Why the end and the final checkpoint are not known to be the run's own: since its
    supervisor's death nobody saw what was put there. None when it had seen the end, and recorded a
    hash that still holds."""
    if not end_noted(project.layout, run):
        return "it had not seen the end row"
    told = project.ledger.tellings(run.experiment, run.id)
    if any(number > rows.checkpoints.count for number, _ in told.values()):
        return "rows that it had seen are gone"
    last = final(rows.checkpoints.newest)
    if last is None:
        return "no checkpoint was told of"
    folder = project.layout.relative(project.layout.run(run.experiment, run.id))
    path = PurePosixPath(folder, last.name).as_posix()
    number, content = told.get(path, (0, ""))
    if number != last.number:
        return "it had not hashed the final checkpoint"
    if content_hash(project.layout.root, path) != content:
        return "the final checkpoint is not what it had recorded"
    return None


def _program(project: Project, run: Run, what: str) -> tuple[RunStatus, str]:
    """A training program's run is completed when its result was accepted, whatever its rows say."""
    judged = [] if run.status is not RunStatus.RUNNING else _judged(project, run)
    if judged and judged[-1].accepted:
        return RunStatus.COMPLETED, f"its supervisor died; its result had been validated; {what}"
    if judged:
        return RunStatus.FAILED, f"its supervisor died; its result had been refused; {what}"
    return RunStatus.LOST, f"its supervisor died before the result was judged; {what}"


def _judged(project: Project, run: Run) -> list[Judgement]:
    """Of the attempt that is open; an earlier one's result may have been refused."""
    began = parse_iso(run.started_at or run.registered_at)
    judged = project.ledger.judgements(run.experiment)
    return [fact for fact in judged if fact.run == run.id and parse_iso(fact.at) >= began]


def _seconds(project: Project, run: Run) -> float | None:
    """From the attempt's start to the last sign of life in the run's files, for the time budget; at
    most until now, and at most what the limit left to the attempt."""
    if run.started_at is None or run.status is not RunStatus.RUNNING:
        return None
    begun = parse_iso(run.started_at)
    last = begun
    for name in ("metrics", "stdout", "stderr", "status"):
        path = project.layout.run(run.experiment, run.id, name)
        if path.exists():
            # Training can set a file's modification time, but not its change time.
            last = max(last, datetime.fromtimestamp(path.lstat().st_ctime, UTC))
    left = max(0.0, _limit(project, run) - (run.seconds or 0.0))
    return min(max(0.0, (min(last, project.clock.now()) - begun).total_seconds()), left)


def _limit(project: Project, run: Run) -> float:
    """Seconds that the run may take in all its attempts."""
    program = project.ledger.program(run.experiment)
    if program is not None:
        return float(program.spec["budget"]["minutes"]) * 60
    approved = plan_of(project, project.ledger.experiment(run.experiment))
    return plan_from(approved.content).budget.run_minutes * 60
