"""Rounds of real replicas over real gloo and a real lighthouse, against the arithmetic by hand."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.training.replica_runs import Replicas, end_all

TINY = 1e-6


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    end_all()


def rounds(run: Replicas) -> list[tuple[dict, dict]]:
    one, two = run.kept(0), run.kept(1)
    assert [each["round"] for each in one] == [each["round"] for each in two]
    return list(zip(one, two, strict=True))


def tensor(told: dict, name: str) -> torch.Tensor:
    return torch.tensor(told[name], dtype=torch.float64)


def assert_step(told: tuple[dict, dict], want: torch.Tensor) -> None:
    """The global parameters after a round; the message has both signs' differences."""
    one, two = told
    assert one["after"] == two["after"]
    before, after = tensor(one, "global"), tensor(one, "after")
    other = 2 * before - want
    off, turned = (float((after - each).abs().max()) for each in (want, other))
    assert off < TINY, f"off by {off:.3g}; with the sign turned off by {turned:.3g}"
    assert float((after - before).abs().max()) > 1e-4


def test_plain_outer_sgd_every_step_is_averaging(tmp_path: Path) -> None:
    said = {"sync_every": 1, "outer_lr": 1.0, "momentum": 0.0, "nesterov": False}
    run = Replicas(tmp_path, {"plain": True}, said).start()
    assert run.wait() == 0, run.err
    assert len(rounds(run)) == 4
    for told in rounds(run):
        one, two = tensor(told[0], "local"), tensor(told[1], "local")
        assert float((one - two).abs().max()) > 1e-5  # they had different rows
        assert_step(told, (one + two) / 2)


def test_nesterov_by_hand_losses_by_tokens_and_the_same_bits(tmp_path: Path) -> None:
    run = Replicas(tmp_path, {}, {"sync_every": 3}).start()
    assert run.wait() == 0, run.err
    velocity = None
    for told in rounds(run):
        before = tensor(told[0], "global")
        gradient = before - (tensor(told[0], "local") + tensor(told[1], "local")) / 2
        velocity = gradient if velocity is None else 0.9 * velocity + gradient
        assert_step(told, before - 0.7 * (gradient + 0.9 * velocity))
    assert run.digest(0) == run.digest(1)

    logged = [row for row in run.rows() if row["event"] == "epoch"]
    assert [row["epoch"] for row in logged] == [0, 1, 2, 3]
    for row in logged:
        seen = row["metrics"]
        own = [seen["replica-0/loss"], seen["replica-1/loss"]]
        assert seen["loss"] == pytest.approx(
            (own[0] + 2 * own[1]) / 3
        )  # it notes twice the tokens
        assert (seen["participants"], seen["tokens"], seen["batch"]) == (2, 36, 8)
    (final,) = (row for row in run.rows() if row["event"] == "checkpoint")
    assert final["path"] == "replicas/0/checkpoints/model.pt"
    samples = json.loads((tmp_path / "run" / "samples.json").read_text())
    assert samples["seen"] == {"2": 48}  # 4 rounds of 2 x 3 x 4 rows
    told = run.told(1)
    assert told[:4] == ["starting", "waiting for quorum", "training", "waiting for quorum"]
    assert told[-1] == "ended"


def test_fragments_are_synced_in_turn_while_training_goes_on(tmp_path: Path) -> None:
    said = {"sync_every": 4, "fragments": 2, "delay": 1}
    run = Replicas(tmp_path, {"rounds": 6}, said).start()
    assert run.wait() == 0, run.err
    assert [told[0]["names"] for told in rounds(run)] == [
        ["0__weight"],
        ["0__bias", "3__weight", "3__bias"],
    ] * 3
    for one, two in rounds(run):
        assert one["global"] == two["global"]


def test_what_stays_of_the_local_weights_is_not_in_the_global_ones(tmp_path: Path) -> None:
    """Case 51: mixing alters no saved global copy, which the next round starts from."""
    plain = {"outer_lr": 1.0, "momentum": 0.0, "nesterov": False}
    run = Replicas(tmp_path, {}, {"sync_every": 2, "mix": 0.5, **plain}).start()
    assert run.wait() == 0, run.err
    told = rounds(run)
    for (one, two), (after_one, after_two) in itertools.pairwise(told):
        own = [tensor(each, "local") for each in (one, two)]
        mean = (own[0] + own[1]) / 2
        assert after_one["global"] == after_two["global"]
        assert float((tensor(after_one, "global") - mean).abs().max()) < TINY
        for each, local in zip((one, two), own, strict=True):
            mixed = (mean + local) / 2
            assert float((tensor(each, "after") - mixed).abs().max()) < TINY
        assert one["after"] != two["after"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("widths_differ", "0.weight is [16, 8, 'torch.float32'] in replica 0, [17, 8"),
        ("rows_differ", "samples.count is 48 in replica 0, 49 in replica 1"),
    ],
)
def test_replicas_that_train_something_else_end_the_run(
    tmp_path: Path, case: str, said: str
) -> None:
    """gloo ended one of them, and the others trained on as if it had died."""
    run = Replicas(tmp_path, {case: True}).start()
    assert run.wait() == 1
    assert "The replicas do not train the same" in run.err
    assert said in run.err
    assert not (run.of(0) / "kept.jsonl").exists()


def test_weights_that_differ_at_the_start_are_told(tmp_path: Path) -> None:
    run = Replicas(tmp_path, {"seeds_differ": True}, {"restarts": 0}).start()
    assert run.wait() == 1
    assert "global parameters differ before round" in run.err
    assert "torch.manual_seed(log.seed)" in run.err.splitlines()[-1]
