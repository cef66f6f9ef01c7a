"""Is predict able to answer? Tried on a few training rows beside the training, with the first
checkpoint that holds still, and by `harness evaluate --check`, so that hours of training do not end
in a predict that cannot be scored.

In a thread of low priority, without GPUs: the training has them. What it finds is a note.
"""

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.commit_snapshot import commit_of
from harness.artifacts.content import hash_path
from harness.artifacts.metrics_file import Row
from harness.detectors.alarm import PREDICT_FAILS, Alarm, Severity
from harness.domain.launch_options import LOCAL
from harness.domain.plain_text import one_line
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus, SandboxKind, Split
from harness.errors import HarnessError, UsageError
from harness.evaluation.predict_sources import OwnLibraries
from harness.evaluation.requests import Asked, EvaluationJob, predict_limit, request_of
from harness.evaluation.scores import counted_runs, trained_seconds
from harness.evaluation.split_rows import table_of
from harness.evaluation.trial import MOST_ROWS, Trial, try_predict
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import plan_of, plan_seeds
from harness.plans.judge import require_judge
from harness.plans.parse import plan_from
from harness.process import StoppedError, stopping_at
from harness.runs.checkpoint_watch import place_of, size_of
from harness.runs.launchers.launcher import beside
from harness.runs.train_job import TrainJob, code_now, code_of
from harness.sandbox.reach import accelerators

AS_IT_IS = "."
LEAST_S, MOST_S, TIMES = 1.0, 20.0, 3.0
"""It waits `TIMES` as long as the first checkpoint took, within these bounds: a training that ends
meanwhile loses little, and the evaluation starts predict at once anyway."""
_PAUSE_S = 1.0
_TRIES = 20
_MOST_TABLE = 256 << 20
_MOST_CHECKPOINT = 1 << 30
_NICE = 10
_LONGEST, _BEGIN = 700, 120
_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_OF_DEVICES = re.compile(r"cuda|\bhip\b|rocm|nvidia|\bgpus?\b|no .*devices?", re.IGNORECASE)
_GONE = (UsageError, OSError, ValueError, RuntimeError)


def _job(
    project: Project, approved: ApprovedPlan, environment: Mapping[str, str]
) -> EvaluationJob:
    return EvaluationJob(
        project=project,
        approved=approved,
        plan=plan_from(approved.content),
        split=Split.VALIDATION,
        shuffle_seed=0,
        environment=environment,
        libraries=OwnLibraries(project, approved),
        before_predict=lambda: None,
    )


@dataclass(frozen=True, kw_only=True)
class TriedNow:
    trial: Trial
    run: str
    checkpoint: str
    weights: str
    """Which, in words."""
    changed: bool
    """Whether the code is another one than that of the runs."""
    trained: bool
    """Whether all seeds are."""


def try_now(project: Project, experiment: str, code: str | None, sandbox: Sandbox) -> TriedNow:
    """Try predict with the experiment's newest weights. `code`: of a commit, by default the files
    as they are. Raises UsageError (no_checkpoint, no_commit) and what `require_judge` raises."""
    record = project.require_here(experiment)
    approved = plan_of(project, record)
    require_judge(project)
    ledger, layout = project.ledger, project.layout
    runs = {run.id: run for run in counted_runs(ledger.runs(experiment))}
    points = [
        point
        for point in ledger.checkpoints(experiment)
        if point.run in runs and (layout.root / point.path).exists()
    ]
    if not points:
        raise UsageError(
            f"{experiment} has no checkpoint yet, and predict needs one.",
            hint=f"`harness train {experiment}`; its first checkpoint is enough, while it goes on.",
            code="no_checkpoint",
        )
    point = points[-1]
    run = runs[point.run]
    snapshot = (
        code_now(project, approved)
        if code in (None, AS_IT_IS)
        else code_of(project, approved, commit_of(layout.root, str(code)))
    )
    job = _job(project, approved, os.environ)
    asked = Asked(
        code=snapshot,
        checkpoint=layout.root / point.path,
        sha256=point.id,
        seed=run.seed,
        seconds=predict_limit(job.plan, trained_seconds(ledger, run)),
    )
    request = request_of(job, asked, sandbox, libraries=job.libraries.read())
    trial = try_predict(request, sandbox)
    done = {one.seed for one in runs.values() if one.status is RunStatus.COMPLETED}
    return TriedNow(
        trial=trial,
        run=run.id,
        checkpoint=point.id,
        weights=_weights(run.id, point.epoch),
        changed=snapshot.hash != run.code,
        trained=done.issuperset(plan_seeds(approved, record)),
    )


def _weights(run: str, epoch: int | None) -> str:
    of = "" if epoch is None else f" of epoch {epoch}"
    return f"{run}'s checkpoint{of}"


@dataclass(frozen=True, kw_only=True)
class _Told:
    run: Run
    path: Path
    epoch: int | None


