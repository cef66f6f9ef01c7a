"""Closing a run: its rows, its checkpoints, the hashes of its files. Also a run whose supervisor
died, after what survived of it was ended."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from harness.artifacts.content import content_hash, hash_path
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import Tail
from harness.artifacts.resources import merged
from harness.clock import parse_iso
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json
from harness.ledger.facts import Checkpoint, CheckpointRecorded, Judgement, RunEnded
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.plans.parse import plan_from
from harness.runs.checkpoint_watch import (
    Seen,
    Telling,
    end_noted,
    epoch_of,
    final,
    place_of,
    shape_of,
    size_of,
)
from harness.runs.endings import Ending, not_exact
from harness.runs.environment import remove_private
from harness.runs.launchers.launcher import job_of
from harness.runs.lock import try_supervising
from harness.runs.origin import origin_findings, untrained_findings
from harness.runs.run_tail import RunAlarms, RunRows
from harness.runs.workspace import remove_workspace

_HASHED = ("run", "metrics", "status", "stdout", "stderr", "alarms")
_RUN_JSON = (
    *("experiment", "id", "seed", "attempt", "status", "argv", "code", "data", "sandbox"),
    *("session", "environment", "registered_at", "started_at", "job"),
)


def rows_of(layout: Layout, run: Run) -> RunRows:
    """An empty reader for the run's rows."""
    name = f"{run.experiment}/{run.id}"
    return RunRows(layout.run(run.experiment, run.id, "metrics"), run=name, token_sha256=run.token)


def read_all(layout: Layout, run: Run, alarms: RunAlarms | None = None) -> RunRows:
    """The run's rows as they stand now, fed to `alarms`."""
    rows = rows_of(layout, run)
    for batch in Tail(rows.path).batches(final=True):
        own = rows.take(batch)
        if alarms is not None:
            alarms.take(own)
    if alarms is not None:
        alarms.restore()
    return rows


def close_run(
    project: Project,
    run: Run,
    rows: RunRows,
    ending: Ending,
    *,
    began: float | None = None,
    told: Mapping[str, Seen] | None = None,
) -> Run:
    """Record the run's checkpoints and its end; write run.json. `began`: see `origin_findings`.
    `told`: what its supervisor saw of the checkpoints; None when it died."""
    ledger, layout = project.ledger, project.layout
    latest = rows.checkpoints.newest
    named, problems = _checkpoints(layout, run, latest)
    known = {name: _as_told(layout, fact, (told or {}).get(name)) for name, fact in named.items()}
    changed = [name for name, same in known.items() if same is False]
    # Recorded as told only when it is known to be that: else a kill before the run's end would
    # leave changed bytes as what the supervisor had seen.
    checkpoints = [
        replace(fact, told=latest[name].number if known[name] else None)
        for name, fact in named.items()
    ]
    if (made := _accepted_model(project, run)) is not None:
        checkpoints = [replace(fact, final=fact.checkpoint == made) for fact in checkpoints]
    checkpoints.sort(key=lambda fact: fact.final)
    problems += not_exact(f"{run.experiment}/{run.id}", rows.resumes)
    if ending.status is RunStatus.COMPLETED:
        paths = {named[name].path for name in changed}
        problems += [_changed_finding(fact) for fact in checkpoints if fact.path in paths]
        for last in (fact for fact in checkpoints if fact.final):
            problems += origin_findings(project, run, last, began, ending.findings)
            problems += untrained_findings(last, checkpoints, _initial(layout, run, latest))
    for checkpoint in _not_recorded(checkpoints, ledger.checkpoints(run.experiment, run.id), made):
        ledger.append(checkpoint)
    ended = RunEnded(
        experiment=run.experiment,
        run=run.id,
        status=ending.status.value,
        exit_code=ending.exit_code,
        reason=ending.reason,
        seconds=_sum(run.seconds, ending.seconds),
        rows=rows.count,
        resources=merged(
            [
                (run.resources, run.seconds),
                (ending.resources, ending.seconds),
            ]
        ),
        findings=[*_still_hold(run), *ending.findings, *problems],
    )
    # run.json comes first: the fact holds the hashes of all files, run.json's among them. After a
    # kill in between the run is still open, and `recover` closes it.
    write_run_json(layout, run, ended)
    ledger.append(replace(ended, files=_hashes(layout, run)))
    (layout.ends / run.token).unlink(missing_ok=True)
    return ledger.run(run.experiment, run.id)


def _sum(before: float | None, now: float | None) -> float | None:
    """Seconds of all attempts; None while none was measured."""
    return now if before is None else before + (now or 0.0)


def _still_hold(run: Run) -> list[Finding]:
    """Findings of an earlier attempt about the times of its rows, which are still there."""
    return [finding for finding in run.findings if finding.code == CLOCK_SET]


