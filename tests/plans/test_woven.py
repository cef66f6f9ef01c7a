"""Labels beside the values of a table are found, and honest tables stay quiet."""

import numpy as np
import pytest

from harness.plans.bit_planes import planes
from harness.plans.data_review import data_findings, hidden_labels
from harness.plans.leaks import mantissa_leaks, telling_parts
from harness.plans.woven import chance

N = 400
DRAW = np.random.default_rng(11)
Y = DRAW.integers(0, 2, N)
X = DRAW.normal(size=(N, 4))


def put(
    x,
    bit,
    values,
    column,
):
    """`x` with `values` as a bit of each number of a column."""
    kind = np.uint64 if x.dtype == np.float64 else np.uint32
    words = np.ascontiguousarray(x).view(kind).copy()
    one = kind(1 << bit)
    words[:, column] = (words[:, column] & ~one) | (values.astype(kind) * one)
    return words.view(x.dtype)


def shared(parts):
    """As many columns of bits as `parts`, whose exclusive or is Y."""
    keys = np.random.default_rng(5).integers(0, 2, (parts - 1, N))
    return [*keys, np.bitwise_xor.reduce(keys, axis=0) ^ Y]


def in_columns(x, bits):
    for column, (bit, values) in enumerate(zip(bits, shared(len(bits)), strict=True)):
        x = put(
            x,
            bit,
            values,
            column,
        )
    return x


