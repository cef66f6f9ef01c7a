import pytest

from harness.gates.statistics import contamination, reference_seeds
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


def test_an_approval_that_did_not_look_says_nothing():
    assert list(contamination(evidence())) == []


@pytest.mark.parametrize(
    ("seeds", "names"), [([3, 3], []), ([3, 5], []), ([3, None], []), ([5, 3], ["exp-0001"]), ([3, 0], ["exp-0001"])]
)
def test_the_parent_has_as_many_seeds_and_the_trivial_predictor_needs_none(seeds, names):
    found = list(reference_seeds(evidence(comparison={"against": "exp-0001", "seeds": seeds})))
    assert [item.data["parent"] for item in found] == names
    assert all("harness evaluate exp-0001" in item.mend for item in found)
