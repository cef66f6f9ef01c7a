"""By which plan an experiment trains, when the project has more than one."""

from pathlib import Path

import pytest
from runs_support import PLAN, Trainer

from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.plans.approval import approve_plan
from harness.plans.approved import plan_of, seeds_for


def approve_another(project: Project, root: Path, name: str) -> None:
    path = root / name
    path.write_text(PLAN.replace("name: blobs", "name: circles").replace("seeds: 2", "seeds: 1"))
    approve_plan(project, path, by="tester")


def test_an_experiment_trains_by_its_own_plan_after_another_one_was_approved(
    project: Project, root: Path, run_training: Trainer
) -> None:
    """By that plan it is evaluated and judged, so its seeds, budget and data count."""
    approve_another(project, root, "circles.md")
    own = plan_of(project, project.ledger.experiment("exp-0001"))
    assert (project.plan().name, own.name) == ("circles", "blobs")
    report = run_training()
    assert [run.seed for run in report.runs] == seeds_for(own.basis, 2)
    assert report.ok


def test_an_experiment_whose_plan_was_replaced_in_its_file_is_refused(
    project: Project, root: Path, run_training: Trainer
) -> None:
    approve_another(project, root, "plan.md")
    with pytest.raises(RefusedError, match=r"The plan plan\.md has SHA-256") as raised:
        run_training()
    assert raised.value.code == "plan_changed"
    assert project.ledger.runs("exp-0001") == []