def in_digits(parts):
    x = np.round(X, 6)
    for column, values in enumerate(shared(parts)):
        x[:, column] = (np.round(x[:, column] * 1e6) // 2 * 2 + values) / 1e6
    return x


def wrong(share):
    return np.where(np.random.default_rng(6).random(N) < share, 1 - Y, Y)


WRITTEN = {
    "a middle bit of a double": put(
        X,
        12,
        Y,
        2,
    ),
    "a middle bit of a single": put(X.astype(np.float32), 12, Y, 2),
    "two columns": in_columns(X, (0, 0)),
    "other bits of two columns": in_columns(X, (3, 17)),
    "four columns": in_columns(X, (9, 9, 9, 9)),
    "a bit and a sign": put(X, 5, Y ^ (X[:, 1] > 0), 0),
    "the parity of the last digits": in_digits(3),
    "a bit that is wrong in each tenth row": put(X, 12, wrong(0.1), 0),
    "two columns, wrong in some rows": put(
        put(X, 4, shared(2)[0], 0), 4, shared(2)[0] ^ wrong(0.02), 1
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_label_beside_the_values_forbids_an_approval(name: str) -> None:
    (problem,) = hidden_labels({"train": {"x": WRITTEN[name], "y": Y}}, ["x"], "y")
    assert problem.code == "label_in_last_bits"


def test_a_label_that_stands_in_one_table_alone_is_found() -> None:
    draw = np.random.default_rng(12)
    train = {"x": draw.normal(size=(3 * N, 4)), "y": draw.integers(0, 2, 3 * N)}
    held_out = {
        "x": put(
            X,
            12,
            Y,
            0,
        ),
        "y": Y,
    }
    for split in ("validation", "held_out"):
        assert hidden_labels({"train": train, split: held_out}, ["x"], "y")
    assert hidden_labels({"train": train, "held_out": {"x": X, "y": Y}}, ["x"], "y") == []


def typed(form) -> np.ndarray:
    cells = [f"{value:.2f}" for value in X[:, 0]]
    told = [form(cell, label) for cell, label in zip(cells, Y.tolist(), strict=True)]
    return np.array(["n/a" if row % 9 == 0 else cell for row, cell in enumerate(told)])


FORMS = {
    "a space at the end": lambda cell, y: cell + " " * y,
    "a zero at the end": lambda cell, y: cell + "0" * y,
    "an exponent": lambda cell, y: cell + "e0" * y,
    "a large E": lambda cell, y: cell + "eE"[y] + "0",
    "a plus": lambda cell, y: "+" * y + cell.lstrip("-"),
    "invisible": lambda cell, y: cell + "\u200b" * y,
}


@pytest.mark.parametrize("name", FORMS)
def test_a_label_in_the_way_in_which_cells_are_typed_forbids_an_approval(name: str) -> None:
    table = {"t": typed(FORMS[name]), "x": X, "y": Y}
    (problem,) = hidden_labels({"train": table}, ["t", "x"], "y")
    assert "'t'" in problem.message
    assert "in one form" in problem.hint


def test_of_several_classes_and_of_a_measured_label() -> None:
    classes = np.random.default_rng(3).integers(0, 4, N)
    x = put(
        put(
            X,
            20,
            classes & 1,
            0,
        ),
        21,
        classes >> 1,
        1,
    )
    assert hidden_labels({"train": {"x": x, "y": classes}}, ["x"], "y")
    price = np.random.default_rng(4).normal(size=N)
    x = put(X, 20, price > np.median(price), 0)
    assert hidden_labels({"train": {"x": x, "y": price}}, ["x"], "y")


def honest(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, N)
    close = draw.normal(size=N) + 3 * y
    return {
        "y": y,
        "close": close,
        "single": close.astype(np.float32) + draw.normal(size=N).astype(np.float32),
        "sensor": np.round(20 + draw.normal(size=N) + y, 3),
        "price": np.round(draw.integers(1, 99, N) + 9 * y + draw.choice([0.99, 0.95, 0.5], N), 2),
        "count": draw.poisson(3 + 4 * y),
        "large": draw.integers(0, 10**6, N) + 300_000 * y,
        "code": draw.integers(0, 4, N).astype(np.float64),
        "pixels": np.clip(draw.normal(100 + 40 * y[:, None], 40, (N, 5)), 0, 255).astype(np.uint8),
        "scaled": np.clip(draw.normal(100, 40, (N, 3)), 0, 255).astype(np.uint8) / np.float32(255),
        "text": np.array([f"Word {k}" if k % 5 else "n/a" for k in draw.integers(0, 99, N)]),
        "amount": np.array([f"{k:.2f}" if k > -1 else "" for k in draw.normal(size=N)]),
    }


@pytest.mark.parametrize("seed", range(4))
def test_honest_tables_stay_quiet(seed: int) -> None:
    table = honest(seed)
    inputs = [name for name in table if name != "y"]
    assert mantissa_leaks(table, inputs, "y") == []
    assert telling_parts(table, inputs, "y") == []


def test_what_truly_predicts_is_no_problem() -> None:
    """A sign, a threshold, prices that end in 97 when they are reduced, cells that are missing."""
    draw = np.random.default_rng(8)
    noise = draw.random(N) < 0.05
    reduced = np.where(Y ^ noise, 0.97, 0.99)
    told = {
        "sign": np.abs(draw.normal(size=N)) * np.where(Y ^ noise, 1, -1),
        "threshold": np.round(draw.random(N) + (Y ^ noise), 3),
        "price": np.round(np.floor(np.exp(4 + draw.normal(size=N))) + reduced, 2),
        "missing": np.where(Y ^ noise, "", np.array([f"{k:.2f}" for k in draw.normal(size=N)])),
        "upper": np.where(Y ^ noise, "SALE", "hello"),
        "zip": np.where(Y ^ noise, "02139", "94110 a"),
    }
    for name, values in told.items():
        assert hidden_labels({"train": {name: values, "x": X, "y": Y}}, [name, "x"], "y") == []


def test_a_task_that_is_an_exclusive_or_is_a_note() -> None:
    bits = np.random.default_rng(9).integers(0, 2, (N, 5))
    table = {"bits": bits, "y": bits[:, 0] ^ bits[:, 2] ^ bits[:, 3]}
    assert hidden_labels({"train": table}, ["bits"], "y") == []
    (found,) = data_findings({"train": table}, ["bits"], "y")
    assert found.code == "feature_tells_label"
    assert "exclusive or" in found.message


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_false_alarm_in_a_hundred_tables_that_say_nothing() -> None:
    for seed in range(100):
        draw = np.random.default_rng(seed)
        table = {
            "x": draw.normal(size=(120, 3)),
            "k": draw.integers(0, 1000, 120),
            "r": np.round(draw.normal(size=120), 4),
            "y": draw.integers(0, 3, 120) if seed % 2 else draw.random(120) < 0.2,
        }
        assert mantissa_leaks(table, ["x", "k", "r"], "y") == []
        assert telling_parts(table, ["x", "k", "r"], "y") == []


def test_the_chance_is_the_one_of_fishers_exact_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(2)
    for _ in range(20):
        truth, guess = (draw.integers(0, 2, 50).astype(np.uint8) for _ in range(2))
        table = [[(truth & guess).sum(), (truth & ~guess & 1).sum()],
                 [(~truth & 1 & guess).sum(), (~truth & ~guess & 1).sum()]]  # fmt: skip
        expected = stats.fisher_exact(table, alternative="greater").pvalue
        assert chance(truth, guess) == pytest.approx(expected)


def test_planes_of_rounded_numbers_are_in_their_digits() -> None:
    draw = np.random.default_rng(13)
    rounded = planes("x", np.round(draw.normal(size=N) * 40, 3))
    assert all(plane.level.startswith("digit") for plane in rounded if plane.fine)
    assert any(plane.fine for plane in rounded)
    measured = planes("x", draw.normal(size=N))
    assert {plane.level for plane in measured if plane.fine} == {f"bit {n}" for n in range(45)}
