"""`harness gc` beside training programs: a model's weights stay as long as somebody may ask for
them."""

import pytest

from harness.domain.models import ModelState
from harness.domain.statuses import ExperimentStatus
from harness.ledger.project import Project
from harness.posttrain.promotion import promote, reject_model
from harness.runs.checkpoint_removal import remove_unneeded
from tests.conformance.imported import Imports
from tests.posttrain import programs


def removed(project: Project, model: str) -> bool:
    """Whether `gc` takes the model's weights; whatever it says, the disk agrees."""
    (item,) = [item for item in project.ledger.checkpoints("exp-0001") if item.id == model]
    outcome = remove_unneeded(project, ["exp-0001"], by="ada", dry_run=False)
    gone = [found["path"] for found in outcome.removed] == [item.path]
    assert gone is not (project.layout.root / item.path).exists()
    assert gone or [found["why"] for found in outcome.kept if found["path"] == item.path]
    return gone


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_model_goes_only_when_it_is_rejected_discarded_and_nothing_was_measured_on_it(
    execute, project, program, evaluated, tmp_path
) -> None:
    model = execute().model
    assert not removed(project, model)
    if evaluated:
        programs.approve(project)
        imports = Imports(project, tmp_path)
        for one in (model, imports.model(2), imports.model(3)):
            program.attach_evaluation(one)
        assert (
            promote(project, model, by="human:ada", reason="better").after is ModelState.CANDIDATE
        )
        assert not removed(project, model), "a promotion rests on it"
    reject_model(project, model, by="human:ada", reason="worse")
    assert not removed(project, model), "it is the final one of a run that nobody discarded"
    project.ledger.move_experiment("exp-0001", ExperimentStatus.DISCARDED, "worse")
    assert removed(project, model) is not evaluated
    assert project.ledger.model(model).state is ModelState.REJECTED, "what is recorded of it stays"
    assert program.lineage(model)