class PredictTrial:
    """Of one call of `train`. Its thread reads files and starts predict; all else, ledger and
    events, is the supervisor's."""

    def __init__(self, job: TrainJob, sandbox: Sandbox, *, asked: bool = True) -> None:
        """Without `asked` nothing is tried, nor told: another process tries it."""
        self._train, self._sandbox = job, sandbox
        self._asked = asked
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: _Told | None = None
        self._result: str | None = None
        self._trial: Trial | None = None
        self._lock = threading.Lock()
        self._why_not = self._impossible()

    def take(self, run: Run, rows: Iterable[Row]) -> None:
        """Note the newest checkpoint; with the first one the trial begins."""
        told = [row for row in rows if row.get("event") == "checkpoint"]
        if not told or not self._asked:
            return
        name, epoch = str(told[-1].get("path")), told[-1].get("epoch")
        folder = self._train.project.layout.run(run.experiment, run.id)
        try:
            path = place_of(folder, name)
        except _GONE:
            return
        epoch = epoch if type(epoch) is int else None
        with self._lock:
            self._told = _Told(run=run, path=path, epoch=epoch)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="predict", daemon=True)
            self._thread.start()

    def news(self, run: str, row: int) -> tuple[dict[str, Any], Alarm | None] | None:
        """What came of it, once: an event, and a note for the run that goes on where predict cannot
        be scored. `row`: that run's newest."""
        with self._lock:
            said, trial = self._result, self._trial
            self._result = None
        if said is None:
            return None
        event: dict[str, Any] = {"kind": "predict", "run": run, "text": f"{run}  {said}"}
        if trial is None or not trial.findings:
            return event | {"ok": None if trial is None else True}, None
        note = _note(said, trial, row, self._train.experiment)
        event["text"] = f"{run}  {note.message} {note.tries[-1]}"
        return event | {"ok": False, "alarm": note.plain()}, note

    def close(self) -> None:
        """Training has ended: the evaluation is next, and says it all."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _impossible(self) -> str | None:
        job = self._train
        if self._sandbox.kind is SandboxKind.NONE:
            return "there is no sandbox"
        if beside(job.project.settings) != LOCAL:
            return "the training runs elsewhere"
        table = table_of(job.project, job.approved, "train").path
        with contextlib.suppress(OSError):
            if table.stat().st_size > _MOST_TABLE:
                return f"the training table has more than {_MOST_TABLE >> 20} MB"
        return None

    # The thread's side

    def _work(self) -> None:
        took = time.monotonic() - self._began
        if self._stop.wait(min(max(LEAST_S, TIMES * took), MOST_S)):
            return
        with contextlib.suppress(StoppedError), stopping_at(self._stop):
            _lower_priority()
            said, trial = self._tried()
            with self._lock:
                self._result, self._trial = said, trial

    def _tried(self) -> tuple[str, Trial | None]:
        if self._why_not is not None:
            return _not_tried(self._why_not), None
        try:
            return self._with_a_checkpoint()
        except (HarnessError, OSError) as error:
            return _not_tried(str(error)), None

    def _with_a_checkpoint(self) -> tuple[str, Trial | None]:
        for _ in range(_TRIES):
            with self._lock:
                told = self._told
            assert told is not None  # it began with one
            trial = self._ask(told)
            if trial is not None:
                return self._said(told, trial)
            if self._stop.wait(_PAUSE_S):
                raise StoppedError
        return _not_tried("no checkpoint held still"), None

    def _ask(self, told: _Told) -> Trial | None:
        """None for a checkpoint that is gone again, or was written meanwhile."""
        job = _job(self._train.project, self._train.approved, self._environment())
        try:
            if size_of(told.path) > _MOST_CHECKPOINT:
                raise UsageError(
                    f"the checkpoint has more than {_MOST_CHECKPOINT >> 30} GB",
                    hint="",
                )
            sha256 = hash_path(told.path)
        except OSError:
            return None
        asked = Asked(
            code=self._train.snapshot,
            checkpoint=told.path,
            sha256=sha256,
            seed=told.run.seed,
            # It shares the machine with the training.
            seconds=2 * predict_limit(job.plan, 0.0),
        )
        libraries = job.libraries.read()
        request = request_of(job, asked, self._sandbox, libraries=libraries)
        trial = try_predict(request, self._sandbox)
        moved = any(found.code.startswith("checkpoint_") for found in trial.findings)
        return None if moved else trial

    def _environment(self) -> dict[str, str]:
        hidden = dict.fromkeys(_DEVICES, "") if accelerators() else {}
        return {**self._train.inherited, **hidden}

    def _said(self, told: _Told, trial: Trial) -> tuple[str, Trial | None]:
        weights = _weights(told.run.id, told.epoch)
        if not trial.findings:
            took = f"{trial.seconds:.1f} s"
            return f"predict answers {trial.rows} training rows with {weights}, {took}", trial
        first = trial.findings[0]
        if accelerators() and _OF_DEVICES.search(first.message):
            return _not_tried("it needs a device, and the training has them"), None
        return f"predict does not answer {trial.rows} training rows with {weights}", trial


def _not_tried(why: str) -> str:
    return f"predict was not tried beside the training: {why}"


def _note(said: str, trial: Trial, row: int, experiment: str) -> Alarm:
    first = trial.findings[0]
    way = (
        f"Mend predict while training goes on; `harness evaluate {experiment} --check` tries it"
        " again. Once all seeds are trained,"
        f" `harness evaluate {experiment} --predict-from {AS_IT_IS}` scores the same weights."
    )
    return Alarm(
        code=PREDICT_FAILS,
        severity=Severity.NOTE,
        metric="",
        row=max(1, row),
        place=None,
        message=f"{said}: {_cut(one_line(first.message))}",
        evidence=(),
        threshold="",
        limit=float(MOST_ROWS),
        tries=(first.hint, way),
    )


def _cut(text: str) -> str:
    """A traceback says most at its end."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_BEGIN]} ... {text[_BEGIN - _LONGEST :]}"


def _lower_priority() -> None:
    """Of this thread and of what it starts: Linux has a priority for each thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
