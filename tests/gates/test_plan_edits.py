"""What of a plan begins a new comparison when it is approved again, and what keeps seeds, scores and
verdicts. The case is a new user's: the budget is raised, and every score was blank."""

from pathlib import Path

import pytest

from harness.domain.statuses import GateName, Split, Tier, Verdict
from harness.evaluation.released import released_score
from harness.gates.check import check_gate, standing
from harness.loop.load_state import load_state
from harness.plans.approval import approve_plan
from harness.plans.approved import plan_seeds
from harness.plans.changes import Changes
from harness.views.snapshot import experiment_row
from tests.gates.test_evaluated_and_judged import evaluate, passed
from tests.gates.test_sealed import HIDDEN, hidden_world
from tests.gates.test_sealed import scored as scored_on_hidden
from tests.world import PLAN, World

SCORER = """def score(labels, predictions):
    return sum(one == row["prediction"] for one, row in zip(labels, predictions)) / len(labels)
"""
KEEPS = {
    "budget": ("total_minutes: 10", "total_minutes: 90"),
    "experiments": ("experiments: 6", "experiments: 12"),
    "tiers": ("should: 0.90", "should: 0.999"),
    "loop": ("patience: 3", "patience: 9"),
    "queries": ("queries: 3", "queries: 5"),
    "objective": ("Tell the sign of x", "Tell whether x is above 0"),
    "gates": ("loop:", "gates: {mode: supervised}\nloop:"),
    "alarms": ("loop:", "alarms: {stop_on: none}\nloop:"),
    "name": ("name: signs", "name: halves"),
    "words": ("# About", "# More about"),
}
BEGINS = {
    "oracle.predict": ("python predict.py", "python ./predict.py"),
    "oracle.seeds": ("seeds: 3", "seeds: 4"),
}


def approved_again(world: World, text: str | None) -> Changes:
    """What a person is shown before it counts."""
    shown: list[Changes] = []
    if text is not None:
        (world.root / "plan.md").write_text(text)
    approve_plan(world.project, world.root / "plan.md", by="a person", on_changes=shown.append)
    return shown[0]


@pytest.mark.parametrize("edit", KEEPS)
def test_seeds_scores_and_verdicts_stay(world: World, edit: str) -> None:
    experiment = passed(world)
    before = world.project.plan()
    row = experiment_row(world.project, world.project.ledger.experiment(experiment))
    changes = approved_again(world, PLAN.replace(*KEEPS[edit]))
    assert "The comparison goes on: seeds, scores and verdicts stay" in changes.text
    assert "What was counted stays counted" in changes.text
    assert ("Tiers are computed again" in changes.text) == (edit == "tiers")
    now = world.project.plan()
    assert (now.version, now.name) == (2, before.name)
    assert plan_seeds(now) == plan_seeds(before)
    again = experiment_row(world.project, world.project.ledger.experiment(experiment))
    changed = {"tier": Tier.MUST} if edit == "tiers" else {}
    assert again == row | changed
    verdict = world.project.ledger.verdicts(experiment)[-1]
    assert standing(world.project, verdict) is Verdict.PASS
    made = world.project.ledger.evaluations(experiment)
    evaluate(world, experiment)
    assert world.project.ledger.evaluations(experiment) == made  # nothing was due


def test_the_next_experiment_is_compared_with_one_of_before_the_edit(world: World) -> None:
    experiment = passed(world)
    approved_again(world, PLAN.replace(*KEEPS["budget"]))
    child = world.open_another(experiment, experiment)
    world.train(child)
    evaluate(world, child)
    world.result(child)
    compared = check_gate(world.project, child).comparison
    assert compared is not None
    assert (compared["against"], compared["seeds"]) == (experiment, [3, 3])


