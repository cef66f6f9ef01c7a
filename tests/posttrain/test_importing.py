"""What is brought in from elsewhere is plain files, or nothing is recorded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.ledger.project import Project
from harness.posttrain.program import TrainingProgram
from tests.posttrain import programs


@pytest.mark.parametrize(
    "plant",
    [lambda path: path.symlink_to("/etc"), os.mkfifo, lambda path: path.symlink_to("nowhere")],
)
def test_a_folder_with_something_else_is_refused_before_a_run(
    project: Project, program: TrainingProgram, tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    made = program.create(programs.request(), by="me")
    (tmp_path / "out" / "adapter").mkdir(parents=True)
    plant(tmp_path / "out" / "adapter" / "x")
    with pytest.raises(UsageError, match="adapter/x"):
        program.process(made.experiment, tmp_path / "out")
    assert project.ledger.runs(made.experiment) == []
