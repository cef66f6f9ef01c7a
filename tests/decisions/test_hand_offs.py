"""A hand-off is about the experiment that is not decided, unless it says another."""

from pathlib import Path

import pytest

from harness.decisions.experiments import open_experiment, undecided_experiment, write_hand_off
from harness.domain.statuses import ExperimentStatus
from harness.errors import NotFoundError, UsageError
from harness.ledger.project import Project
from harness.plans.approval import approve_plan


def test_a_hand_off_finds_its_experiment(project: Project, root: Path) -> None:
    assert (
        write_hand_off(project, text=" before any plan \n", by="human", session=None).text
        == "before any plan"
    )
    approve_plan(project, root / "plan.md", by="ada")
    first = open_experiment(project, hypothesis="a", rationale="r", parent=None, by="agent").id
    assert write_hand_off(project, text="x", by="agent", session="5b0c").experiment == first
    project.ledger.move_experiment(first, ExperimentStatus.DISCARDED, "a test")
    assert undecided_experiment(project) is None
    assert write_hand_off(project, text="x", by="agent", session="5b0c").experiment is None
    assert (
        write_hand_off(project, text="x", by="agent", session="5b0c", experiment=first).experiment
        == first
    )
    written = project.ledger.hand_offs()
    assert [item.session for item in written] == [None, "5b0c", "5b0c", "5b0c"]
    with pytest.raises(NotFoundError, match="exp-0009"):
        write_hand_off(project, text="x", by="agent", session=None, experiment="exp-0009")
    with pytest.raises(UsageError, match="hand-off is ''"):
        write_hand_off(project, text="  \n", by="agent", session=None)
    assert project.ledger.hand_offs() == written
