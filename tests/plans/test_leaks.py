import numpy as np
import pytest

from harness.plans.leaks import id_tells, mantissa_leaks, telling_columns, telling_parts


def table(seed, n=400, width=6):
    draw = np.random.default_rng(seed)
    return {f"c{i}": draw.normal(size=n) for i in range(width)}


def names(columns, label="y"):
    return [
        leak.column
        for leak in telling_columns(columns, [name for name in columns if name != label], label)
    ]


@pytest.mark.parametrize("classes", [2, 10])
def test_a_label_in_another_form_is_found(classes):
    columns = table(1)
    columns["y"] = np.random.default_rng(2).integers(0, classes, 400)
    columns["code"] = np.array([f"k{value}" for value in columns["y"]])
    columns["scaled"] = columns["y"] * 3.7 - 1 + 0.001 * columns["c0"]
    assert sorted(names(columns)) == ["code", "scaled"]


@pytest.mark.parametrize("name", ["idle", "identity", "the x", "code"])
def test_a_column_is_told_by_its_name_whatever_it_is_called(name):
    columns = table(1)
    columns["y"] = np.random.default_rng(2).integers(0, 2, 400)
    columns[name] = np.array([f"k{value}" for value in columns["y"]])
    (leak,) = telling_columns(columns, [*table(1), name], "y")
    assert leak.words == f"The column {name!r} alone"


def test_what_is_made_of_columns_is_told_as_that():
    columns = table(1)
    columns["whole"] = np.random.default_rng(2).integers(0, 1000, 400)
    columns["y"] = columns["whole"] % 2
    words = [leak.words for leak in telling_parts(columns, [*table(1), "whole"], "y")]
    assert any(one.startswith("The last 1 bits of 'whole'") for one in words)


def test_a_measured_label_and_one_place_of_a_wide_column():
    columns = table(1)
    columns["y"] = np.random.default_rng(2).normal(size=400)
    wide = np.random.default_rng(3).normal(size=(400, 5))
    wide[:, 3] = np.tanh(columns["y"])
    columns["w"] = wide
    assert names(columns) == ["w[3]"]


@pytest.mark.parametrize("kind", ["classes", "rare", "numbers"])
def test_no_false_alarm_on_columns_that_say_nothing(kind):
    """40 tables of 30 columns: 1,200 chances."""
    for seed in range(40):
        columns = table(seed, n=80, width=30)
        draw = np.random.default_rng(1000 + seed)
        answers = {
            "classes": draw.integers(0, 3, 80),
            "rare": draw.random(80) < 0.05,
            "numbers": draw.normal(size=80),
        }
        columns["y"] = answers[kind]
        assert names(columns) == []


def test_a_strong_honest_feature_is_no_leak():
    columns = table(1)
    columns["y"] = (columns["c0"] + 0.3 * columns["c1"] > 0).astype(int)
    assert names(columns) == []


def test_one_column_alone_is_the_task_and_few_rows_say_nothing():
    columns = {"x": np.arange(100.0), "y": np.arange(100) > 50}
    assert names(columns) == []
    few = {"x": np.arange(40.0), "z": np.ones(40), "y": np.arange(40) > 20}
    assert names(few) == []


def parts(columns, label="y"):
    inputs = [name for name in columns if name != label]
    return [leak.column for leak in telling_parts(columns, inputs, label)]


