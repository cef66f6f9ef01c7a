"""Honest projects: tables of the same kind beside held-out, and nothing is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.plans.row_search import Secret, search

Table = dict[str, Any]
Draw = np.random.Generator


def normal(draw: Draw, rows: int) -> Table:
    return {"x": draw.normal(size=(rows, 6)), "y": draw.integers(0, 2, rows)}


def integers(draw: Draw, rows: int) -> Table:
    return {"x": draw.integers(0, 10, (rows, 5)), "y": draw.integers(0, 3, rows)}


def one_hot(draw: Draw, rows: int) -> Table:
    return {"x": np.eye(8)[draw.integers(0, 8, rows)], "y": draw.integers(0, 2, rows)}


def flags(draw: Draw, rows: int) -> Table:
    return {"x": draw.integers(0, 2, (rows, 12)), "y": draw.integers(0, 2, rows)}


def images(draw: Draw, rows: int) -> Table:
    """Ten kinds of blurred shapes with a black border, 0 to 255."""
    kinds = np.random.default_rng(99).random((10, 14, 14)) > 0.6
    y = draw.integers(0, 10, rows)
    x = np.zeros((rows, 16, 16), dtype=np.uint8)
    x[:, 1:15, 1:15] = kinds[y] * draw.integers(180, 256, (rows, 14, 14))
    return {"x": x, "y": y}


def few_values(draw: Draw, rows: int) -> Table:
    return {"x": draw.integers(0, 40, (rows, 1)), "y": draw.integers(0, 2, rows)}


def long_tail(draw: Draw, rows: int) -> Table:
    return {"x": draw.zipf(1.6, (rows, 2)).clip(0, 10**6), "y": draw.integers(0, 2, rows)}


def rounded(draw: Draw, rows: int) -> Table:
    return {"x": np.round(draw.normal(size=(rows, 4)), 1), "y": draw.integers(0, 3, rows)}


def sorted_labels(draw: Draw, rows: int) -> Table:
    return {"x": draw.normal(size=(rows, 3)), "y": np.sort(draw.integers(0, 3, rows))}


def periodic_labels(draw: Draw, rows: int) -> Table:
    return {"x": draw.normal(size=(rows, 3)), "y": np.arange(rows) % 7}


def rare_labels(draw: Draw, rows: int) -> Table:
    return {"x": draw.normal(size=(rows, 3)), "y": (draw.random(rows) < 0.02).astype(int)}


def measured(draw: Draw, rows: int) -> Table:
    x = draw.normal(size=(rows, 3))
    return {"x": x, "y": np.round(x.sum(1) + draw.normal(size=rows), 1)}


def float32(draw: Draw, rows: int) -> Table:
    return {"x": draw.random((rows, 4)).astype(np.float32), "y": draw.integers(0, 2, rows)}


def grouped(draw: Draw, rows: int) -> Table:
    """Rows of a shop share the shop's size; no shop is in two tables."""
    sizes = draw.normal(size=30)
    shop = draw.integers(0, 30, rows)
    return {
        "x": np.column_stack([sizes[shop], draw.normal(size=rows)]),
        "y": draw.integers(0, 2, rows),
    }


def prices(draw: Draw, rows: int) -> Table:
    return {
        "x": np.round(np.exp(draw.normal(3, 1, (rows, 2))), 2),
        "y": draw.integers(0, 2, rows),
    }


def texts(draw: Draw, rows: int) -> Table:
    words = np.array([f"word{n}" for n in range(300)])
    made = [
        "You are a helpful assistant. " + " ".join(draw.choice(words, 12)) for _ in range(rows)
    ]
    return {"x": np.array(made), "y": draw.integers(0, 2, rows)}


KINDS: list[Callable[[Draw, int], Table]] = [
    normal,
    integers,
    one_hot,
    flags,
    images,
    few_values,
    long_tail,
    rounded,
    sorted_labels,
    periodic_labels,
    rare_labels,
    measured,
    float32,
    grouped,
    prices,
    texts,
]


def with_ids(table: Table) -> Table:
    return {"id": np.arange(len(table["y"])), **table}


def as_lines(table: Table) -> str:
    columns = (np.asarray(part).reshape(len(table["y"]), -1).tolist() for part in table.values())
    rows = zip(*columns, strict=True)
    return "\n".join(json.dumps(dict(zip(table, row, strict=True))) for row in rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rows", [(600, 150), (2_000, 400)])
def test_honest_projects_are_not_refused(
    tmp_path: Path, kind: Callable[[Draw, int], Table], rows: tuple[int, int]
) -> None:
    """The splits in several forms, a pool of unlabelled rows ten times as long, more tables of the
    same kind, predictions, logs."""
    draw = np.random.default_rng(sum(map(ord, kind.__name__)))
    train, validation, held_out = (
        with_ids(kind(draw, count)) for count in (rows[0], rows[1], rows[1])
    )
    np.savez(tmp_path / "train.npz", **train)
    np.savez(tmp_path / "validation.npz", **validation)
    (tmp_path / "train.jsonl").write_text(as_lines(train))
    np.save(tmp_path / "pool.npy", kind(draw, 3 * rows[0])["x"])
    (tmp_path / "more.jsonl").write_text(as_lines(with_ids(kind(draw, rows[0]))))
    for seed in range(3):
        predicted = "\n".join(map(str, draw.permutation(validation["y"])))
        (tmp_path / f"predictions-{seed}.txt").write_text(predicted)
        log = [json.dumps({"step": n, "loss": float(np.exp(-n / 50))}) for n in range(300)]
        (tmp_path / f"log-{seed}.jsonl").write_text("\n".join(log))
    (tmp_path / "noise.csv").write_text(
        "\n".join(",".join(map(str, row)) for row in draw.integers(0, 3, (3_000, 4)).tolist())
    )
    secret = Secret(
        name="held-out",
        columns=held_out,
        inputs=["x"],
        label="y",
        id="id",
        known=[train, validation],
    )
    found = search(tmp_path, [secret], own=frozenset({"train.npz", "validation.npz"}))
    assert found.refusals() == []
    assert found.notes() == []


def test_shared_sizes_of_shops_in_a_list_of_shops_are_no_rows(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    train, held_out = (with_ids(grouped(draw, 300)) for _ in range(2))
    (tmp_path / "shops.csv").write_text(
        "\n".join(f"shop {n},{v!r}" for n, v in enumerate(np.unique(held_out["x"][:, 0]).tolist()))
    )
    secret = Secret(
        name="held-out", columns=held_out, inputs=["x"], label="y", id="id", known=[train]
    )
    assert search(tmp_path, [secret]).places == []
