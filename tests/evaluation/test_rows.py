import numpy as np
import pytest

from harness.evaluation.problems import Unscorable
from harness.evaluation.split_rows import (
    TableFile,
    canonical,
    columns_hash,
    fresh_ids,
    hand_out,
    load_rows,
    shuffled,
    subset,
)
from harness.files import sha256_file
from harness.plans.tables import read_table, write_table


def table(path, **columns):
    write_table(path, {name: np.asarray(values) for name, values in columns.items()})
    return TableFile(path=path, sha256=sha256_file(path))


def load(file, **changes):
    options = {
        "which": "validation",
        "inputs": ("x",),
        "label": "y",
        "id_column": "row",
        **changes,
    }
    return load_rows(file, **options)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".jsonl"])
def test_handed_out_in_the_sources_form_without_label_or_source_id(tmp_path, suffix):
    file = table(tmp_path / f"t{suffix}", row=["p", "q", "r"], x=[1.5, 2.5, 3.5], y=[0, 1, 0])
    rows = load(file)
    path = hand_out(rows, tmp_path, [2, 0], ["ra", "rb"])
    assert path.suffix == suffix
    columns = read_table(path).columns
    assert set(columns) == {"id", "x"}
    assert columns["id"].tolist() == ["ra", "rb"]
    assert columns["x"].tolist() == [3.5, 1.5]
    assert rows.names == ("p", "q", "r")


def test_without_named_inputs_all_but_label_and_id_are(tmp_path):
    rows = load(table(tmp_path / "t.csv", row=[1, 2], x=[1, 2], z=[3, 4], y=[0, 1]), inputs=())
    assert set(rows.inputs) == {"x", "z"}
    assert load(table(tmp_path / "u.csv", x=[1, 2], y=[0, 1])).names == ("0", "1")


def test_inputs_with_further_axes_keep_them(tmp_path):
    x = np.arange(12.0).reshape(3, 2, 2)
    rows = load(table(tmp_path / "t.npz", x=x, y=[0, 1, 0]))
    given = read_table(hand_out(rows, tmp_path, [1, 2], ["a", "b"])).columns["x"]
    assert np.array_equal(given, x[[1, 2]])


@pytest.mark.parametrize(
    "changes",
    [{"inputs": ("nope",)}, {"label": "nope"}, {"inputs": ("x", "y")}, {"inputs": ("id",)}],
)
def test_columns_that_do_not_fit_the_plan_are_named(tmp_path, changes):
    file = table(tmp_path / "t.csv", row=[1, 2], id=[5, 6], x=[1, 2], y=[0, 1])
    with pytest.raises(Unscorable) as caught:
        load(file, **changes)
    assert caught.value.finding.code == "split_unusable"


def test_lost_and_damaged_tables_are_findings(tmp_path):
    for name, data in (("t.csv", b"a,b\n1\n"), ("t.npz", b"PK"), ("t.bin", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Unscorable) as caught:
            load(TableFile(path=tmp_path / name, sha256=sha256_file(tmp_path / name)))
        assert caught.value.finding.code == "split_unusable"
    with pytest.raises(Unscorable):
        load(TableFile(path=tmp_path / "absent.csv", sha256="0" * 64))


def test_order_and_ids_are_the_seeds_secret(tmp_path):
    assert shuffled(range(100), "1") == shuffled(range(100), "1") != shuffled(range(100), "2")
    assert sorted(shuffled(range(100), "1")) == list(range(100))
    ids = fresh_ids(range(1000), "1")
    assert len({*ids, *fresh_ids(range(1000), "2")}) == 2000
    assert all(identifier[0] == "r" and len(identifier) == 21 for identifier in ids)


@pytest.mark.parametrize(
    ("n", "size"), [(1, 1), (9, 9), (10, 10), (50, 10), (101, 11), (1000, 100)]
)
def test_the_part_predicted_again_is_a_tenth_and_at_least_ten(n, size):
    part = subset(n, "s")
    assert len(part) == len(set(part)) == size
    assert part == sorted(part)
    assert part == subset(n, "s")


def test_the_hash_of_columns_knows_name_type_shape_and_content_but_not_byte_order():
    base = {"x": np.arange(4, dtype="<i4")}
    assert columns_hash(base) == columns_hash({"x": np.arange(4, dtype=">i4")})
    others = [
        {"z": base["x"]},
        {"x": base["x"].astype("<i8")},
        {"x": base["x"].reshape(2, 2)},
        {"x": base["x"] + 1},
        {"x": base["x"], "z": base["x"]},
    ]
    assert len({columns_hash(columns) for columns in [base, *others]}) == 6
    assert columns_hash({"x": np.arange(6).reshape(2, 3).T}) == columns_hash(
        {"x": np.arange(6).reshape(2, 3).T.copy()}
    )


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", ">f8", "g"])
def test_predict_is_given_values_alone(tmp_path, kind):
    """Neither the sign of zero nor what is in a number that is none tells one row from another."""
    values = np.array([-0.0, 0.0, 1.5, -np.nan, np.nan])
    values.view(np.uint64)[3] |= np.uint64(77)
    told = canonical(values.astype(kind))
    assert told[0].tobytes() == told[1].tobytes()
    assert told[3].tobytes() == told[4].tobytes()
    assert told[2] == 1.5
    path = tmp_path / "rows.npz"
    write_table(path, {"x": values.astype(kind), "y": np.arange(5)})
    file = TableFile(path=path, sha256=sha256_file(path))
    rows = load_rows(file, which="validation", inputs=["x"], label="y", id_column=None)
    assert rows.inputs["x"].tobytes() == told.tobytes()


def test_true_has_one_form_and_other_columns_stay_as_they_are():
    truths = np.array([0, 1, 3, 255], np.uint8).view(bool)
    assert canonical(truths).view(np.uint8).tolist() == [0, 1, 1, 1]
    for values in (np.array(["1.50 ", " x"]), np.array([-3, 2**60]), np.zeros((2, 0))):
        assert canonical(values).tobytes() == values.tobytes()
        assert canonical(values).dtype == values.dtype
