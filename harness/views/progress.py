"""How an experiment's runs go, as plain data: where each is now.

Everything here is `logged`: what the training code said of itself.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from harness.artifacts.training_status import read_status
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, Evidence, RunStatus
from harness.driver.supervisors import is_going, is_held, is_supervised
from harness.errors import NotFoundError, UsageError
from harness.ledger.project import Project
from harness.projections.text import one_line
from harness.views.snapshot import active

LOOKED_AT = 20
"""Experiments, newest first, among which one with a run is looked for."""
MOST_METRICS = 6
NAME_LENGTH = 40


def watched(project: Project, experiment: str | None) -> str:
    """The experiment to follow: the one that is named, else the active one, else the newest with
    any run: one whose runs all failed is what a person wants to see.

    Raises NotFoundError for an unknown id, and when nothing runs or has run.
    """
    if experiment is not None:
        return project.ledger.experiment(experiment).id
    found = active(project) or _newest_with_runs(project)
    if found is None:
        raise NotFoundError(
            "No run of this project was started yet.",
            hint=(
                "Start one with `harness train EXP`; `harness experiment list` shows the"
                " experiments."
            ),
            code="nothing_runs",
        )
    return found


def _newest_with_runs(project: Project) -> str | None:
    newest_first = reversed(project.ledger.experiments(newest=LOOKED_AT))
    return next((item.id for item in newest_first if project.ledger.runs(item.id)), None)


def is_watched_over(project: Project, experiment: str) -> bool:
    """Whether somebody still trains the experiment, also between two of its runs."""
    return is_going(project, experiment) or is_held(project, experiment)


def progress(project: Project, experiment: str) -> dict[str, Any]:
    """{experiment, state, seeds_wanted, evidence, runs[]}; `state` is running, ended or not
    started."""
    runs = project.ledger.runs(experiment)
    going = is_watched_over(project, experiment)
    plan = project.ledger.plan()
    return {
        "experiment": experiment,
        "state": "running" if going else "ended" if runs else "not started",
        "seeds_wanted": None if plan is None else project.objective().seeds,
        "evidence": Evidence.LOGGED.value,
        "runs": [_run(project, run) for run in runs],
    }


def all_completed(document: dict[str, Any]) -> bool:
    """Whether the newest run of every seed that was started completed."""
    newest = {run["seed"]: run["status"] for run in document["runs"]}
    return bool(newest) and set(newest.values()) == {RunStatus.COMPLETED}


def _run(project: Project, run: Run) -> dict[str, Any]:
    """`alive`: somebody watches it; an open run without is one whose supervisor died."""
    status = None
    with contextlib.suppress(
        UsageError
    ):  # of a damaged file nothing is known; the ledger's part stands
        status = read_status(project.layout.run(run.experiment, run.id, "status"))
    return {
        "run": run.id,
        "seed": run.seed,
        "status": run.status,
        "alive": run.status not in FINAL_RUNS and is_supervised(project, run),
        "epoch": status.epoch if status else None,
        "total_epochs": status.total_epochs if status else None,
        "metrics": printable(status.metrics) if status else {},
        "seconds": run.seconds,
        "reason": run.reason,
    }


def printable(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Numbers under printable names: the file is written by the code that is watched."""
    found = {}
    for name, value in metrics.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[one_line(str(name), NAME_LENGTH)] = float(value)
    return dict(list(found.items())[:MOST_METRICS])
