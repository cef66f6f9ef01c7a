"""The same training again is told by start_run before anything is started; both ways on are
decisions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tools import call

from harness.contract.roles import ROLE_BY_NAME
from harness.domain.statuses import DecisionKind, SandboxKind
from harness.driver.tool_context import ToolContext
from harness.driver.tools import start_run
from harness.runs.before_start import would_repeat
from tests.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World.make(tmp_path)
    # As World registers its runs.
    monkeypatch.setattr("harness.runs.before_start.data_hashes", lambda _plan: {})
    made.train(made.open("A cut at 0").id)
    made.open_another("exp-0001")
    yield made
    made.project.close()


def decisions(world: World) -> list[tuple[str, str]]:
    made = world.project.ledger.decisions()
    return [(one.choice, one.reason) for one in made if one.kind is DecisionKind.DEAD_END]


def test_the_same_training_is_told_and_not_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    async def start(*_arguments: object) -> None:
        started.append(1)

    monkeypatch.setattr(start_run, "_start", start)
    context = ToolContext(
        world.project,
        session="s-1",
        role=ROLE_BY_NAME["model-builder"],
        sandbox=SandboxKind.NONE,
        experiment="exp-0002",
    )
    for _ in range(2):
        said, failed = call(context, "start_run")
        assert failed
        assert said["error"]["code"] == "configuration_tried_before"
        assert "`again`" in said["error"]["hint"]
    assert started == []
    ((choice, reason),) = decisions(world)
    assert choice == "Not started: it was told first."
    assert "exp-0001 trained the same code" in reason

    _, failed = call(context, "start_run", again="Its data was loaded in another order.")
    assert not failed
    assert started == [1]
    assert decisions(world)[1:] == [
        ("Train it all the same.", "Its data was loaded in another order.")
    ]


def test_another_value_another_command_and_seeds_that_go_on_are_no_repetition(
    world: World,
) -> None:
    project = world.project
    assert would_repeat(project, "exp-0002", None)
    assert would_repeat(project, "exp-0002", ["python", "train.py", "--fast"]) == []
    world.path("exp-0002", "config").write_text("cut: 0.1\n")
    assert would_repeat(project, "exp-0002", None) == []
    world.path("exp-0002", "config").write_text("cut: 0.0\n")
    world.train("exp-0002", (0.02,))
    assert would_repeat(project, "exp-0002", None) == []
