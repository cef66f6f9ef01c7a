import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.comparison import holm
from harness.evaluation.outcome import LEVEL

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_known_values():
    """R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.2]) == [0.2]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    with pytest.raises(ValueError, match="p-values"):
        holm([1.2])


@given(p_values)
def test_between_the_raw_value_and_bonferroni_and_in_the_same_order(given_values):
    corrected = holm(given_values)
    for raw, value in zip(given_values, corrected, strict=True):
        assert raw <= value <= min(1.0, raw * len(given_values))
    order = np.argsort(given_values, kind="stable")
    assert np.all(np.diff(np.array(corrected)[order]) >= 0)


def test_false_alarms_in_a_family_without_any_effect_stay_at_the_level():
    """4,000 families of 8 comparisons: about 34% have an uncorrected alarm, at most 5% (and noise)
    a corrected one."""
    families = np.random.default_rng(11).random((4000, 8))
    raw = np.mean([family.min() < LEVEL for family in families])
    corrected = np.mean([min(holm(family.tolist())) < LEVEL for family in families])
    assert raw > 0.3
    assert 0.03 < corrected < 0.06
