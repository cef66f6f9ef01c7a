"""When the bits of a plan are few answers are coarse and say so; when they are spent every command
names one way out, and it leads out."""

import re
from pathlib import Path

import pytest

from harness.decisions.person import reject
from tests.cli.journey import Answer, Journey
from tests.gates.test_sealed import HIDDEN, evaluate, hidden_world, scored
from tests.world import GOOD, POOR, World

FEW = HIDDEN.replace("queries: 3", "queries: 3\n  bits: 7")
WAY = "A person sets oracle.bits in plan.md above 7 and runs `harness plan approve plan.md`"
BETTER = (0.0, 0.001, 0.002)


class Typed:
    """Commands on the project of a World, as a person types them."""

    def __init__(self, world: World, folder: Path) -> None:
        self._journey = Journey(world.root, folder / "home")
        self._state = str(folder / "state")

    def __call__(self, *words: str) -> Answer:
        return self._journey.harness(*words, XDG_STATE_HOME=self._state)


@pytest.fixture
def spent(tmp_path: Path) -> tuple[World, Typed]:
    """exp-0001 was told coarsely, exp-0002 is its child and can be told nothing."""
    world = hidden_world(tmp_path, FEW)
    (tmp_path / "home").mkdir(exist_ok=True)
    first = scored(world, GOOD)
    world.result(first)
    return world, Typed(world, tmp_path)


def test_a_coarse_answer_says_so_and_how_to_get_more(spent: tuple[World, Typed]) -> None:
    world, typed = spent
    told = typed("evaluate", "exp-0001")
    assert told.exit_code == 0, told.stdout + told.stderr
    assert "at least 0.82 in steps of 0.02 (coarse: few bits are left)" in told.stdout
    assert "The answer is coarse" in told.stdout
    assert "The tier may be a higher one." in told.stdout
    assert WAY in told.stdout
    gate = typed("gate", "check", "exp-0001")
    assert "validation gate: PASS (must or more)" in gate.stdout
    row = typed("experiment", "list")
    assert "judged ≥ 0.82" in " ".join(row.stdout.split())
    assert "(coarse: few bits are left)" in " ".join(row.stdout.split())
    assert "(coarse: few bits are left)" in (
        world.root / ".harness/experiments/CHECKLIST.md"
    ).read_text("utf-8")


def test_spent_bits_have_one_way_out_and_it_leads_out(spent: tuple[World, Typed]) -> None:
    world, typed = spent
    reject(world.project, "exp-0001", by="a person", reason="The next one.")
    between = world.open("A poor cut", "exp-0001").id
    world.train(between, POOR)
    world.result(between)
    evaluate(world, between)  # it takes what is left
    reject(world.project, between, by="a person", reason="The next one.")
    child = world.open("Another cut", "exp-0001").id
    world.train(child, BETTER)
    world.result(child)
    refused = typed("evaluate", child, "--json")
    assert refused.document["error"]["code"] == "bits_spent"
    assert WAY in refused.document["error"]["hint"]
    gate = typed("gate", "check", child, "--json").document
    (found,) = [one for one in gate["findings"] if one["code"] == "bits_spent"]
    assert (gate["verdict"], gate["findings"]) == ("INCONCLUSIVE", [found])
    assert WAY in found["hint"]
    assert WAY in typed("status").stdout
    plan = world.root / "plan.md"
    plan.write_text(plan.read_text("utf-8").replace("bits: 7", "bits: 60"), "utf-8")
    line = re.search(r"--changes (\w+)", typed("plan", "approve").stderr)
    assert line is not None
    approved = typed("plan", "approve", "--changes", line[1])
    assert approved.exit_code == 0, approved.stdout + approved.stderr
    for experiment in ("exp-0001", child):
        again = typed("evaluate", experiment)
        assert again.exit_code == 0, again.stdout + again.stderr
        assert "coarse" not in again.stdout
    judged = typed("gate", "check", child)
    assert "compared with exp-0001: " in judged.stdout
    assert "bits_spent" not in judged.stdout
    assert "few are left" not in typed("status").stdout