def _accepted_model(project: Project, run: Run) -> str | None:
    """Content hash of a training program's model, by its accepted result: that one is final,
    whatever checkpoints the trainer reported."""
    judgements = project.ledger.judgements(run.experiment)
    mine = [judgement for judgement in judgements if judgement.run == run.id]
    return mine[-1].artifact if mine and mine[-1].accepted else None


def _as_told(layout: Layout, fact: CheckpointRecorded, seen: Seen | None) -> bool | None:
    """Whether the checkpoint still is what its newest row told of; None where nobody saw that."""
    if seen is None or (seen.sha256 is None and seen.shape is None):
        return None
    if seen.sha256 is not None:
        return seen.sha256 == fact.checkpoint
    return shape_of(layout.root / fact.path, most=len(seen.shape or ()) + 1) == seen.shape


def _changed_finding(fact: CheckpointRecorded) -> Finding:
    name = f"{fact.experiment}/{fact.run}"
    return Finding(
        "checkpoint_changed" if fact.final else "checkpoint_overwritten",
        f"{fact.path} of {name} was written after checkpoint_saved had told of it, and not told of"
        " again.",
        "Call log.checkpoint_saved(path) after each save, when the file is whole, and leave the"
        " file alone then.",
        {"run": name, "path": fact.path},
    )


def _not_recorded(
    facts: list[CheckpointRecorded], recorded: list[Checkpoint], made: str | None
) -> list[CheckpointRecorded]:
    """What the ledger does not hold yet; after a resume another checkpoint may be the final one."""
    known = {checkpoint.id: checkpoint for checkpoint in recorded}
    changed = [
        fact
        for fact in facts
        if (old := known.get(fact.checkpoint)) is None
        or (old.path, old.epoch, old.final) != (fact.path, fact.epoch, fact.final)
    ]
    if not facts:
        return changed
    now = {fact.checkpoint for fact in facts} | {made}
    stale = [old for old in recorded if old.final and old.id not in now]
    return changed + [_no_longer_final(old) for old in stale]


def _no_longer_final(checkpoint: Checkpoint) -> CheckpointRecorded:
    return CheckpointRecorded(
        experiment=checkpoint.experiment,
        run=checkpoint.run,
        checkpoint=checkpoint.id,
        path=checkpoint.path,
        bytes=checkpoint.bytes,
        epoch=checkpoint.epoch,
        final=False,
    )


def write_run_json(layout: Layout, run: Run, ended: RunEnded | None = None) -> None:
    """run.json: what was registered, where it runs, and how it ended once it has."""
    plain = asdict(run)
    content = {name: plain[name] for name in _RUN_JSON}
    if ended is not None:
        body = ended.body()
        names = ("status", "exit_code", "reason", "seconds", "rows", "findings")
        content |= {name: body[name] for name in names}
    atomic_write(layout.run(run.experiment, run.id, "run"), pretty_json(content))


def _hashes(layout: Layout, run: Run) -> dict[str, str]:
    paths = {name: layout.run(run.experiment, run.id, name) for name in _HASHED}
    return {
        name: hash_path(path)
        for name, path in paths.items()
        if path.is_file() and not path.is_symlink()
    }


def _checkpoints(
    layout: Layout, run: Run, latest: Mapping[str, Telling]
) -> tuple[dict[str, CheckpointRecorded], list[Finding]]:
    """The checkpoints that the run reported and kept, by the name that it gave; and findings of
    those that cannot be read."""
    checkpoints: dict[str, CheckpointRecorded] = {}
    problems: list[Finding] = []
    last = final(dict(latest))
    for name, telling in latest.items():
        try:
            path = place_of(layout.run(run.experiment, run.id), name)
            if telling is not last and not path.exists():
                # Training keeps the newest, the best and the due ones, and removed this one.
                continue
            checkpoints[name] = CheckpointRecorded(
                experiment=run.experiment,
                run=run.id,
                checkpoint=hash_path(path),
                path=layout.relative(path),
                bytes=size_of(path),
                epoch=epoch_of(telling.row),
                final=telling is last,
            )
        # A name can be hostile: a null byte is a ValueError, a loop of links a RuntimeError.
        except (UsageError, OSError, ValueError, RuntimeError) as error:
            problems.append(
                Finding(
                    "checkpoint_unreadable",
                    f"{run.experiment}/{run.id} reported the checkpoint {name!a:.100}:"
                    f" {str(error)!a:.200}",
                    "Keep each checkpoint that checkpoint_saved was called for, as files below"
                    " log.checkpoint_dir.",
                )
            )
    return checkpoints, problems


def _initial(layout: Layout, run: Run, latest: Mapping[str, Telling]) -> set[str]:
    """Paths, relative to the project, of what the run said it started from."""
    folder = layout.relative(layout.run(run.experiment, run.id))
    return {f"{folder}/{name}" for name, told in latest.items() if told.row.get("initial") is True}


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
