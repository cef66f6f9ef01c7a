import numpy as np

from harness.plans.contamination import row_hashes, shared_rows


def test_a_row_is_found_in_another_type_and_with_another_label():
    earlier = {"a": np.array([1, 2, 3]), "t": np.array(["x", "yy", "z"]), "y": np.array([0, 1, 0])}
    later = {
        "a": np.array([3.0, 2.0, 9.0]),
        "t": np.array(["z", "yy", "something longer"]),
        "y": np.array([0.0, 0.0, 1.0]),
    }
    shared = shared_rows(earlier, later, ["a", "t"], "y")
    assert (shared.rows, shared.first, shared.with_label) == ((0, 1), (2, 1), 1)
    assert shared.share == 2 / 3
    assert shared.repeats == 0.0


def test_repeats_count_twins_of_the_earlier_table():
    column = {"a": np.array([1, 1, 2, 3]), "y": np.array([0, 0, 0, 0])}
    assert shared_rows(column, column, ["a"], "y").repeats == 0.5


def test_minus_zero_is_zero_and_columns_do_not_run_together():
    assert row_hashes({"a": np.array([-0.0])}, ["a"]) == row_hashes({"a": np.array([0])}, ["a"])
    texts = {"a": np.array(["ab", "a"]), "b": np.array(["c", "bc"])}
    assert len(set(row_hashes(texts, ["a", "b"]))) == 2


def test_blocks_give_the_same_hashes_as_one_look(monkeypatch):
    table = {"a": np.arange(60.0).reshape(20, 3)}
    whole = row_hashes(table, ["a"])
    monkeypatch.setattr("harness.plans.contamination._BLOCK", 6)
    assert row_hashes(table, ["a"]) == whole
