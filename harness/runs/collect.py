"""Closing a run: its rows, its checkpoints, the hashes of its files."""

from collections.abc import Mapping
from dataclasses import asdict, replace

from harness.artifacts.content import hash_path
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import Tail
from harness.artifacts.resources import merged
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json
from harness.ledger.facts import Checkpoint, CheckpointRecorded, RunEnded
from harness.ledger.project import Project
from harness.runs.alarms import RunAlarms
from harness.runs.checkpoint_watch import size_of
from harness.runs.endings import Ending, not_exact
from harness.runs.origin import origin_findings, untrained_findings
from harness.runs.run_tail import RunRows
from harness.runs.tellings import Seen, Telling, epoch_of, final, place_of, shape_of

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
