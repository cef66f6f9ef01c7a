"""What a run left behind: its rows, its checkpoints, the hashes of its files, and how it is
closed."""

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


def rows_of(layout: Layout, run: Run) -> RunRows:
    """An empty reader for the run's rows."""
    name = f"{run.experiment}/{run.id}"
    return RunRows(layout.run(run.experiment, run.id, "metrics"), run=name, token_sha256=run.token)


def read_all(layout: Layout, run: Run, alarms: RunAlarms | None = None) -> RunRows:
    """The run's rows as they stand now, with a complete last line that has no newline. They go
    through `alarms`."""
    rows = rows_of(layout, run)
    own = rows.take(Tail(rows.path).poll(final=True))
    if alarms is not None:
        alarms.take(own)
        alarms.restore()
    return rows


def close_run(
    project: Project, run: Run, rows: RunRows, ending: Ending, *, began: float | None = None
) -> Run:
    """Record the run's checkpoints and its end; write run.json. Returns the run as it is now.
    `began` is as `origin_findings` takes it."""
    ledger, layout = project.ledger, project.layout
    found, problems = _checkpoints(layout, run, rows)
    if (made := _judged(project, run)) is not None:
        found = sorted(
            (replace(item, final=item.checkpoint == made) for item in found),
            key=lambda item: item.final,
        )
    problems += not_exact(f"{run.experiment}/{run.id}", rows.resumes)
    for final in (item for item in found if item.final and ending.status is RunStatus.COMPLETED):
        problems += origin_findings(project, run, final, began, ending.findings)
        problems += untrained_findings(final, found, _initial(layout, run, rows))
    for checkpoint in _news(found, ledger.checkpoints(run.experiment, run.id), made):
        ledger.append(checkpoint)
    ended = RunEnded(
        experiment=run.experiment,
        run=run.id,
        status=ending.status.value,
        exit_code=ending.exit_code,
        reason=ending.reason,
        seconds=_together(run.seconds, ending.seconds),
        rows=rows.count,
        findings=[*_still_hold(run), *ending.findings, *problems],
    )
    write_run_json(layout, run, ended)
    ledger.append(replace(ended, files=_hashes(layout, run)))
    return ledger.run(run.experiment, run.id)


def _together(before: float | None, now: float | None) -> float | None:
    """Seconds of all attempts; None while none was measured."""
    return now if before is None else before + (now or 0.0)


def _still_hold(run: Run) -> list[Finding]:
    """Of an earlier attempt: its rows are still there, so what was said of their times is true."""
    return [found for found in run.findings if found.code == CLOCK_SET]


def _judged(project: Project, run: Run) -> str | None:
    """Content hash of the model that a training program's run was found to have made: that one is
    final, whatever checkpoints the trainer told of."""
    mine = [item for item in project.ledger.judgements(run.experiment) if item.run == run.id]
    return mine[-1].artifact if mine and mine[-1].accepted else None


def _news(
    found: list[CheckpointRecorded], recorded: list[Checkpoint], made: str | None
) -> list[CheckpointRecorded]:
    """What the ledger does not say yet: after a resume, also that another checkpoint is the final
    one now."""
    known = {item.id: item for item in recorded}
    now = {item.checkpoint for item in found}
    changed = [
        item
        for item in found
        if (old := known.get(item.checkpoint)) is None
        or (old.path, old.epoch, old.final) != (item.path, item.epoch, item.final)
    ]
    stale = [item for item in recorded if item.final and item.id not in now and item.id != made]
    return changed + [_no_longer_final(item) for item in stale] if found else changed


def _no_longer_final(item: Checkpoint) -> CheckpointRecorded:
    return CheckpointRecorded(
        experiment=item.experiment,
        run=item.run,
        checkpoint=item.id,
        path=item.path,
        bytes=item.bytes,
        epoch=item.epoch,
        final=False,
    )


def write_run_json(layout: Layout, run: Run, ended: RunEnded | None = None) -> None:
    """run.json: what was registered, where it runs, and how it ended once it has."""
    kept = (
        "experiment",
        "id",
        "seed",
        "attempt",
        "status",
        "argv",
        "code",
        "data",
        "sandbox",
        "session",
        "environment",
    )
    times = ("registered_at", "started_at", "job")
    plain = asdict(run)
    content = {name: plain[name] for name in (*kept, *times)}
    if ended is not None:
        told = ended.body()
        content |= {
            name: told[name]
            for name in ("status", "exit_code", "reason", "seconds", "rows", "findings")
        }
    atomic_write(layout.run(run.experiment, run.id, "run"), pretty_json(content))


def _hashes(layout: Layout, run: Run) -> dict[str, str]:
    found = {}
    for name in _HASHED:
        path = layout.run(run.experiment, run.id, name)
        if path.is_file() and not path.is_symlink():
            found[name] = hash_path(path)
    return found


def _checkpoints(
    layout: Layout, run: Run, rows: RunRows
) -> tuple[list[CheckpointRecorded], list[Finding]]:
    """The checkpoints that the run told of and kept, one a path, the one to score last; and those
    that cannot be read."""
    found: list[CheckpointRecorded] = []
    problems: list[Finding] = []
    latest: dict[str, dict[str, Any]] = {}
    for row in rows.checkpoints:
        name = str(row.get("path"))
        latest.pop(name, None)
        latest[name] = row
    finals = [name for name, row in latest.items() if row.get("final") is True] or list(latest)
    for name, row in latest.items():
        try:
            path = _inside(layout.run(run.experiment, run.id), name)
            if name != finals[-1] and not path.exists():
                # the training keeps newest, best and due ones, and took this one away again
                continue
            found.append(
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
        except (
            UsageError,
            OSError,
            ValueError,
            RuntimeError,
        ) as error:  # a hostile name or a loop of links, too
            problems.append(
                Finding(
                    "checkpoint_unreadable",
                    f"{run.experiment}/{run.id} told of the checkpoint {name!a:.100}:"
                    f" {str(error)!a:.200}",
                    "Keep each checkpoint that checkpoint_saved was called for, as files below"
                    " log.checkpoint_dir.",
                )
            )
    return sorted(found, key=lambda item: item.final), problems


def _initial(layout: Layout, run: Run, rows: RunRows) -> set[str]:
    """Paths, relative to the project, of what the run said it started from."""
    newest = {str(row.get("path")): row.get("initial") is True for row in rows.checkpoints}
    folder = layout.relative(layout.run(run.experiment, run.id))
    return {f"{folder}/{name}" for name, initial in newest.items() if initial}


def _epoch(value: Any) -> int | None:
    """None for what no loop counts to: the ledger's columns hold 64 bits."""
    return value if isinstance(value, int) and abs(value) < 2**53 else None


def _inside(folder: Path, name: str) -> Path:
    name.encode("utf-8")  # facts are UTF-8
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
