"""A project with small trainers and a clock that the test moves."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.domain.grade import PERSON
from harness.domain.statuses import SandboxKind
from harness.ledger.project import Project, open_project
from harness.posttrain.program import TrainingProgram
from harness.posttrain.training_judgement import ProgramReport
from harness.sandbox.select import choose
from tests.blobs import own_environment
from tests.posttrain import programs


class SteppingClock(SystemClock):
    """The system's, and as many seconds later as the test says."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return programs.make_root(tmp_path / "tuning")


@pytest.fixture
def project(root: Path, tmp_path: Path, clock: SteppingClock) -> Iterator[Project]:
    with open_project(root, own_environment(tmp_path), clock=clock, caller=PERSON) as opened:
        yield opened


@pytest.fixture
def program(project: Project) -> TrainingProgram:
    inherited = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    return TrainingProgram(
        project, sandbox=choose(SandboxKind.NONE, required=False), inherited=inherited, grace_s=0.5
    )


@pytest.fixture
def execute(program: TrainingProgram, root: Path) -> Callable[..., ProgramReport]:
    """Run the trainer with `body` under a specification of its own."""

    def go(
        body: str = programs.GOOD, *, head: str = programs.TRAINER, **more: object
    ) -> ProgramReport:
        programs.write_trainer(root, body, head=head)
        return program.execute(program.create(programs.request(**more), by="me").experiment)

    return go
