import numpy as np
import pytest

from harness.plans.contamination import is_text, near_duplicates, near_texts


def drawn(seed, rows, width=20):
    return {"x": np.random.default_rng(seed).normal(size=(rows, width))}


def test_copies_with_noise_and_another_scale_are_found_and_exact_ones_are_not_counted_twice():
    earlier, later = drawn(1, 300), drawn(2, 100)
    noise = np.random.default_rng(3).normal(size=(5, 20))
    later["x"][10:15] = earlier["x"][40:45] + 0.02 * noise
    later["x"][50] = earlier["x"][7]
    found = near_duplicates(earlier, later, ["x"])
    assert found.rows == (10, 11, 12, 13, 14)
    assert found.first == (40, 41, 42, 43, 44)
    assert (found.looked_at, found.of, found.usual) == (100, 300, 0.0)


@pytest.mark.parametrize("width", [8, 40])
def test_unrelated_rows_are_not_near(width):
    """Ten drawings of 100 x 500 pairs each, at the least width and at a usual one."""
    for seed in range(10):
        assert (
            near_duplicates(drawn(seed, 500, width), drawn(100 + seed, 100, width), ["x"]).rows
            == ()
        )


def test_blocks_and_samples_bound_the_work(monkeypatch):
    earlier, later = drawn(1, 400), drawn(2, 200)
    later["x"][::2] = earlier["x"][:200:2] + 1e-3
    whole = near_duplicates(earlier, later, ["x"])
    assert whole.rows == tuple(range(0, 200, 2))
    monkeypatch.setattr("harness.plans.contamination._BLOCK", 500)
    small = near_duplicates(earlier, later, ["x"])
    assert small.looked_at <= 200
    assert small.of == 200  # eight blocks of numbers
    monkeypatch.setattr("harness.plans.contamination.MOST_WORK", 20 * 50**2)
    assert near_duplicates(earlier, later, ["x"]).of == 50


def test_data_that_comes_near_by_itself_says_so():
    """Every row twice with a little noise: half of the training rows have a near twin among
    themselves too."""
    base = np.random.default_rng(1).normal(size=(200, 20))
    earlier = {"x": np.concatenate([base, base + 0.01])}
    assert near_duplicates(earlier, {"x": base[:100] + 0.005}, ["x"]).usual == 1.0


def test_too_little_to_say_anything():
    assert near_duplicates(drawn(1, 300, 7), drawn(2, 100, 7), ["x"]) is None
    assert near_duplicates(drawn(1, 10), drawn(2, 100), ["x"]) is None
    assert near_duplicates({"x": np.ones((30, 20))}, {"x": np.ones((30, 20))}, ["x"]) is None


WORDS = np.array(
    [
        "amber",
        "birch",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "heron",
        "island",
        "juniper",
        "kelp",
    ]
)


def sentences(seed, rows):
    draw = np.random.default_rng(seed)
    return np.array([" ".join(draw.choice(WORDS, size=30)) for _ in range(rows)])


def test_edited_texts_are_found_and_others_are_not():
    earlier, later = sentences(1, 60), sentences(2, 40)
    later[5] = earlier[9].upper().replace(" ", "  ", 3)
    later[6] = earlier[10] + " and one more word"
    found = near_texts(earlier, later)
    assert found.rows == (5, 6)
    assert found.first == (9, 10)
    assert found.looked_at == 40


def test_categories_are_no_texts():
    assert is_text(sentences(1, 5))
    assert not is_text(np.array(["red", "green"]))
    assert not is_text(np.array([1.0, 2.0]))
