import pytest

from harness.gates.scores import contamination, reference_seeds
from tests.gates.evidence import evidence


@pytest.mark.parametrize(
    ("share", "repeats", "blocks"),
    [
        (0.0, 0.0, False),
        (0.05, 0.0, False),  # told at approval
        (0.051, 0.0, True),
        (0.5, 0.3, False),  # data of few distinct rows
        (0.5, 0.2, True),
    ],
)
def test_a_split_may_hold_what_data_of_its_kind_repeats(share, repeats, blocks):
    shared = {"rows": round(share * 200), "share": share, "repeats": repeats}
    found = list(contamination(evidence(in_train=shared)))
    assert bool(found) is blocks
    assert all(f"({share:.1%})" in item.message for item in found)


@pytest.mark.parametrize(
    ("exact", "near", "blocks"),
    [
        ((1.0, 0.6, 0.18), (1.0, 0.75, 0.18), True),  # 300 rows twice and all 400 of validation
        ((1.0, 1.0, 0.2), (1.0, 1.0, 0.2), True),  # and every row twice
        (
            (0.435, 0.463, 0.74),
            (0.0, 0.0, 0.1),
            False,
        ),  # integers up to 5,000: the split has twins of its own
        ((0.0, 0.0, 0.2), (1.0, 0.0, 0.2), True),  # copies with 1e-9 added
        ((0.0, 0.0, 0.2), (1.0, 1.0, 0.2), True),  # and every one of them twice
        ((0.0, 0.0, 0.2), (0.86, 0.88, 1.0), False),  # rows that come near by themselves
        ((0.0, 0.0, 0.2), (0.04, 0.0, 0.2), False),
    ],
)
def test_oversampling_and_noise_hide_no_copies(exact, near, blocks):
    share, repeats, expected = exact
    shared = {"rows": round(share * 400), "share": share, "repeats": repeats, "expected": expected}
    shared |= dict(zip(("near", "near_repeats", "near_expected"), near, strict=True))
    found = list(contamination(evidence(in_train=shared)))
    assert bool(found) is blocks
    assert all("twins explain" in item.message for item in found)


def test_an_approval_that_did_not_look_says_nothing():
    assert list(contamination(evidence())) == []


@pytest.mark.parametrize(
    ("seeds", "names"),
    [([3, 3], []), ([3, 5], []), ([3, None], []), ([5, 3], ["exp-0001"]), ([3, 0], ["exp-0001"])],
)
def test_the_parent_has_as_many_seeds_and_the_trivial_predictor_needs_none(seeds, names):
    found = list(reference_seeds(evidence(comparison={"against": "exp-0001", "seeds": seeds})))
    assert [item.data["parent"] for item in found] == names
    assert all("harness evaluate exp-0001" in item.hint for item in found)