@pytest.mark.parametrize("why", BEGINS)
def test_data_oracle_predict_and_seeds_begin_a_new_comparison(world: World, why: str) -> None:
    experiment = passed(world)
    seeds = plan_seeds(world.project.plan())
    text = PLAN.replace(*BEGINS[why])
    changes = approved_again(world, text)
    assert f"This begins a new comparison, for {why} changed." in changes.text
    assert f"those of {experiment} are blank" in changes.text
    assert not set(plan_seeds(world.project.plan())) & set(seeds)
    row = experiment_row(world.project, world.project.ledger.experiment(experiment))
    assert (row["score"], row["verdict"]) == (None, Verdict.STALE)
    back = approved_again(world, PLAN)
    assert "An earlier comparison goes on" in back.text
    assert world.project.plan().version == 3
    assert plan_seeds(world.project.plan()) == seeds
    row = experiment_row(world.project, world.project.ledger.experiment(experiment))
    assert (row["tier"], row["verdict"]) == (Tier.SHOULD, Verdict.PASS)


def test_an_edited_scorer_and_other_rows_begin_one_too(tmp_path: Path) -> None:
    world = World.make(tmp_path, PLAN)
    (world.root / "scorer.py").write_text(SCORER)
    text = PLAN.replace("scorer: accuracy", "scorer: scorer.py")
    told = approved_again(world, text).text
    assert "begins a new comparison, for oracle.scorer and the scorer's code changed" in told
    (world.root / "scorer.py").write_text(SCORER + "# otherwise\n")
    told = approved_again(world, None).text
    assert "begins a new comparison, for the scorer's code changed" in told
    with (world.root / "data/train.csv").open("a") as stream:
        stream.write("train-60,0.25,up\n")
    told = approved_again(world, None).text
    assert "begins a new comparison, for the train data changed" in told


def test_a_verdict_is_stale_when_the_least_tier_moved_past_its_score(world: World) -> None:
    experiment = passed(world)
    verdict = world.project.ledger.verdicts(experiment)[-1]
    approved_again(world, PLAN.replace("must: 0.80, should: 0.90", "must: 0.999"))
    assert standing(world.project, verdict) is Verdict.STALE
    again = check_gate(world.project, experiment)
    assert (again.verdict, [one.code for one in again.findings]) == (
        Verdict.FAIL,
        ["approved_anew", "below_tier"],
    )


def test_the_loop_stops_by_the_tiers_as_they_are_now(world: World) -> None:
    experiment = passed(world)
    evaluate(world, experiment, Split.HELD_OUT)
    assert check_gate(world.project, experiment).tier is Tier.SHOULD
    approved_again(world, PLAN.replace("should: 0.90", "should: 0.90, could: 0.95"))
    (state,) = load_state(world.project, supervised=lambda run: False).experiments
    assert state.held_out is not None
    assert (state.held_out.tier, state.held_out.current) == (Tier.COULD, True)
    assert check_gate(world.project, experiment).tier is Tier.COULD


def test_of_hidden_labels_a_tier_is_computed_from_the_number_that_was_told(
    tmp_path: Path,
) -> None:
    world = hidden_world(tmp_path)
    experiment = scored_on_hidden(world)
    check_gate(world.project, experiment, GateName.VALIDATION)
    spent = world.project.ledger.bits_told("signs")

    def told() -> Tier | None:
        score = released_score(world.project, experiment, world.project.plan(), Split.VALIDATION)
        assert score is not None
        return score["released"]["tier"]

    assert told() is Tier.SHOULD
    approved_again(world, HIDDEN.replace("total_minutes: 10", "total_minutes: 90"))
    assert told() is Tier.SHOULD
    approved_again(world, HIDDEN.replace("should: 0.90", "should: 0.85, could: 0.9"))
    assert told() is Tier.COULD
    assert world.project.ledger.bits_told("signs") == spent


def test_more_bits_are_called_bits_and_no_other_judge(world: World) -> None:
    experiment = passed(world)
    approved_again(world, PLAN.replace("queries: 3", "queries: 3\n  bits: 900"))
    again = check_gate(world.project, experiment)
    (told,) = [one.message for one in again.findings if one.code == "approved_anew"]
    assert "with other bits: oracle.bits: " in told
