"""Predict runs by the code that is registered with a run: whoever mends a file afterwards is told
so, and how to have the mended code judged with the same weights."""

import shlex
from collections.abc import Iterable, Sequence

from harness.artifacts.code_snapshot import load_snapshot, on_disk
from harness.artifacts.objects import ObjectDamagedError
from harness.artifacts.training_code import run_by
from harness.domain.records import Run
from harness.domain.statuses import CLOSED_EXPERIMENTS, RunStatus
from harness.evaluation.outcome import OF_PREDICT
from harness.evaluation.scores import counted_runs
from harness.files import sha256_bytes
from harness.ledger.project import Project
from harness.plans.approved import plan_of

_MOST_NAMED = 3
_DIGITS = 9


def changed_predict(project: Project, experiment: str) -> list[str]:
    """The files that predict runs, as far as their text says, which are no longer as they were
    registered with the experiment's runs."""
    record = project.ledger.experiment(experiment)
    runs = counted_runs(project.ledger.runs(experiment))
    if not runs or record.status in CLOSED_EXPERIMENTS:
        return []
    words = shlex.split(plan_of(project, record).content["oracle"]["predict"])
    layout = project.layout
    try:
        snapshot = load_snapshot(layout.objects, runs[-1].code)
        names = run_by(snapshot, words, layout.objects)
    except ObjectDamagedError:
        return []  # the evaluation says it
    changed = []
    for name in sorted(names):
        path = layout.root / on_disk(name)
        now = sha256_bytes(path.read_bytes()) if path.is_file() else None
        if now != snapshot.files[name]:
            changed.append(name)
    return changed


def way_with_predict(project: Project, experiment: str, codes: Iterable[str]) -> str | None:
    """What to do when predict failed, or was changed since; None when neither is so. `codes`: of
    the evaluation's findings."""
    changed = changed_predict(project, experiment)
    failed = any(code.startswith(OF_PREDICT) for code in codes)
    if not changed and not failed:
        return None
    named = ", ".join(changed[:_MOST_NAMED]) + (", ..." if len(changed) > _MOST_NAMED else "")
    since = f"{named} has changed since, and was not used. " if changed else ""
    if not all(
        run.status is RunStatus.COMPLETED for run in counted_runs(project.ledger.runs(experiment))
    ):
        way = f"Train again: `harness train {experiment}`."
    else:
        way = (
            f"{'When predict is mended' if failed and not changed else 'For the code as it is now'}"
            f", with the same weights: `harness evaluate {experiment} --predict-from .`."
        )
    return f"predict runs by the code that is registered with the run. {since}{way}"


def whose(project: Project, experiment: str) -> str | None:
    """Of the experiment's newest run that counts, as `lineage`."""
    ledger = project.ledger
    runs = counted_runs(ledger.runs(experiment))
    if not runs:
        return None
    names = runs[-1].taken_from
    return lineage(runs[-1], [ledger.run(*name.split("/")) for name in names])


def lineage(run: Run, trained: Sequence[Run]) -> str | None:
    """Whose predict and whose training make a run's score; None where one code is both. `trained`:
    the runs whose weights it took."""
    if not trained:
        return None
    codes = ", ".join(dict.fromkeys(map(_code, trained)))
    return f"predict of {_code(run)}, training of {codes}"


def _code(run: Run) -> str:
    """Of a commit that predict was taken from, the commit; else its hash, and what was checked out
    then."""
    if commit := run.handle.get("commit"):
        return f"commit {commit[:_DIGITS]}"
    head = run.environment.get("commit")
    at = f" at commit {head[:_DIGITS]}" if head else ""
    return f"code {run.code[:_DIGITS]}{at}"
