"""A clone's scenario under a plan of its own name, seen from elsewhere and from that clone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ledger.exchange import export_facts, import_facts
from harness.ledger.facts import SessionEnded, SessionStarted
from harness.ledger.facts.plan import REHEARSAL
from harness.ledger.spending import spent
from harness.plans.approval import approve_plan
from harness.plans.rehearsal import rehearse
from tests.ledger.ledger_samples import open_ledger, plan
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path / "ours")
    yield made
    made.project.close()


def rehearsed_elsewhere(world: World, place: Path) -> None:
    """Its facts came with git."""
    clock, ledger = world.project.clock, world.project.ledger
    clock.sleep(1)
    with open_ledger(place, clock=clock, writer="bob") as theirs:
        theirs.append(plan(name=f"signs{REHEARSAL}bob"))
        export_facts(theirs, place / "facts")
    assert import_facts(ledger, place / "facts") == 1
    clock.sleep(1)


def paid_session(world: World, usd: float) -> None:
    """Of another machine: the spending log here does not know it."""
    ledger = world.project.ledger
    began = SessionStarted(
        session="s-1",
        role="model-builder",
        experiment=None,
        step="build",
        sandbox="bwrap",
        driver={"pid": 1, "boot": "b", "started": 1.5},
    )
    ledger.append(began)
    ledger.append(
        SessionEnded(session="s-1", outcome="finished", detail="", turns=1, cost_usd=usd)
    )


def test_spending_after_another_clones_rehearsal_counts_for_the_plan(
    world: World, tmp_path: Path
) -> None:
    rehearsed_elsewhere(world, tmp_path / "theirs")
    paid_session(world, 2.5)
    project = world.project
    assert spent(project.ledger, project.layout, "signs").usd == 2.5


def test_an_experiment_is_opened_under_the_plan_in_force_here(
    world: World, tmp_path: Path
) -> None:
    rehearsed_elsewhere(world, tmp_path / "theirs")
    assert world.project.plan().name == "signs"
    assert world.open().plan == "signs"


def test_a_persons_approval_after_a_rehearsal_is_of_the_plan_itself(world: World) -> None:
    project = world.project
    assert REHEARSAL in rehearse(project).name
    approved = approve_plan(project, world.root / "plan.md", by="a person")
    assert (approved.name, approved.version) == ("signs", 2)
    assert project.plan() == approved
    assert approved.comparison == 1, "its comparison goes on"
