"""An id that no experiment has is answered in the same words wherever it is asked for."""

from pathlib import Path

import pytest

from harness.domain.ids import is_experiment_id, names_experiment, no_experiment
from harness.errors import NotFoundError
from tests.world import World


def test_one_text_for_a_bad_id(tmp_path: Path) -> None:
    project = World.make(tmp_path).project
    for name in ("exp-0009", "exp-1", "nope"):
        with pytest.raises(NotFoundError) as error:
            project.ledger.experiment(name)
        assert (error.value.message, error.value.hint) == (
            no_experiment(name).message,
            no_experiment(name).hint,
        )
    with pytest.raises(NotFoundError) as error:
        project.layout.experiment("nope")
    assert error.value.message == no_experiment("nope").message
    project.close()


@pytest.mark.parametrize(
    ("text", "exact", "meant"),
    [
        ("exp-0001", True, True),
        ("exp-12345", True, True),
        ("exp-00001", False, True),
        ("exp-1", False, True),
        ("exp-٠٠٠١", False, False),
        ("exp-0001 ", False, False),
        ("exp-", False, False),
        ("1", False, False),
    ],
)
def test_one_form_of_an_id_and_one_of_what_means_an_experiment(
    text: str, exact: bool, meant: bool
) -> None:
    assert (is_experiment_id(text), names_experiment(text)) == (exact, meant)
