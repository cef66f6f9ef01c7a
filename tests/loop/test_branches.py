"""What the next experiment builds on: the last kept one, or the best branch of a tree."""

import pytest

from harness.decisions.experiments import decide
from harness.decisions.person import reject
from harness.domain.statuses import DecisionKind, ExperimentStatus, Split, Tier, Verdict
from harness.driver.branching import branch_code, record_choice
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.loop.branches import parent_of_next, promising, ranked
from harness.loop.load_state import load_state
from harness.loop.next_step import _answer, next_step
from harness.loop.state import ExperimentState, LoopLimits, LoopState, RunState, VerdictState
from harness.loop.steps import Build, Choice, Decide
from tests.world import GOOD, InProcess, World

KEPT, DISCARDED = ExperimentStatus.KEPT, ExperimentStatus.DISCARDED


def one(
    number: int,
    score: float | None,
    status: ExperimentStatus = KEPT,
    parent: int | None = None,
    better: bool | None = True,
) -> ExperimentState:
    verdict = VerdictState(
        id=f"v-{number}",
        verdict=Verdict.PASS,
        current=True,
        better=better,
        score=score,
        spread=0.01,
        why="a test",
    )
    return ExperimentState(
        id=f"exp-{number:04d}",
        status=status,
        validation=verdict,
        held_out=verdict if status is KEPT else None,
        parent=None if parent is None else f"exp-{parent:04d}",
    )


def state(*experiments: ExperimentState, search: str = "tree", maximize: bool = True) -> LoopState:
    limits = LoopLimits(
        seeds=3,
        experiments=20,
        total_minutes=100,
        usd=None,
        stop_tier=Tier.COULD,
        patience=20,
        search=search,
        maximize=maximize,
    )
    return LoopState(limits=limits, experiments=experiments)


def test_a_line_builds_on_the_last_kept_one() -> None:
    made = state(one(1, 0.9), one(2, 0.5, parent=1), search="line")
    assert parent_of_next(made) == ("exp-0002", None)
    assert parent_of_next(state(search="line")) == (None, None)


def test_a_tree_builds_on_the_best_and_leaves_what_was_tried_often() -> None:
    two = (one(1, 0.80), one(2, 0.90, parent=1))
    parent, choice = parent_of_next(state(*two))
    assert parent == "exp-0002"
    assert choice is not None
    assert "exp-0001" in choice.alternatives
    assert "highest upper bound" in choice.reason
    children = [one(n, 0.88, DISCARDED, parent=2, better=False) for n in range(3, 15)]
    parent, _ = parent_of_next(state(one(1, 0.897), one(2, 0.90, parent=1), *children))
    assert parent == "exp-0001"


def test_what_only_beat_its_parent_is_a_branch_and_what_did_not_is_none() -> None:
    made = state(
        one(1, 0.8),
        one(2, 0.7, DISCARDED, parent=1, better=True),
        one(3, 0.9, DISCARDED, parent=1, better=False),
        one(4, None, DISCARDED, parent=1, better=True),
    )
    assert [branch.id for branch in ranked(made)] == ["exp-0001", "exp-0002"]


def judged(world: World, name: str, cuts: tuple[float, ...], *, result: bool = True) -> str:
    opened = world.open(name).id
    world.train(opened, cuts)
    evaluate_experiment(
        world.project,
        opened,
        Split.VALIDATION,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )
    if result:
        world.result(opened)
    check_gate(world.project, opened)
    return opened


def test_what_broke_the_contract_or_was_rejected_is_no_branch(world: World) -> None:
    project = world.project
    sound = judged(world, "first", (0.02, 0.01, 0.03))
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    kind = DecisionKind.DISCARD
    decide(project, kind=kind, experiment=sound, by="harness", confidence="high", **words)
    cheat = judged(world, "cheat", (0.025, 0.015, 0.035), result=False)
    decide(project, kind=kind, experiment=cheat, by="harness", confidence="high", **words)
    refused = judged(world, "refused", (0.022, 0.012, 0.032))
    reject(project, refused, by="human:ada", reason="It reads a column of the future.")
    states = load_state(project, supervised=lambda _run: False).experiments
    assert [one.id for one in states if promising(one)] == [sound]
    better = [one.id for one in states if one.validation and one.validation.better]
    assert better == [sound, cheat, refused]
    project.close()


def test_a_negative_score_is_told_with_its_sign() -> None:
    _, choice = parent_of_next(state(one(1, -0.3), one(2, -0.2, parent=1)))
    assert choice is not None
    assert "score -0.2" in choice.reason


def test_smaller_is_better_where_the_plan_says_so() -> None:
    made = state(one(1, 0.30), one(2, 0.20, parent=1), maximize=False)
    assert parent_of_next(made)[0] == "exp-0002"


def test_next_step_carries_the_choice_and_keeps_to_it() -> None:
    made = state(one(1, 0.80), one(2, 0.90, parent=1))
    step = next_step(made)
    assert isinstance(step, Build)
    assert (step.parent, step.choice is not None) == ("exp-0002", True)
    opened = ExperimentState(id="exp-0003", status=ExperimentStatus.OPEN, parent="exp-0001")
    step = next_step(state(*made.experiments, opened))
    assert isinstance(step, Build)
    assert (step.parent, step.choice) == ("exp-0001", None)


@pytest.mark.parametrize(("score", "looked"), [(0.85, False), (0.95, True)])
def test_held_out_is_looked_at_only_for_what_leads(score: float, looked: bool) -> None:
    candidate = one(3, score, ExperimentStatus.JUDGED, parent=1)
    runs = tuple(RunState(id=f"run-0{n}", seed=n, status="completed") for n in range(3))
    candidate = ExperimentState(
        id=candidate.id,
        status=ExperimentStatus.JUDGED,
        validation=candidate.validation,
        parent=candidate.parent,
        runs=runs,
        result_written=True,
        awaiting_held_out=frozenset({"run-00"}),
    )
    made = state(one(1, 0.8), one(2, 0.9, parent=1), candidate)

    step = _answer(made, 3, candidate)
    if looked:
        assert not isinstance(step, Decide)
        return
    assert isinstance(step, Decide)
    assert step.kind is DecisionKind.DISCARD
    assert "not than exp-0002; its branch may be built on" in step.reason


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("branches"))


def test_a_choice_is_recorded_once_with_its_alternatives(world: World) -> None:
    choice = Choice(parent="exp-0001", reason="It has the bound 0.9.", alternatives="exp-0002 0.8")
    for attempt in (1, 2):
        record_choice(
            world.project, Build(index=3, attempt=attempt, parent="exp-0001", choice=choice)
        )
    record_choice(world.project, Build(index=4, attempt=1, parent="exp-0001"))
    (made,) = world.project.ledger.decisions()
    assert (made.kind, made.by) == (DecisionKind.BRANCH, "harness")
    assert made.choice == "It builds on exp-0001."
    assert made.alternatives == "exp-0002 0.8"
    world.project.close()


def test_a_branch_that_is_not_here_is_laid_out_to_be_read(world: World) -> None:
    world.open()
    world.train("exp-0001", GOOD[:1])
    assert branch_code(world.project, "exp-0001") is None
    assert branch_code(world.project, None) is None
    (world.root / "train.py").write_text("print('another branch')\n")
    for _ in range(2):  # a cut session asks again
        found = branch_code(world.project, "exp-0001")
        assert found is not None
        assert found.differing == ("train.py",)
        text = (world.root / found.folder / "train.py").read_text()
        assert text == "print('train')\n"
    assert found.folder in found.words
    assert "take over those that differ: train.py" in found.words
    world.project.close()
