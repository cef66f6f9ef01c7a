import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.metrics import Needs
from harness.evaluation.predictions import Expected, check, differing
from harness.evaluation.truth import classes_of
from harness.plans.labels import class_names

IDS = ("r1", "r2", "r3")


def expected(needs=Needs.NUMBER, numeric=True, classes=(), required=None):
    return Expected(
        ids=IDS,
        names=("first", "second", "third"),
        needs=needs,
        numeric=numeric,
        classes=classes,
        required=classes if required is None else required,
    )


def found(raw, **kind):
    checked = check(raw, expected(**kind))
    assert (checked.columns is None) == bool(checked.findings)
    return [finding.code for finding in checked.findings]


def test_predictions_come_back_in_the_order_asked_for():
    checked = check(
        {"id": ["r3", " r1 ", "r2"], "prediction": ["3", "1", "2e0"], "note": ["x", "y", "z"]},
        expected(),
    )
    assert checked.columns == {"prediction": [1.0, 2.0, 3.0]}


@given(st.permutations(range(20)))
def test_any_order_of_rows_gives_the_same(order):
    ids = tuple(f"r{i}" for i in range(20))
    wanted = Expected(ids=ids, names=ids, needs=Needs.NUMBER, numeric=True)
    raw = {"id": [ids[i] for i in order], "prediction": [float(i) for i in order]}
    assert check(raw, wanted).columns == {"prediction": [float(i) for i in range(20)]}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "nan", "-Infinity", "1e999", 10**400]
)
def test_non_finite_numbers(value):
    assert found({"id": IDS, "prediction": [1, value, 2]}) == ["predictions_non_finite"]


@pytest.mark.parametrize("value", ["", "cat", "1,5", "0x10"])
def test_what_is_no_number(value):
    raw = {"id": IDS, "prediction": [1, value, 2]}
    assert found(raw) == ["predictions_wrong_type"]
    assert "'second'" in check(raw, expected()).findings[0].message


def test_all_faults_are_said_at_once_with_counts_and_examples():
    raw = {"id": ["r1", "r1", "zz", "r2"], "prediction": [1.0, 1.0, 1.0, float("nan")]}
    checked = check(raw, expected())
    messages = {finding.code: finding.message for finding in checked.findings}
    assert list(messages) == [
        "predictions_missing",
        "predictions_duplicate",
        "predictions_extra",
        "predictions_non_finite",
    ]
    assert messages["predictions_missing"] == "1 of 3 predictions are missing, rows: 'third'."
    assert "'first'" in messages["predictions_duplicate"]
    assert "'zz'" in messages["predictions_extra"]
    assert "'second'" in messages["predictions_non_finite"]


def test_examples_are_few_and_cut():
    raw = {"id": [f"{'x' * 5000}{i}" for i in range(1000)], "prediction": [0] * 1000}
    finding = check(raw, expected()).findings[1]
    assert finding.code == "predictions_extra"
    assert finding.data["count"] == 1000
    assert len(finding.message) < 500
    assert sum(map(len, finding.data["examples"])) < 500


def test_classes_of_numbers_have_one_name_however_they_are_written():
    classes = ("0", "1", "3")
    for three in (3, 3.0, "3", "3.0", " 3 ", np.float32(3).item()):
        checked = check(
            {"id": IDS, "prediction": [three, True, "false"]},
            expected(Needs.CLASS, classes=classes),
        )
        assert checked.columns == {"prediction": ["3", "1", "0"]}
    assert found({"id": IDS, "prediction": [7, 1, 1]}, needs=Needs.CLASS, classes=classes) == [
        "predictions_unknown_class"
    ]
    assert found({"id": IDS, "prediction": ["nan", 1, 1]}, needs=Needs.CLASS, classes=classes) == [
        "predictions_non_finite"
    ]
    assert found({"id": IDS, "prediction": ["cat", 1, 1]}, needs=Needs.CLASS, classes=classes) == [
        "predictions_wrong_type"
    ]


