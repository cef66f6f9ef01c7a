"""The composed trainer as two replicas: only the adapter is averaged, and its losses are noted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from harness.training.diloco.rounds import COLUMNS
from tests.training.replica_runs import Replicas, end_all

STEPS = 2
"""Of a round."""


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    end_all()


def test_replicas_of_a_composed_training_average_the_adapter_and_note_its_losses(
    tmp_path: Path,
) -> None:
    program = Path(__file__).with_name("diloco_composed.py")
    run = Replicas(tmp_path, said={"sync_every": STEPS}, command=("python", str(program))).start()
    assert run.wait() == 0, run.err
    told = [json.loads((run.of(each) / "told.json").read_text()) for each in (0, 1)]
    one, two = told
    assert (one["rows"], two["rows"]) == (["r0", "r2", "r4"], ["r1", "r3", "r5"])
    assert one["before"] == two["before"] != one["after"] == two["after"]
    assert one["losses"] != two["losses"]
    for each in told:
        assert [loss for loss, _ in each["noted"]] == pytest.approx(each["losses"], abs=1e-4)
        # Of each of three rounds the adapter, and the table that goes with it.
        assert sum(each["sent"]) == 3 * (each["adapter"] + 2 * len(COLUMNS))
        assert each["adapter"] < each["model"] / 2

    rounds = [row for row in run.rows() if "participants" in row.get("metrics", {})]
    assert [row["epoch"] for row in rounds] == [1, 3, 5]
    for place, row in enumerate(rounds):
        here = slice(place * STEPS, (place + 1) * STEPS)
        assert_round(row["metrics"], [each["noted"][here] for each in told])


def assert_round(metrics: dict[str, Any], noted: list[list[tuple[float, float]]]) -> None:
    """The mean over the tokens of both."""
    sums = [sum(loss * tokens for loss, tokens in own) for own in noted]
    tokens = [sum(tokens for _, tokens in own) for own in noted]
    assert min(tokens) > 0
    assert (metrics["participants"], metrics["tokens"]) == (2, sum(tokens))
    assert metrics["global/loss"] == pytest.approx(sum(sums) / sum(tokens))