def low_bits(values, answers, kind, bits):
    mask = (1 << bits) - 1
    return ((values.view(kind) & ~kind(mask)) | answers.astype(kind)).view(values.dtype)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_a_label_in_the_last_bits_or_digits_of_a_column_is_found(classes):
    y = np.random.default_rng(2).integers(0, classes, 400)
    bits = max(1, int(classes - 1).bit_length())
    single = table(1)["c0"].astype(np.float32)
    hidden = {
        "double": low_bits(table(1)["c0"], y, np.uint64, bits),
        "single": low_bits(single, y, np.uint32, bits),
        "whole": (np.random.default_rng(3).integers(0, 10**6, 400) // 16) * 16 + y,
        "tenth": np.round(np.round(table(4)["c1"], 3) + np.sign(table(4)["c1"]) * y * 1e-4, 4),
    }
    for name, values in hidden.items():
        columns = {**table(9), name: values, "y": y}
        assert names(columns) == [], name
        assert any(name in told for told in parts(columns)), name


def test_a_label_in_two_columns_together_is_found():
    draw = np.random.default_rng(3)
    y = draw.integers(0, 2, 400)
    noise, key = draw.normal(size=400) * 10, draw.integers(0, 256, 400)
    flag = draw.integers(0, 2, 400)
    signed = draw.normal(size=400)
    pairs = {
        "sum": (noise, y - noise),
        "difference": (noise, noise + y),
        "exclusive or": (key, key ^ y),
        "pair": (flag, flag ^ y),
        "product": (signed, np.abs(draw.normal(size=400)) * np.sign(signed) * (2 * y - 1)),
    }
    for what, (a, b) in pairs.items():
        columns = {**table(5, width=3), "a": a, "b": b, "y": y}
        assert names(columns) == [], what
        assert any("'a' and 'b'" in told for told in parts(columns)), what


@pytest.mark.parametrize("kind", ["classes", "rare", "numbers"])
def test_no_false_alarm_of_parts_on_columns_that_say_nothing(kind):
    for seed in range(6):
        columns = table(seed, n=80, width=12)
        draw = np.random.default_rng(1000 + seed)
        columns |= {f"k{n}": draw.integers(0, 10 ** (n + 1), 80) for n in range(4)}
        columns |= {f"r{n}": np.round(draw.normal(size=80), n + 1) for n in range(2)}
        answers = {
            "classes": draw.integers(0, 3, 80),
            "rare": draw.random(80) < 0.05,
            "numbers": draw.normal(size=80),
        }
        columns["y"] = answers[kind]
        assert parts(columns) == []


def test_honest_features_in_pairs_are_no_leak():
    columns = table(1, n=600)
    columns["y"] = (columns["c0"] + 0.3 * columns["c1"] > 0).astype(int)
    assert parts(columns) == []
    draw = np.random.default_rng(4)
    columns = {"c": draw.integers(0, 2, (600, 8)), "y": draw.integers(0, 2, 600)}
    assert parts(columns) == []


def test_ids_that_tell_the_label_are_named_and_a_sorted_table_is_not():
    draw = np.random.default_rng(6)
    y = draw.integers(0, 3, 300)
    told = {
        "text": np.array([f"{'abc'[k]}-{n:04d}" for n, k in enumerate(y)]),
        "end": np.array([f"{n:04d}{k}" for n, k in enumerate(y)]),
        "rest": np.arange(300) * 3 + y,
    }
    for name, ids in told.items():
        assert id_tells({"id": ids, "y": y}, "id", "y") is not None, name
    for ids in (np.arange(300), np.array([f"row-{n}" for n in range(300)])):
        assert id_tells({"id": ids, "y": y}, "id", "y") is None
        assert id_tells({"id": ids, "y": np.sort(y)}, "id", "y") is None


def test_mantissas_that_hold_the_label_are_told_apart_from_whole_numbers():
    y = np.random.default_rng(2).integers(0, 3, 400)
    bits = low_bits(table(1)["c0"], y, np.uint64, 2)
    whole = np.random.default_rng(3).integers(0, 10**6, 400) // 4 * 4 + y
    columns = {**table(9), "bits": bits, "whole": whole, "y": y}
    inputs = [name for name in columns if name != "y"]
    assert ["'bits'" in leak.column for leak in mantissa_leaks(columns, inputs, "y")] == [True]
    honest = {**table(9), "r": np.round(table(8)["c0"], 2), "y": y}
    assert mantissa_leaks(honest, [name for name in honest if name != "y"], "y") == []
