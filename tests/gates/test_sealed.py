"""Labels that nobody may read: what project, facts and verdicts hold of scores on them."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harness.domain.records import Tree
from harness.domain.statuses import GateName, Split, Tier, Verdict
from harness.errors import RefusedError
from harness.evaluation import problems
from harness.evaluation.experiment import awaiting, evaluate_experiment
from harness.evaluation.ladder import OTHER_BITS, SAME_BITS
from harness.evaluation.problems import Unscorable
from harness.evaluation.release import release
from harness.evaluation.released import bits_limit, bits_told, latest_release
from harness.evaluation.split_rows import columns_hash
from harness.files import sha256_bytes, sha256_file
from harness.gates.check import check_gate, require_validation_passed
from harness.gates.claim_facts import prose_findings
from harness.ledger.facts import EvaluationRecorded, ExperimentMoved
from harness.loop.load_state import load_state
from harness.plans.approval import approve_plan
from harness.plans.tables import read_table
from harness.rendering.derived import write_derived
from harness.views.exact import exact_scores
from harness.views.experiments import comparison, details
from harness.views.snapshot import experiment_row
from harness.views.tables import score_text
from tests.secret_numbers import long_ones, spelled
from tests.world import GOOD, PLAN, POOR, InProcess, World, make_root

HELD_OUT, VALIDATION = Split.HELD_OUT, Split.VALIDATION
HIDDEN = PLAN.replace("validation: data/validation.csv", "validation: hidden")


def hidden_world(folder: Path, plan: str = HIDDEN) -> World:
    root = make_root(folder, plan)
    (root / "data/validation.csv").rename(root / "data/train.validation.csv")
    environment = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder / "home")}
    made = World(root, environment, World.opened(root, environment))
    approve_plan(made.project, root / "plan.md", by="a person")
    return made


@pytest.fixture
def hidden(tmp_path: Path) -> Iterator[World]:
    made = hidden_world(tmp_path)
    yield made
    made.project.close()


def evaluate(world: World, experiment: str, split: Split = VALIDATION) -> None:
    evaluate_experiment(
        world.project,
        experiment,
        split,
        InProcess(),
        environment={},
        shuffle_seed=7,
        admit=require_validation_passed,
    )


def scored(world: World, cuts: tuple[float, ...] = GOOD) -> str:
    """An experiment after its look; the one before it is cancelled."""
    before = world.project.ledger.experiments()
    experiment = world.open_another(before[-1].id) if before else world.open().id
    world.train(experiment, cuts)
    evaluate(world, experiment)
    return experiment


def on_held_out(world: World, experiment: str) -> Any:
    world.result(experiment)
    assert check_gate(world.project, experiment, GateName.VALIDATION).verdict is Verdict.PASS
    evaluate(world, experiment, HELD_OUT)
    return check_gate(world.project, experiment, GateName.HELD_OUT)


def texts(world: World) -> dict[str, str]:
    """All that an agent can read of the project, the facts among it."""
    write_derived(world.project)
    return {
        path.relative_to(world.root).as_posix(): path.read_text("utf-8", errors="replace")
        for path in world.root.rglob("*")
        if path.is_file()
    }


def test_no_exact_score_stands_in_the_project_or_in_an_answer(hidden: World) -> None:
    experiment = scored(hidden)
    verdict = on_held_out(hidden, experiment)
    assert (verdict.verdict, verdict.tier) == (Verdict.PASS, Tier.SHOULD)
    record = hidden.project.ledger.experiment(experiment)
    exact = exact_scores(hidden.project, record)
    assert [score["split"] for score in exact] == ["validation", "held_out"]
    values = {run["value"] for score in exact for run in score["runs"]}
    values |= {score["mean"] for score in exact} | {score["baseline"] for score in exact}
    values |= {end for score in exact for end in score["interval"]}
    values |= {end for score in exact for run in score["runs"] for end in run["interval"]}
    assert None not in values
    plan = hidden.project.plan()
    releases = [latest_release(hidden.project, experiment, plan, split) for split in Split]
    told = {one.mean for one in releases if one is not None}
    secret = long_ones(values - told)
    assert len(secret) > 6
    wanted = spelled(secret)
    assert wanted.search(json.dumps(exact))
    answers = {
        "show": json.dumps(
            {**experiment_row(hidden.project, record), **details(hidden.project, record)},
            default=str,
        ),
        "verdict": json.dumps(verdict.body(), default=str),
        "state": repr(load_state(hidden.project, supervised=lambda run: False)),
    }
    for where, text in {**texts(hidden), **answers}.items():
        if not where.startswith("data/") and "checkpoint" not in where and "metrics" not in where:
            assert wanted.findall(text) == [], where


def test_what_is_shown_of_sealed_scores_says_whether_there_is_one(hidden: World) -> None:
    experiment = scored(hidden)
    shown = details(hidden.project, hidden.project.ledger.experiment(experiment))
    told = [(row["value"], row["scored"]) for row in shown["evaluations"]]
    assert told == [(None, True)] * 3
    state = texts(hidden)[".harness/memory/STATE.md"]
    assert "of 20 bits" in state, "the bound of a plan that names none"


def test_no_plain_hash_of_secret_data_stands_in_the_project(hidden: World) -> None:
    experiment = scored(hidden)
    on_held_out(hidden, experiment)
    plain = set()
    for folder in (hidden.project.layout.held_out, hidden.project.layout.validation):
        (path,) = folder.glob("*.csv")
        table = read_table(path).columns
        plain |= {
            sha256_file(path),
            sha256_bytes(path.read_bytes()),
            columns_hash({"label": table["y"]}),
            columns_hash({"x": table["x"]}),
        }
    found = {
        where: digest
        for where, text in texts(hidden).items()
        for digest in plain
        if digest in text
    }
    assert found == {}


def test_a_score_that_is_no_better_is_told_as_that_and_nothing_more(hidden: World) -> None:
    project, plan = hidden.project, hidden.project.plan()
    best = latest_release(project, scored(hidden, (0.1, 0.11, 0.12)), plan, VALIDATION)
    assert best is not None
    assert (best.answer, best.step) == ("scored", 0.02)
    assert best.mean == pytest.approx(round(best.mean or 0, 2))
    for cuts in (POOR, (0.1, 0.12, 0.11)):
        experiment = scored(hidden, cuts)
        told = latest_release(project, experiment, plan, VALIDATION)
        assert told is not None
        assert (told.answer, told.mean, told.better) == ("not better", None, False)
        assert told.best == best.mean
        row = experiment_row(project, project.ledger.experiment(experiment))
        assert (row["score"], row["spread"], row["interval"]) == (None, None, None)
        assert score_text(row).startswith(f"not better than {best.mean:g} by 0.02, validation")
    better = latest_release(project, scored(hidden, (0.0, 0.001, 0.002)), plan, VALIDATION)
    assert better is not None
    assert better.answer == "better"
    assert (better.mean or 0) > (best.mean or 1)


def test_an_experiment_that_does_as_well_again_is_told_the_same(hidden: World) -> None:
    """It is not "not better" than its own answer, and a worse one is."""
    experiment = scored(hidden)
    project, plan = hidden.project, hidden.project.plan()
    first = latest_release(project, experiment, plan, VALIDATION)
    hidden.train(experiment, tuple(cut + 1e-4 for cut in GOOD))
    evaluate(hidden, experiment)
    again = latest_release(project, experiment, plan, VALIDATION)
    assert first is not None
    assert again is not None
    assert len(project.ledger.releases(experiment, VALIDATION)) == 2
    told = [(one.answer, one.mean, one.bound, one.tier, one.better) for one in (first, again)]
    assert told[0] == told[1]
    assert again.bits == pytest.approx(SAME_BITS + 1)
    hidden.train(experiment, POOR)
    evaluate(hidden, experiment)
    worse = latest_release(project, experiment, plan, VALIDATION)
    assert worse is not None
    assert (worse.answer, worse.better) == ("not better", False)
    assert OTHER_BITS < worse.bits < OTHER_BITS + 6


def test_the_verdict_says_better_or_not_without_a_number(hidden: World) -> None:
    experiment = scored(hidden, POOR)
    hidden.result(experiment)
    verdict = check_gate(hidden.project, experiment)
    assert verdict.verdict is Verdict.FAIL
    assert [found.code for found in verdict.findings] == ["below_tier"]
    assert "score" not in verdict.findings[0].data
    assert verdict.comparison is not None
    assert verdict.comparison["labels"] == "hidden"
    numbers = ("difference", "floor", "p", "p_corrected", "paired")
    assert [verdict.comparison[name] for name in numbers] == [None] * 5
    assert "on hidden labels" in texts(hidden)[".harness/experiments/CHECKLIST.md"]
    told = comparison(hidden.project, experiment, experiment)
    assert (told["better"], "difference" in told) == (None, False)
    assert told["candidate"]["released"]["words"] == "0.6 in steps of 0.02"
    assert "is better than its reference, trivial predictor" in told["why"]


def test_claims_are_checked_against_what_was_told(hidden: World) -> None:
    experiment = scored(hidden)
    told = latest_release(hidden.project, experiment, hidden.project.plan(), VALIDATION)
    assert told is not None
    assert told.mean is not None
    hidden.result(experiment, accuracy=f"{told.mean:.2f}")
    assert check_gate(hidden.project, experiment).verdict is Verdict.PASS
    hidden.result(experiment, accuracy="0.7012")
    (found,) = check_gate(hidden.project, experiment).findings
    assert (found.code, found.data["recomputed"]) == ("claim_disagrees", told.mean)


def test_true_words_of_a_result_on_hidden_labels_hold(hidden: World) -> None:
    experiment = scored(hidden)
    told = latest_release(hidden.project, experiment, hidden.project.plan(), VALIDATION)
    assert told is not None
    assert told.mean is not None
    score = f"The accuracy on validation is {told.mean:.2f} over 3 seeds."
    for words in (score, "All 3 seeds completed.", f"{score} It is told in steps of {told.step}."):
        assert prose_findings(hidden.project, experiment, words, ()) == ()
    for words in (score.replace("3 seeds", "5 seeds"), "The accuracy on validation is 0.9876."):
        (found,) = prose_findings(hidden.project, experiment, words, ())
        assert found.code == "prose_disagrees"


def test_asking_again_tells_and_costs_nothing(hidden: World) -> None:
    project, plan = hidden.project, hidden.project.plan()
    experiment = scored(hidden)
    spent = bits_told(project, plan)
    assert spent > 0
    evaluate(hidden, experiment)
    hidden.result(experiment)
    verdict = check_gate(project, experiment)
    hidden.result(experiment, accuracy="0.7")
    check_gate(project, experiment)
    hidden.result(experiment)
    assert check_gate(project, experiment).score == verdict.score
    assert bits_told(project, plan) == spent
    assert len(project.ledger.releases(experiment)) == 1


def test_a_look_that_could_pass_the_bound_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    world = hidden_world(tmp_path, HIDDEN.replace("queries: 3", "queries: 3\n  bits: 9"))
    project, plan = world.project, world.project.plan()
    assert bits_limit(plan) == 9
    cuts = [tuple(cut / (1 + place * 3) for cut in (0.5, 0.52, 0.54)) for place in range(6)]
    refused = None
    for three in cuts:
        try:
            scored(world, three)
        except RefusedError as error:
            refused = error
            break
    assert refused is not None
    assert refused.code == "bits_spent"
    assert refused.exit_code == 2
    assert "of the plan's 9 are left" in refused.message
    assert "oracle.bits" in refused.hint
    newest = project.ledger.experiments()[-1].id
    assert len(project.ledger.experiments()) > 1
    assert project.ledger.evaluations(newest) == []
    assert bits_told(project, plan) <= 9
    state = load_state(project, supervised=lambda run: False)
    assert VALIDATION in state.spent.untellable
    text = (world.root / "plan.md").read_text()
    (world.root / "plan.md").write_text(text.replace("bits: 9", "bits: 60"))
    approve_plan(project, world.root / "plan.md", by="a person")
    assert VALIDATION not in load_state(project, supervised=lambda run: False).spent.untellable
    project.close()


def test_a_killed_release_is_made_up_for(hidden: World, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = hidden.open("A cut").id
    hidden.train(experiment, GOOD)
    with monkeypatch.context() as patch:
        patch.setattr("harness.evaluation.experiment.release", lambda *_: None)
        evaluate(hidden, experiment)
    project, plan = hidden.project, hidden.project.plan()
    assert latest_release(project, experiment, plan, VALIDATION) is None
    assert len(awaiting(project, experiment, VALIDATION)) == 3
    release(project, experiment, plan, VALIDATION)
    assert latest_release(project, experiment, plan, VALIDATION) is not None
    assert awaiting(project, experiment, VALIDATION) == []


def child_of(world: World, parent: str, cuts: tuple[float, ...]) -> str:
    """Told beside its parent, which changes afterwards: it is evaluated once more."""
    ledger, child = world.project.ledger, world.open_another(parent, parent)
    world.train(child, cuts)
    evaluate(world, child)
    world.result(child)
    newest = ledger.evaluations(parent, VALIDATION)[-1]
    same = {part.name: getattr(newest, part.name) for part in fields(EvaluationRecorded)}
    ledger.append(EvaluationRecorded(**{**same, "predictions": "0" * 64}))
    return child


@pytest.mark.parametrize("left", [0.5, 2.0])
def test_a_reference_that_changed_needs_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float
) -> None:
    """To compare again costs a bit at most, and where none is left the older comparison stands:
    neither the command nor the loop stops for it."""
    hidden = hidden_world(tmp_path, HIDDEN.replace("queries: 3", "queries: 3\n  bits: 60"))
    project, plan = hidden.project, hidden.project.plan()
    child = child_of(hidden, scored(hidden, POOR), GOOD)
    spent = bits_told(project, plan)
    assert awaiting(project, child, VALIDATION) != []
    monkeypatch.setattr("harness.evaluation.release.bits_limit", lambda _: spent + left)
    assert VALIDATION not in load_state(project, supervised=lambda run: False).spent.untellable
    evaluate(hidden, child)
    assert bits_told(project, plan) - spent == (1.0 if left > 1 else 0.0)
    assert awaiting(project, child, VALIDATION) == []
    verdict = check_gate(project, child, GateName.VALIDATION)
    assert verdict.verdict is Verdict.PASS
    assert verdict.comparison is not None
    assert verdict.comparison["better"] is True
    notes = [found for found in verdict.findings if found.code == "reference_older"]
    assert len(notes) == (0 if left > 1 else 1)
    assert all("harness plan approve plan.md" in note.hint for note in notes)
    project.close()


def test_a_look_that_was_not_told_before_the_bits_ran_out_has_a_way_out(
    hidden: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = hidden.open("A cut").id
    hidden.train(experiment, GOOD)
    hidden.result(experiment)
    with monkeypatch.context() as patch:
        patch.setattr("harness.evaluation.experiment.release", lambda *_: None)
        evaluate(hidden, experiment)
    monkeypatch.setattr("harness.evaluation.release.bits_limit", lambda _: 1.0)
    (found,) = check_gate(hidden.project, experiment, GateName.VALIDATION).findings
    assert found.code == "evaluation_missing"
    assert found.hint.startswith("A person sets oracle.bits")
    hidden.path(experiment, "next").write_text("- A finer cut\n")
    closed_elsewhere(hidden)
    state = load_state(hidden.project, supervised=lambda run: False)
    assert VALIDATION in state.spent.untellable
    assert [(one.here, len(one.ideas)) for one in state.experiments] == [(True, 1), (False, 0)]


def closed_elsewhere(world: World) -> None:
    """Another working tree opened an experiment after this one's, and it is over."""
    ledger, tree = world.project.ledger, Tree(id="other", worktree="b", branch="b", commit="")
    other = ledger.open_experiment(hypothesis="x", parent=None, by="me", tree=tree).id
    ledger.append(ExperimentMoved(experiment=other, status="discarded", why="x"))


