"""`train --resume`: which runs go on, and whether they may."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import hash_file
from harness.artifacts.locate import Layout
from harness.artifacts.metrics_file import rows_in
from harness.artifacts.objects import ObjectDamagedError
from harness.clock import parse_iso
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import RefusedError, UsageError
from harness.files import walk_files
from harness.ledger.project import Project
from harness.runs.train_job import TrainJob

_SLACK = timedelta(milliseconds=5)
"""Facts keep milliseconds; file systems round down."""

_NOT_AGAIN = frozenset({"stopped_by_alarm", "metrics_rewritten", "metrics_out_of_time"})
"""Findings after which more of the same run is worth nothing."""


def resumptions(job: TrainJob, seeds: Iterable[int]) -> dict[int, tuple[Run, str]]:
    """Seed -> the run that goes on, and its link token: each seed's newest run that ended without
    completing and had begun to log. Raises RefusedError when there is none, or one may not go on.
    """
    newest = {run.seed: run for run in job.project.ledger.runs(job.experiment)}
    resumed = {}
    for run in (newest[seed] for seed in seeds if seed in newest):
        token = None if run.status is RunStatus.COMPLETED else link_token(job.project, run)
        if token is not None:
            _require_same(job, run)
            require_untouched(job.project, run)
            resumed[run.seed] = run, token
    if not resumed:
        raise RefusedError(
            f"No run of {job.experiment} can go on: none of them stopped after it had begun to"
            " log.",
            hint=f"Train it with `harness train {job.experiment}`.",
            code="nothing_to_resume",
        )
    return resumed


def link_token(project: Project, run: Run) -> str | None:
    """The run's own link token, which only its start row holds."""
    path = project.layout.run(run.experiment, run.id, "metrics")
    for row in rows_in(path):
        token = row.get("token")
        if isinstance(token, str) and hashlib.sha256(token.encode()).hexdigest() == run.token:
            return token
    return None


def require_worth(run: Run) -> None:
    """Raises RefusedError when a finding says that more of this run is worth nothing."""
    stop = next((finding for finding in run.findings if finding.code in _NOT_AGAIN), None)
    if stop is not None:
        name = f"{run.experiment}/{run.id}"
        raise cannot_go_on(name, stop.message, "Fix it, then train from the start.", stop.code)


def _require_same(job: TrainJob, run: Run) -> None:
    name = f"{run.experiment}/{run.id}"
    require_worth(run)
    if (run.seconds or 0.0) >= job.plan.budget.run_minutes * 60:
        raise cannot_go_on(
            name,
            f"its budget.run_minutes ({job.plan.budget.run_minutes:g}) are spent.",
            "A person may raise it and approve the plan again.",
            "run_minutes_spent",
        )
    if run.code != job.snapshot.hash:
        raise cannot_go_on(
            name,
            f"its code is not what it was: {_difference(job, run)}.",
            "Put the code back as it was, or train from the start without --resume.",
            "code_differs",
        )
    now = {"command": job.argv, "data": job.data, "sandbox": job.sandbox.kind.value}
    before = {"command": list(run.argv), "data": run.data, "sandbox": run.sandbox}
    for what in now:
        if now[what] != before[what]:
            raise cannot_go_on(
                name,
                f"its {what} was {before[what]}, and is {now[what]} now.",
                "Resume with the same one, or train from the start without --resume.",
                f"{what}_differs",
            )


def require_untouched(project: Project, run: Run) -> None:
    """Raises RefusedError when a row or a checkpoint was changed since the run was closed."""
    layout, name = project.layout, f"{run.experiment}/{run.id}"
    changed = [
        artifact
        for artifact, digest in run.files.items()
        if _hash(layout, run, artifact) != digest
    ]
    closed = parse_iso(run.ended_at or run.registered_at) + _SLACK
    # Checkpoints are too large to hash again; a change moves their ctime, which no program sets.
    for path in walk_files(layout.run(run.experiment, run.id) / "checkpoints"):
        if datetime.fromtimestamp(path.lstat().st_ctime, UTC) > closed:
            changed.append(layout.relative(path))
    if changed:
        raise cannot_go_on(
            name,
            f"what it left has changed since it was closed: {', '.join(changed[:3])}.",
            "Train from the start without --resume.",
            "run_changed",
        )


def _hash(layout: Layout, run: Run, artifact: str) -> str | None:
    try:
        return hash_file(layout.run(run.experiment, run.id, artifact))
    except UsageError:
        return None


def _difference(job: TrainJob, run: Run) -> str:
    try:
        before = load_snapshot(job.project.layout.objects, run.code).files
    except ObjectDamagedError:
        return "which of its files differ is not known"
    now = job.snapshot.files
    paths = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    return ", ".join(paths[:5]) or "links or modes differ"


def cannot_go_on(name: str, why: str, hint: str, code: str) -> RefusedError:
    return RefusedError(f"{name} cannot go on: {why}", hint=hint, code=code)
