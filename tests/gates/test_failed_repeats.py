"""A predict that failed a repeat is not asked until it passes: the failure stands."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.domain.sandbox import Completed
from harness.domain.statuses import GateName, Split, Verdict
from harness.domain.variables import PREDICTIONS
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.ledger.facts import Evaluation
from harness.plans.approval import approve_plan
from tests.world import GOOD, InProcess, World


class Lucky(InProcess):
    """Answers by its own draw, until the call in which it happens to repeat itself."""

    def __init__(self, bad_calls: int) -> None:
        self.left, self.calls = bad_calls, 0

    def run(
        self, argv: Sequence[str], *, environment: Mapping[str, str], **more: Any
    ) -> Completed:
        done = super().run(argv, environment=environment, **more)
        self.calls += 1
        if self.left:
            self.left -= 1
            path = Path(environment[PREDICTIONS])
            swapped = {"up": "down", "down": "up"}
            lines = path.read_text().splitlines()
            rows = [line.split(",") for line in lines[1:]]
            first = rows if self.left % 2 else [[name, swapped[said]] for name, said in rows]
            path.write_text("\n".join([lines[0], *(",".join(row) for row in first), ""]))
        return done


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def evaluated(world: World, experiment: str, sandbox: InProcess) -> list[Evaluation]:
    return evaluate_experiment(
        world.project,
        experiment,
        Split.VALIDATION,
        sandbox,
        environment={},
        admit=require_validation_passed,
    )


def codes(made: Sequence[Evaluation]) -> list[list[str]]:
    return [[finding.code for finding in one.findings] for one in made]


FAILED = [["predictions_not_reproducible"]]


def test_evaluate_asked_again_and_again_does_not_ask_predict_again(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, GOOD[:1])
    sandbox = Lucky(bad_calls=3)
    assert codes(evaluated(world, experiment, sandbox)) == FAILED
    calls, facts = sandbox.calls, len(world.project.ledger.evaluations(experiment))
    for _ in range(3):
        (made,) = evaluated(world, experiment, sandbox)
        assert (made.value, codes([made])) == (None, FAILED[0:1])
        assert "does not ask again" in made.findings[0].hint
    assert sandbox.calls == calls
    assert len(world.project.ledger.evaluations(experiment)) == facts
    world.result(experiment)
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert "predictions_not_reproducible" in {finding.code for finding in verdict.findings}


def test_it_stands_under_a_new_version_of_the_plan_and_for_a_repeat_of_the_run(
    world: World,
) -> None:
    experiment = world.open().id
    world.train(experiment, GOOD[:1])
    sandbox = Lucky(bad_calls=3)
    assert codes(evaluated(world, experiment, sandbox)) == FAILED
    calls = sandbox.calls
    again = world.open_another(experiment)
    world.train_one(again, world.project.ledger.runs(experiment)[0].seed, GOOD[0])
    assert codes(evaluated(world, again, sandbox)) == FAILED
    plan = world.root / "plan.md"
    plan.write_text(plan.read_text().replace("should: 0.90", "should: 0.91"))
    approve_plan(world.project, plan, by="a person")
    assert codes(evaluated(world, again, sandbox)) == FAILED
    assert sandbox.calls == calls


def test_under_another_plan_it_says_nothing(world: World) -> None:
    """Each plan counts its versions from 1, and has rows of its own."""
    experiment = world.open().id
    world.train(experiment, GOOD[:1])
    sandbox = Lucky(bad_calls=3)
    assert codes(evaluated(world, experiment, sandbox)) == FAILED
    sandbox.left = 0
    plan = world.root / "plan.md"
    other = plan.read_text().replace("name: signs", "name: other-signs")
    plan.write_text(other.replace("seeds: 3", "seeds: 4"))
    assert approve_plan(world.project, plan, by="a person").version == 1
    another = world.open_another(experiment)
    world.train_one(another, world.project.ledger.runs(experiment)[0].seed, GOOD[0])
    assert codes(evaluated(world, another, sandbox)) == [[]]


def test_other_weights_other_code_or_another_command_are_asked(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, GOOD[:1])
    sandbox = Lucky(bad_calls=3)
    assert codes(evaluated(world, experiment, sandbox)) == FAILED
    sandbox.left = 0
    (world.root / "predict.py").write_text((world.root / "predict.py").read_text() + "# mended\n")
    seed = world.project.ledger.runs(experiment)[0].seed
    world.train_one(experiment, seed, GOOD[0])
    assert codes(evaluated(world, experiment, sandbox)) == [[]]


def test_weights_that_predict_does_not_use_fail_the_gate_for_good(world: World) -> None:
    class Blind(InProcess):
        def run(self, argv: Any, *, environment: Mapping[str, str], **more: Any) -> Completed:
            path = Path(environment[PREDICTIONS]).parent / "cut.json"
            path.write_text(json.dumps({"cut": 0.0}))
            return super().run(
                argv, environment={**environment, "HARNESS_CHECKPOINT": str(path)}, **more
            )

    experiment = world.open().id
    world.train(experiment)
    made = evaluated(world, experiment, Blind())
    assert [one.value for one in made] == [None] * 3
    assert codes(made) == [["weights_unused"]] * 3
    assert "those of seed" in made[0].findings[0].message
    assert codes(evaluated(world, experiment, InProcess())) == [["weights_unused"]] * 3
    world.result(experiment)
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert "weights_unused" in {finding.code for finding in verdict.findings}