def test_classes_of_text_are_compared_exactly():
    kind = {"needs": Needs.CLASS, "numeric": False, "classes": ("cat", "nan", "3")}
    assert found({"id": IDS, "prediction": ["cat", "nan", "3"]}, **kind) == []
    assert found({"id": IDS, "prediction": ["Cat", "nan", "3"]}, **kind) == [
        "predictions_unknown_class"
    ]
    assert found({"id": IDS, "prediction": ["cat", "", "3"]}, **kind) == [
        "predictions_unknown_class"
    ]


@pytest.mark.parametrize(
    ("a", "b", "code"),
    [
        ([0.25, 1, 0], [0.75, 0, 1], None),
        ([0.2502, 1, 0], [0.75, 0, 1], None),  # rounding to four decimals is no fault
        ([0.25, 1, 0], [0.80, 0, 1], "predictions_not_probabilities"),
        ([-0.1, 1, 0], [1.1, 0, 1], "predictions_not_probabilities"),
        ([float("nan"), 1, 0], [0.5, 0, 1], "predictions_non_finite"),
        (["x", 1, 0], [0.5, 0, 1], "predictions_wrong_type"),
    ],
)
def test_probabilities(a, b, code):
    kind = {"needs": Needs.PROBABILITIES, "numeric": False, "classes": ("a", "b")}
    assert found({"id": IDS, "p_a": a, "p_b": b}, **kind) == ([code] if code else [])


def test_probabilities_need_a_column_for_each_training_class_and_no_other():
    kind = {
        "needs": Needs.PROBABILITIES,
        "numeric": False,
        "classes": ("a", "b", "c"),
        "required": ("a", "b"),
    }
    half = [0.5, 0.5, 0.5]
    assert found({"id": IDS, "p_a": half, "p_b": half}, **kind) == []
    assert found({"id": IDS, "p_a": half, "p_b": half, "p_c": [0, 0, 0]}, **kind) == []
    for raw in ({"p_a": half}, {"p_a": half, "p_b": half, "p_z": half}, {"prediction": half}):
        assert found({"id": IDS, **raw}, **kind) == ["predictions_wrong_columns"]


def test_a_script_may_take_either_form():
    assert check(
        {"id": IDS, "prediction": ["a", "b", "c"]}, expected(Needs.ANY, numeric=False)
    ).columns == {"prediction": ["a", "b", "c"]}
    raw = {"id": IDS, "p_x": [5, -1, "2"]}
    assert check(raw, expected(Needs.ANY, numeric=False)).columns == {"p_x": [5.0, -1.0, 2.0]}
    assert found({"id": IDS, "other": [1, 2, 3]}, needs=Needs.ANY) == ["predictions_wrong_columns"]


def test_two_predictions_agree_exactly_for_classes_and_closely_for_numbers():
    assert differing({"prediction": ["a", "b"]}, {"prediction": ["a", "c"]}, ["x", "y"]) == ["y"]
    first = {"prediction": [1.0, 100.0, 1e-9]}
    assert differing(first, {"prediction": [1.000009, 100.0, 2e-9]}, IDS) == []
    assert differing(first, {"prediction": [1.01, 100.0, 1e-9]}, IDS) == ["r1"]
    assert differing({"p_a": [0.5], "p_b": [0.5]}, {"p_a": [0.5], "p_b": [0.6]}, ["x"]) == ["x"]
    assert differing({"prediction": [1e308, 1e308]}, {"prediction": [1e308, -1e308]}, IDS) == [
        "r2"
    ]


def test_class_names_of_label_columns():
    assert class_names(np.array([0, 12, 3])) == ["0", "12", "3"]
    assert class_names(np.array([0.0, 0.5])) == ["0", "0.5"]
    assert class_names(np.array([True, False])) == ["1", "0"]
    assert class_names(np.array(["0", "b"])) == ["0", "b"]
    assert classes_of(["10", "9", "b"], ["a"]) == ("9", "10", "a", "b")
    with pytest.raises(ValueError, match="row 1 is nan"):
        class_names(np.array([0.0, np.nan]))
