from dataclasses import replace

import pytest

from harness.domain.findings import Finding
from harness.domain.grade import Grade, Link
from harness.domain.statuses import Split, Verdict
from harness.evaluation.scores import seed_findings, summarise
from harness.files import canonical_json
from harness.gates.findings import outcome_of
from harness.ledger.facts import Evaluation


def evaluation(seed, value, **changes):
    base = Evaluation(
        experiment="exp-0001",
        run=f"run-{seed:02d}",
        seed=seed,
        split=Split.VALIDATION,
        metric="accuracy",
        value=value,
        n=100,
        interval=(value - 0.02, value + 0.04) if value is not None else None,
        checkpoint=f"{seed:064d}",
        code="c",
        inputs="i",
        labels="l",
        scorer="s",
        predictions=f"p{seed}",
        query=1,
        sandbox="bwrap",
        plan_version=1,
        baseline=0.1,
        findings=(),
        grade=Grade(),
        at="2026-01-01T00:00:00.000Z",
    )
    return replace(base, **changes)


def test_mean_spread_and_interval_over_seeds():
    score = summarise([evaluation(3, 0.94), evaluation(1, 0.90), evaluation(2, 0.92)])
    assert score.mean == pytest.approx(0.92)
    assert score.spread == pytest.approx(0.02)
    assert score.values == (0.90, 0.92, 0.94)
    assert score.n_seeds == 3
    assert score.interval == pytest.approx((0.90, 0.96))
    assert score.baseline == 0.1
    assert score.grade.words == "recomputed"
    assert score.plain()["not_isolated"] == []
    assert canonical_json(score.plain())


def test_one_seed_has_no_spread_and_none_no_score():
    assert summarise([evaluation(1, 0.9)]).spread is None
    assert summarise([evaluation(1, None)]) is None
    assert summarise([]) is None


def test_the_last_evaluation_of_a_seed_counts():
    assert summarise([evaluation(1, 0.2), evaluation(1, 0.9)]).values == (0.9,)
    assert summarise([evaluation(1, 0.2), evaluation(1, None)]) is None


def test_one_cage_of_none_taints_the_score():
    training, session = Grade((Link.TRAINING,)), Grade((Link.SESSION,))
    score = summarise(
        [evaluation(1, 0.9), evaluation(2, 0.9, grade=training), evaluation(3, 0.9, grade=session)]
    )
    assert score.grade.words == "recomputed, session not isolated, training not isolated"
    assert score.plain()["not_isolated"] == ["session", "training"]


def test_an_interval_that_one_seed_lacks_is_not_made_up():
    assert summarise([evaluation(1, 0.9), evaluation(2, 0.9, interval=None)]).interval is None


@pytest.mark.parametrize(
    "change",
    [
        {"split": Split.HELD_OUT},
        {"metric": "mae"},
        {"plan_version": 2},
        {"experiment": "exp-0002"},
    ],
)
def test_what_cannot_be_averaged_is_refused(change):
    with pytest.raises(ValueError, match="one experiment, split, metric and plan version"):
        summarise([evaluation(1, 0.9), evaluation(2, 0.9, **change)])


def test_two_seeds_with_one_checkpoint_are_noticed_but_two_looks_at_one_seed_are_not():
    same = evaluation(1, 0.9).checkpoint
    assert (
        seed_findings(
            [evaluation(1, 0.9), evaluation(2, 0.9), evaluation(1, 0.9, split=Split.HELD_OUT)]
        )
        == []
    )
    (finding,) = seed_findings(
        [evaluation(1, 0.9), evaluation(7, 0.9, checkpoint=same), evaluation(3, 0.8)]
    )
    assert finding.code == "seed_ignored"
    assert "Seeds 1, 7" in finding.message


def test_seeds_with_other_weights_that_answer_all_rows_alike_are_a_note():
    """Weights that were padded, or pickled, are other bytes of one model."""
    same = {"predictions": "a" * 64}
    one, two = evaluation(1, 0.9, **same), evaluation(2, 0.9, **same)
    other = evaluation(3, 0.9, predictions="b" * 64)
    (note,) = seed_findings([one, two])
    assert seed_findings([one, two, other]) == []
    assert (note.code, note.data) == ("seeds_answer_alike", {"seeds": [1, 2]})
    assert outcome_of(note) is Verdict.PASS
    assert seed_findings([one, two], deterministic=True) == []
    assert seed_findings([one, other]) == []
    assert seed_findings([one, evaluation(2, None, **same), other]) == []
    (ignored,) = seed_findings([one, evaluation(2, 0.9, checkpoint=one.checkpoint, **same)])
    assert ignored.code == "seed_ignored"
    told = (Finding("seed_ignored", "m", "h", {"alike": [1, 2]}),)
    assert seed_findings([one, evaluation(2, 0.9, findings=told, **same)]) == []
