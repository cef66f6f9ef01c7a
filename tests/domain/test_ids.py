"""An id that no experiment has is answered in the same words wherever it is asked for."""

from pathlib import Path

import pytest

from harness.domain.ids import no_experiment
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
