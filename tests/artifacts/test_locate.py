"""Where things are, and the conformance of "which experiment is active"."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts.locate import Layout, active_experiment
from harness.domain.records import Experiment, Run
from harness.domain.statuses import ExperimentStatus, RunStatus
from harness.errors import NotFoundError
from harness.settings import Settings


@pytest.fixture
def layout() -> Layout:
    return Layout(
        Settings(
            root=Path("/p/a b"),
            state=Path("/s/x"),
            project_id="x",
            interpreter=None,
            memory_dir="notes/m",
            readable=(),
        )
    )


def test_paths_follow_the_contract_and_the_settings(layout: Layout) -> None:
    root = Path("/p/a b")
    assert layout.project("plan") == root / "plan.md"
    assert layout.project("memory") == root / "notes/m"
    assert layout.experiment("exp-0001") == root / ".harness/experiments/exp-0001"
    assert (
        layout.experiment("exp-12345", "result")
        == root / ".harness/experiments/exp-12345/result.md"
    )
    assert (
        layout.run("exp-0001", "run-02", "metrics")
        == root / ".harness/experiments/exp-0001/runs/run-02/metrics.jsonl"
    )
    assert layout.checklist_page(1, 1000).name == "CHECKLIST-0001-1000.md"
    assert {layout.decision_log.parent, layout.state_md.parent, layout.briefing.parent} == {
        root / "notes/m"
    }
    assert layout.facts_dir == root / "notes/m/facts"
    assert layout.relative(layout.experiment("exp-0001")) == ".harness/experiments/exp-0001"


def test_state_lies_outside_the_project(layout: Layout) -> None:
    for path in (
        layout.ledger_db,
        layout.anchors,
        layout.vault,
        layout.objects,
        layout.held_out,
        layout.sessions,
    ):
        assert path.is_relative_to("/s/x")
        with pytest.raises(ValueError, match="is not in the subpath"):
            layout.relative(path)


@pytest.mark.parametrize(
    "name", ["exp-1", "exp-00001", "../exp-0001", "exp-0001/", "", "EXP-0001", "exp-0001\n"]
)
def test_what_is_no_id_is_no_path(layout: Layout, name: str) -> None:
    with pytest.raises(NotFoundError):
        layout.experiment(name)
    with pytest.raises(NotFoundError):
        layout.run("exp-0001", name)


def test_an_artifact_of_another_scope_is_a_programming_error(layout: Layout) -> None:
    with pytest.raises(KeyError, match="belongs to a run"):
        layout.experiment("exp-0001", "metrics")


def pair(number: int, *statuses: RunStatus) -> tuple[Experiment, list[Run]]:
    name = f"exp-{number:04d}"
    experiment = Experiment(
        id=name,
        number=number,
        status=ExperimentStatus.RUNNING,
        hypothesis="h",
        parent=None,
        plan="p",
        plan_version=1,
        by="b",
        session=None,
        opened_at="",
    )
    runs = [
        Run(
            id=f"run-{index + 1:02d}",
            experiment=name,
            seed=0,
            attempt=1,
            status=status,
            argv=(),
            code="",
            data={},
            environment={},
            sandbox="none",
            token="",
            session=None,
            registered_at="",
        )
        for index, status in enumerate(statuses)
    ]
    return experiment, runs


def everything(_: Run) -> bool:
    return True


def nothing(_: Run) -> bool:
    return False


def test_a_running_experiment_is_preferred_to_newer_completed_ones() -> None:
    pairs = [pair(1, RunStatus.RUNNING), pair(2, RunStatus.COMPLETED), pair(3, RunStatus.FAILED)]
    assert active_experiment(pairs, everything) == "exp-0001"


def test_of_running_ones_the_newest_is_it_in_any_order() -> None:
    pairs = [
        pair(9, RunStatus.RUNNING),
        pair(10, RunStatus.COMPLETED, RunStatus.RUNNING),
        pair(2, RunStatus.RUNNING),
    ]
    assert active_experiment(pairs, everything) == "exp-0010"


def test_a_run_whose_process_is_gone_does_not_run() -> None:
    pairs = [pair(1, RunStatus.COMPLETED), pair(2, RunStatus.RUNNING)]
    assert active_experiment(pairs, nothing) == "exp-0001"
    assert active_experiment(pairs, lambda run: run.experiment == "exp-0002") == "exp-0002"


def test_it_falls_back_to_the_newest_completed() -> None:
    pairs = [
        pair(1, RunStatus.COMPLETED),
        pair(2, RunStatus.FAILED, RunStatus.COMPLETED),
        pair(3, RunStatus.PENDING),
    ]
    assert active_experiment(pairs, everything) == "exp-0002"


@pytest.mark.parametrize(
    "status", [RunStatus.FAILED, RunStatus.KILLED, RunStatus.LOST, RunStatus.CANCELLED]
)
def test_failed_and_aborted_ones_are_skipped(status: RunStatus) -> None:
    assert (
        active_experiment([pair(1, RunStatus.COMPLETED), pair(2, status)], everything)
        == "exp-0001"
    )
    assert active_experiment([pair(2, status), pair(3)], everything) is None


def test_a_discarded_one_is_not_what_goes_on() -> None:
    experiment, runs = pair(2, RunStatus.COMPLETED)
    discarded = (replace(experiment, status=ExperimentStatus.DISCARDED), runs)
    assert active_experiment([pair(1, RunStatus.COMPLETED), discarded], everything) == "exp-0001"
    assert active_experiment([discarded], everything) is None


def test_without_experiments_there_is_none() -> None:
    assert active_experiment([], everything) is None