def test_who_goes_back_to_an_earlier_comparison_is_told_nothing_twice(hidden: World) -> None:
    project, path = hidden.project, hidden.root / "plan.md"
    experiment = scored(hidden)
    before = path.read_text()
    first = latest_release(project, experiment, project.plan(), VALIDATION)
    path.write_text(before.replace("seeds: 3", "seeds: 2"))
    approve_plan(project, path, by="a person")
    hidden.train(experiment, GOOD[:2])
    evaluate(hidden, experiment)
    spent = bits_told(project, project.plan())
    assert len(project.ledger.releases(experiment)) == 2
    path.write_text(before)
    approve_plan(project, path, by="a person")
    plan = project.plan()
    assert (plan.version, plan.comparison) == (3, 1)
    assert latest_release(project, experiment, plan, VALIDATION) == first
    release(project, experiment, plan, VALIDATION)
    assert bits_told(project, plan) == spent


def test_of_a_look_without_a_score_nothing_is_compared(
    hidden: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def infinite(*_: object, **__: object) -> None:
        raise Unscorable(problems.score_not_finite(float("inf")))

    project, parent = hidden.project, scored(hidden, POOR)
    monkeypatch.setattr("harness.evaluation.evaluate_run.score", infinite)
    child = child_of(hidden, parent, GOOD)
    for _ in range(2):
        told = latest_release(project, child, project.plan(), VALIDATION)
        assert told is not None
        assert (told.answer, told.better, told.comparison) == ("no score", None, None)
        verdict = check_gate(project, child, GateName.VALIDATION)
        assert verdict.comparison is None
        assert "score_not_finite" in [found.code for found in verdict.findings]
        assert "not better" not in texts(hidden)[".harness/experiments/CHECKLIST.md"].lower()


def test_a_damaged_record_is_an_error(hidden: World) -> None:
    experiment = scored(hidden)
    (sealed, *_) = hidden.project.layout.sealed.iterdir()
    sealed.chmod(0o600)
    sealed.write_bytes(b"{}")
    with pytest.raises(Exception, match="has changed"):
        exact_scores(hidden.project, hidden.project.ledger.experiment(experiment))


def test_held_out_beside_an_open_validation_tells_tier_and_one_rounded_mean(world: World) -> None:
    experiment = scored(world)
    verdict = on_held_out(world, experiment)
    assert verdict.score is not None
    assert verdict.score["values"] == []
    assert verdict.score["mean"] == pytest.approx(round(verdict.score["mean"] / 0.02) * 0.02)
    score = json.loads(world.path(experiment, "score").read_text())
    assert score["validation"]["values"]
    assert (score["held_out"]["values"], score["held_out"]["interval"]) == ([], None)
    assert "in steps of 0.02" in score["held_out"]["released"]["words"]
    written = json.loads(world.run_path(experiment, "evaluation").read_text())
    assert "value" in written["validation"]
    assert not {"value", "interval", "baseline", "predict_seconds"} & set(written["held_out"])
    checklist = texts(world)[".harness/experiments/CHECKLIST.md"]
    assert "in steps of 0.02 (held-out" in checklist
    assert "on readable labels" in checklist
