import numpy as np

from harness.data_checks.review import contamination, data_findings


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
    assert "row 3 = row 8 of train" in next(item.message for item in found if item.code == "splits_overlap")
    secret = data_findings(splits, ["x"], "y", secret=frozenset({"held_out"}))
    assert "row 3" not in next(item.message for item in secret if item.code == "splits_overlap")


def test_near_texts_stand_beside_exact_ones():
    texts = [f"number {i}: the quick brown fox number {i * 37} jumps over dog {i * 101}" for i in range(60)]
    train = {"t": np.array(texts), "y": np.arange(60) % 2}
    later = {"t": np.array([texts[0], texts[1].title()]), "y": np.array([0, 1])}
    found = data_findings({"train": train, "held_out": later}, ["t"], "y")
    assert [(item.code, item.data["rows"]) for item in found] == [("splits_overlap", 1), ("splits_near_duplicates", 1)]


def test_contamination_is_what_the_gate_reads():
    splits = tables(20)
    splits["held_out"]["x"][:5] = splits["train"]["x"][:5]
    assert contamination(splits["train"], splits["held_out"], ["x"], "y") == {"rows": 5, "share": 0.25, "repeats": 0.0}
