"""Two experiments that were trained with different libraries are compared all the same, and it is
said."""

from pathlib import Path

import pytest

from harness.artifacts.objects import store_bytes
from harness.domain.statuses import Split
from harness.evaluation.comparison import compare_experiments
from harness.evaluation.experiment import evaluate_experiment
from harness.evaluation.outcome import explain
from harness.evaluation.trained_libraries import UNKNOWN
from harness.files import canonical_json
from harness.gates.check import require_validation_passed
from harness.views.experiments import details
from tests.world import GOOD, InProcess, World

HERE = {"python": "3.11.2", "numpy": "2.4.0", "torch": "2.13.0"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    trained(made, made.open().id, HERE)
    return made


def trained(world: World, experiment: str, libraries: dict[str, str] | None) -> str | None:
    """Returns what the runs say of their libraries."""
    layout = world.project.layout
    kept = libraries and store_bytes(canonical_json(libraries), layout.objects)
    world.described = {"libraries": kept} if kept else {}
    world.train(experiment, GOOD)
    evaluate_experiment(
        world.project,
        experiment,
        Split.VALIDATION,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )
    return kept


def compared(world: World, libraries: dict[str, str] | None) -> tuple[list[str], str]:
    another = world.open_another("exp-0001")
    kept = trained(world, another, libraries)
    project = world.project
    shown = details(project, project.ledger.experiment(another))["runs"]
    assert {run["libraries"] for run in shown} == {kept and kept[:12]}
    found = compare_experiments(project, project.plan(), another, "exp-0001")
    assert found is not None
    return found.get("libraries", []), explain(found)


def test_what_differs_is_named_and_decides_nothing(world: World) -> None:
    names, words = compared(world, {**HERE, "torch": "2.14.0", "einops": "0.8"})
    assert names == ["einops", "torch"]
    assert words.endswith("Note: the two were trained with different libraries (einops, torch).")
    assert "within the noise" in words


@pytest.mark.parametrize("libraries", [HERE, None], ids=["the same", "of an older harness"])
def test_where_nothing_is_known_to_differ_nothing_is_said(
    world: World, libraries: dict[str, str] | None
) -> None:
    names, words = compared(world, libraries)
    assert (names, "libraries" in words) == ([], False)


def test_in_a_clone_that_they_differ_is_all_that_is_known(world: World) -> None:
    for kept in world.project.layout.objects.rglob("*"):
        if kept.is_file() and kept.read_bytes() == canonical_json(HERE):
            kept.unlink()
    assert compared(world, {**HERE, "torch": "2.14.0"})[0] == [UNKNOWN]
