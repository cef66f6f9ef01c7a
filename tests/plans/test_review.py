import math

import numpy as np
import pytest

from harness.gates.scores import contamination as judged
from harness.plans.data_review import contamination, data_findings
from tests.gates.evidence import evidence


def tables(rows=120):
    draw = np.random.default_rng(5)
    return {
        name: {"x": draw.normal(size=(rows, 12)), "y": draw.integers(0, 2, rows)}
        for name in ("train", "validation", "held_out")
    }


def test_clean_splits_have_no_findings():
    assert data_findings(tables(), ["x"], "y") == []


def test_each_pair_and_kind_is_named_with_rows():
    splits = tables()
    splits["train"]["x"][:, 5] = splits["train"]["y"]
    splits["validation"]["x"][:, 5] = splits["validation"]["y"]
    splits["train"]["y"][9] = splits["validation"]["y"][4]
    splits["train"]["x"][9, 5] = splits["validation"]["x"][4, 5]
    splits["validation"]["x"][4, :5] = splits["train"]["x"][9, :5] + 1e-4
    splits["validation"]["x"][4, 6:] = splits["train"]["x"][9, 6:]
    found = data_findings(splits, ["x"], "y")
    assert [(item.code, item.data.get("second", item.data.get("column"))) for item in found] == [
        ("splits_near_duplicates", "validation"),
        ("feature_tells_label", "x[5]"),
    ]
    splits["held_out"]["x"][3] = splits["train"]["x"][8]
    found = data_findings(splits, ["x"], "y")
    assert "row 3 = row 8 of train" in next(
        item.message for item in found if item.code == "splits_overlap"
    )
    secret = data_findings(splits, ["x"], "y", secret=frozenset({"held_out"}))
    assert "row 3" not in next(item.message for item in secret if item.code == "splits_overlap")


def test_near_texts_stand_beside_exact_ones():
    texts = [
        f"number {i}: the quick brown fox number {i * 37} jumps over dog {i * 101}"
        for i in range(60)
    ]
    train = {"t": np.array(texts), "y": np.arange(60) % 2}
    later = {"t": np.array([texts[0], texts[1].title()]), "y": np.array([0, 1])}
    found = data_findings({"train": train, "held_out": later}, ["t"], "y")
    assert [(item.code, item.data["rows"]) for item in found] == [
        ("splits_overlap", 1),
        ("splits_near_duplicates", 1),
    ]


def test_contamination_is_what_the_gate_reads():
    splits = tables(20)
    splits["held_out"]["x"][:5] = splits["train"]["x"][:5]
    found = contamination(splits["train"], splits["held_out"], ["x"], "y")
    assert (found["rows"], found["share"], found["repeats"]) == (5, 0.25, 0.0)
    assert (found["near"], found["near_repeats"]) == (0.25, 0.0)
    assert (
        found["expected"]
        == found["near_expected"]
        == pytest.approx(math.sqrt(20 * 3.6889 / 190), rel=1e-4)
    )


def blocked(train, later):
    labels = [{"x": part, "y": np.zeros(len(part))} for part in (train, later)]
    return bool(list(judged(evidence(in_train=contamination(*labels, ["x"], "y")))))


@pytest.mark.parametrize(
    ("width", "times", "noise", "scale"),
    [
        (8, 1, 1e-9, 1e3),
        (8, 2, 0.0, 1.0),
        (8, 3, 1e-9, 1.0),
        (64, 2, 1e-9, 1.0),
        (64, 1, 1e-9, 1e3),
        (4, 3, 0.0, 1.0),
    ],
)
def test_a_leak_is_named_however_often_rows_repeat_and_with_noise(width, times, noise, scale):
    draw = np.random.default_rng(1)
    base, later = (scale * draw.normal(size=(rows, width)) for rows in (300, 400))
    copies = [np.concatenate([base, later]) + place * noise for place in range(1, times + 1)]
    assert blocked(np.concatenate(copies), later)
    assert blocked(np.concatenate([base, base, later + noise]), later)
    assert not blocked(np.concatenate([base] * times), later)


PROTOTYPES = np.random.default_rng(9).normal(size=(300, 20))
KINDS = {
    "few values": lambda draw, rows: draw.integers(0, 500, (rows, 1)),
    "many values": lambda draw, rows: draw.integers(0, 5000, (rows, 1)),
    "long tail": lambda draw, rows: draw.zipf(1.5, (rows, 1)).clip(0, 10**6),
    "flags": lambda draw, rows: draw.integers(0, 2, (rows, 10)),
    "noise around few": lambda draw, rows: (
        PROTOTYPES[draw.integers(0, 300, rows)] + 0.01 * draw.normal(size=(rows, 20))
    ),
    "a curve": lambda draw, rows: np.cos(draw.random((rows, 1)) * np.arange(1, 11)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [(1000, 200), (2000, 800)])
def test_data_that_repeats_by_itself_is_no_leak(kind, rows):
    for seed in range(5):
        draw = np.random.default_rng(seed)
        assert not blocked(*(KINDS[kind](draw, n).astype(float) for n in rows)), seed
