"""Improvement is judged by the noise floor and the plan's direction."""

from dataclasses import replace

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier, Verdict
from harness.evaluation.outcome import TRIVIAL
from harness.loop.progress import ScoredExperiment, improvements


def objective(direction: Direction) -> Objective:
    return Objective(metric="m", direction=direction, tiers={Tier.MUST: 0.5}, seeds=3, queries=20)


UP, DOWN = objective(Direction.MAXIMIZE), objective(Direction.MINIMIZE)


def scored(
    *values: float,
    verdict: Verdict = Verdict.PASS,
    baseline: float | None = 0.1,
    findings: tuple[str, ...] = (),
) -> ScoredExperiment:
    return ScoredExperiment(verdict=verdict, findings=findings, values=values, baseline=baseline)


def unknown(candidate: str, reference: str | None) -> bool | None:
    """As in a clone, which has no evaluations to compare."""
    return None


def below(*values: float) -> ScoredExperiment:
    return scored(*values, verdict=Verdict.FAIL, findings=("below_tier",))


def test_the_first_is_measured_against_the_trivial_predictor() -> None:
    assert improvements([scored(0.90, 0.91, 0.92)], UP, unknown) == [True]
    assert improvements([scored(0.10, 0.11, 0.09)], UP, unknown) == [False]


def test_a_gain_within_the_noise_is_none() -> None:
    assert improvements([scored(0.90, 0.92, 0.91), scored(0.92, 0.91, 0.93)], UP, unknown) == [
        True,
        False,
    ]


def test_w6_a_large_relative_gain_of_a_small_error_is_an_improvement() -> None:
    """There RMSE .020 -> .012, 40% better, was a plateau: the threshold was absolute and knew no
    direction."""
    series = [scored(0.0200, 0.0201, 0.0199, baseline=0.5), scored(0.0120, 0.0121, 0.0119)]
    assert improvements(series, DOWN, unknown) == [True, True]


def test_w6_getting_worse_by_a_lot_is_no_improvement() -> None:
    """There -0.1 a run for ever went on, because only the size of the change counted."""
    falling = [scored(value, value + 0.001, value - 0.001) for value in (0.9, 0.8, 0.7, 0.6)]
    assert improvements(falling, UP, unknown) == [True, False, False, False]


def test_w6_noise_in_large_numbers_is_no_improvement() -> None:
    """There perplexity 120 -> 119.7 counted as progress."""
    series = [scored(119.0, 120.0, 121.0, baseline=900.0), scored(118.6, 119.7, 120.8)]
    assert improvements(series, DOWN, unknown) == [True, False]


def test_what_broke_its_contract_is_no_improvement_and_never_the_best() -> None:
    for findings in (
        ("claim_disagrees",),
        ("below_tier", "metrics_changed"),
        ("never_heard_of",),
        (),
    ):
        better = scored(0.99, 0.991, 0.992, verdict=Verdict.FAIL, findings=findings)
        assert improvements([better, scored(0.90, 0.901, 0.902)], UP, unknown) == [False, True]
    outstanding = scored(
        0.99, 0.991, verdict=Verdict.INCONCLUSIVE, findings=("seeds_outstanding",)
    )
    assert improvements([outstanding, scored(0.90, 0.901, 0.902)], UP, unknown) == [False, True]


def test_progress_below_the_least_tier_is_progress() -> None:
    """0.3 -> 0.5 -> 0.7 under a tier of 0.9 is a search that works, not three flat experiments."""
    rising = [below(value, value + 0.001, value - 0.001) for value in (0.3, 0.5, 0.7)]
    assert improvements(rising, UP, unknown) == [True, True, True]
    assert improvements(
        [*rising, below(0.7, 0.702, 0.701), below(0.4, 0.401, 0.402)], UP, unknown
    )[3:] == [
        False,
        False,
    ]
    assert improvements([below(0.3, 0.301, 0.302), below(0.2, 0.201, 0.202)], DOWN, unknown) == [
        False,
        True,
    ]


def test_a_note_beside_the_tier_does_not_end_progress() -> None:
    noted = scored(
        0.5, 0.501, 0.502, verdict=Verdict.FAIL, findings=("processes_left", "below_tier")
    )
    assert improvements([noted], UP, unknown) == [True]


def test_the_best_is_kept_through_worse_ones() -> None:
    series = [scored(0.9, 0.901, 0.902), scored(0.5, 0.501, 0.502), scored(0.8, 0.801, 0.802)]
    assert improvements(series, UP, unknown) == [True, False, False]


def test_too_few_seeds_never_count() -> None:
    assert improvements([scored(0.9, 0.91), scored()], UP, unknown) == [False, False]


def test_the_verdicts_comparison_counts_where_it_was_with_the_same_reference() -> None:
    """By seeds alone the second is better; the verdict, which also saw the rows and the number of
    tries, says no."""
    first = replace(scored(0.90, 0.91, 0.92), experiment="exp-0001", against=TRIVIAL, better=True)
    second = replace(
        scored(0.96, 0.97, 0.98), experiment="exp-0002", against="exp-0001", better=False
    )
    assert improvements([first, second], UP, unknown) == [True, False]
    assert improvements([first, replace(second, better=True)], UP, unknown) == [True, True]
    assert improvements([first, replace(second, against="exp-0000")], UP, unknown) == [True, True]
    assert improvements([replace(first, better=None)], UP, unknown) == [False]


def test_against_another_reference_the_gates_own_comparison_decides() -> None:
    """By seeds alone, not in pairs, these two are within the noise of each other."""
    first = replace(scored(0.80, 0.90, 0.97), experiment="exp-0001", against=TRIVIAL, better=True)
    second = replace(
        scored(0.81, 0.91, 0.98), experiment="exp-0002", against="exp-0000", better=False
    )
    asked = []

    def in_pairs(candidate: str, reference: str | None) -> bool | None:
        asked.append((candidate, reference))
        return True

    assert improvements([first, second], UP, unknown) == [True, False]
    assert improvements([first, second], UP, in_pairs) == [True, True]
    assert asked == [("exp-0002", "exp-0001")]
