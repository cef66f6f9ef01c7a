"""Closing a run: its rows, its checkpoints, the hashes of its files."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import Tail
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json, walk_files
from harness.ledger.facts import Checkpoint, CheckpointRecorded, RunEnded
from harness.ledger.project import Project
from harness.runs.alarms import RunAlarms
from harness.runs.endings import Ending, not_exact
from harness.runs.origin import origin_findings, untrained_findings
from harness.runs.run_tail import RunRows

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
    own = rows.take(Tail(rows.path).poll(final=True))
    if alarms is not None:
        alarms.take(own)
        alarms.restore()
    return rows


def close_run(
    project: Project, run: Run, rows: RunRows, ending: Ending, *, began: float | None = None
) -> Run:
    """Record the run's checkpoints and its end; write run.json. `began`: see `origin_findings`."""
    ledger, layout = project.ledger, project.layout
    checkpoints, problems = _checkpoints(layout, run, rows)
    if (made := _accepted_model(project, run)) is not None:
        marked = (replace(fact, final=fact.checkpoint == made) for fact in checkpoints)
        checkpoints = sorted(marked, key=lambda fact: fact.final)
    problems += not_exact(f"{run.experiment}/{run.id}", rows.resumes)
    completed = ending.status is RunStatus.COMPLETED
    for final in (fact for fact in checkpoints if fact.final and completed):
        problems += origin_findings(project, run, final, began, ending.findings)
        problems += untrained_findings(final, checkpoints, _initial(layout, run, rows))
    for checkpoint in _changed(checkpoints, ledger.checkpoints(run.experiment, run.id), made):
        ledger.append(checkpoint)
    ended = RunEnded(
        experiment=run.experiment,
        run=run.id,
        status=ending.status.value,
        exit_code=ending.exit_code,
        reason=ending.reason,
        seconds=_sum(run.seconds, ending.seconds),
        rows=rows.count,
        findings=[*_still_hold(run), *ending.findings, *problems],
    )
    # run.json comes first: the fact holds the hashes of all files, run.json's among them. After a
    # kill in between the run is still open, and `recover` closes it.
    write_run_json(layout, run, ended)
    ledger.append(replace(ended, files=_hashes(layout, run)))
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


def _changed(
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
    layout: Layout, run: Run, rows: RunRows
) -> tuple[list[CheckpointRecorded], list[Finding]]:
    """The checkpoints that the run reported and kept, one a path, the final one last; and findings
    of those that cannot be read."""
    checkpoints: list[CheckpointRecorded] = []
    problems: list[Finding] = []
    latest: dict[str, dict[str, Any]] = {}
    for row in rows.checkpoints:
        name = str(row.get("path"))
        latest.pop(name, None)  # so that a path reported again moves to the end
        latest[name] = row
    finals = [name for name, row in latest.items() if row.get("final") is True] or list(latest)
    for name, row in latest.items():
        try:
            path = _inside(layout.run(run.experiment, run.id), name)
            if name != finals[-1] and not path.exists():
                # Training keeps the newest, the best and the due ones, and removed this one.
                continue
            checkpoints.append(
                CheckpointRecorded(
                    experiment=run.experiment,
                    run=run.id,
                    checkpoint=hash_path(path),
                    path=layout.relative(path),
                    bytes=_size(path),
                    epoch=_epoch(row.get("epoch")),
                    final=name == finals[-1],
                )
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
    return sorted(checkpoints, key=lambda fact: fact.final), problems


def _initial(layout: Layout, run: Run, rows: RunRows) -> set[str]:
    """Paths, relative to the project, of what the run said it started from."""
    newest = {str(row.get("path")): row.get("initial") is True for row in rows.checkpoints}
    folder = layout.relative(layout.run(run.experiment, run.id))
    return {f"{folder}/{name}" for name, initial in newest.items() if initial}


def _epoch(value: Any) -> int | None:
    # The ledger's columns hold 64 bits; a reported epoch can be any JSON number.
    return value if isinstance(value, int) and abs(value) < 2**53 else None


def _inside(folder: Path, name: str) -> Path:
    if "\ufffd" in name:  # the row reader puts it in place of what no fact can hold
        raise UsageError(
            f"{name} is no name that can be recorded: parts of it are no text.",
            hint="Name checkpoints in plain text.",
        )
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
        raise UsageError(
            f"{name} lies outside the run's folder.", hint="Save it below log.checkpoint_dir."
        )
    return path


def _size(path: Path) -> int:
    return (
        path.stat().st_size
        if path.is_file()
        else sum(file.lstat().st_size for file in walk_files(path))
    )
