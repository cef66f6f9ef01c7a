"""Where an experiment's runs are, as plain data."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import NotFoundError
from harness.ledger.facts import RunEnded, RunStarted, local_job
from harness.ledger.project import Project
from harness.process import identity
from harness.runs.lock import supervising
from harness.views.follow_experiment import all_completed, is_watched_over, progress, watched
from tests.world import World


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return World.make(tmp_path).project


def run_of(project: Project, experiment: str, *, seed: int = 7, alive: bool = True) -> Run:
    run = project.ledger.register_run(
        experiment=experiment,
        seed=seed,
        argv=["python", "train.py"],
        code="0" * 64,
        data={},
        environment={},
        sandbox="none",
        token="0" * 64,
    )
    who = identity() if alive else {"pid": 1, "boot": "an earlier one", "started": 1.0}
    project.ledger.append(
        RunStarted(experiment=experiment, run=run.id, supervisor=who, job=local_job(who))
    )
    project.layout.run(experiment, run.id).mkdir(parents=True, exist_ok=True)
    return project.ledger.run(experiment, run.id)


def ended(project: Project, run: Run, status: RunStatus = RunStatus.COMPLETED) -> None:
    fields: dict[str, Any] = {"exit_code": 0, "reason": "it ended", "seconds": 3.0, "rows": 5}
    project.ledger.append(
        RunEnded(experiment=run.experiment, run=run.id, status=status.value, **fields)
    )


def log(project: Project, run: Run, *rows: dict[str, Any]) -> None:
    with project.layout.run(run.experiment, run.id, "metrics").open("a") as stream:
        for row in rows:
            stream.write(json.dumps({"run": f"{run.experiment}/{run.id}", **row}) + "\n")


def row(epoch: Any, second: int, **metrics: Any) -> dict[str, Any]:
    return {
        "t": f"2026-01-01T00:00:{second:02d}.500Z",
        "event": "epoch",
        "epoch": epoch,
        "metrics": metrics,
    }


START = {"t": "2026-01-01T00:00:00.000Z", "event": "start", "token": "t"}


def test_progress_says_where_each_run_is(project: Project) -> None:
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    assert progress(project, experiment)["state"] == "not started"
    first = run_of(project, experiment)
    status = {
        "run": f"{experiment}/run-01",
        "status": "running",
        "epoch": 3,
        "total_epochs": 20,
        "metrics": {"a": 1},
    }
    project.layout.run(experiment, first.id, "status").write_text(json.dumps(status))
    document = progress(project, experiment)
    assert (document["state"], document["seeds_wanted"], document["evidence"]) == (
        "running",
        3,
        "logged",
    )
    (shown,) = document["runs"]
    assert (shown["alive"], shown["epoch"], shown["total_epochs"], shown["metrics"]) == (
        True,
        3,
        20,
        {"a": 1.0},
    )
    ended(project, first)
    project.layout.run(experiment, first.id, "status").write_text("{")
    document = progress(project, experiment)
    assert document["state"] == "ended"
    assert (document["runs"][0]["epoch"], document["runs"][0]["seconds"]) == (None, 3.0)
    with supervising(project.layout, experiment):
        assert is_watched_over(project, experiment), "its supervisor lives, between two runs"
    assert not is_watched_over(project, experiment)


def test_a_run_whose_supervisor_died_is_no_reason_to_wait(project: Project) -> None:
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    run_of(project, experiment, alive=False)
    document = progress(project, experiment)
    assert (document["state"], document["runs"][0]["alive"]) == ("ended", False)
    assert not all_completed(document)


def test_the_newest_run_of_each_seed_says_whether_all_completed(project: Project) -> None:
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    ended(project, run_of(project, experiment), RunStatus.FAILED)
    assert not all_completed(progress(project, experiment))
    ended(project, run_of(project, experiment))
    assert all_completed(progress(project, experiment))
    assert not all_completed({"runs": []})


def test_what_is_watched_is_what_is_named_else_what_is_active(project: Project) -> None:
    with pytest.raises(NotFoundError) as nothing:
        watched(project, None)
    assert nothing.value.code == "nothing_runs"
    experiment = project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id
    assert watched(project, experiment) == experiment
    with pytest.raises(NotFoundError):
        watched(project, None)
    run_of(project, experiment)
    assert watched(project, None) == experiment
    with pytest.raises(NotFoundError, match="exp-0009"):
        watched(project, "exp-0009")


def test_without_an_active_one_the_newest_that_tried_is_watched(project: Project) -> None:
    first, second = (
        project.ledger.open_experiment(hypothesis="h", parent=None, by="me").id for _ in range(2)
    )
    ended(project, run_of(project, first), RunStatus.FAILED)
    assert watched(project, None) == first
    ended(project, run_of(project, second), RunStatus.FAILED)
    assert watched(project, None) == second
