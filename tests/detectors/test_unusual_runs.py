"""Faults that few expect, and healthy trainings that look odd: what the watch asks of a person."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from bench.detectors.made_up_faults import FAULTS
from harness.detectors.alarm import Alarm, Severity
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings
from harness.domain.statuses import Direction

torch = pytest.importorskip("torch")
from bench.detectors.unusual_trainings import SHAPES  # noqa: E402

QUICK = [
    "vae_kl_loss",
    "wgan",
    "right_answer",
    "boosted_to_the_best_round",
    "slow_preferences",
    "fine_tuned_by_step",
    "regression_1e4",
    "flow_below_0",
    "contrastive_below_0",
    "noisy_rl",
    "five_rows",
]


def watched(
    rows: Iterable[Mapping[str, Any]], settings: WatchSettings | None = None
) -> tuple[RunWatch, list[Alarm]]:
    watch = RunWatch(settings)
    return watch, [alarm for row in rows for alarm in watch.feed(row)]


@pytest.mark.parametrize("name", FAULTS)
def test_an_unexpected_fault_is_told(name: str) -> None:
    fault = FAULTS[name]
    watch, found = watched(fault.rows(0))
    named = [a for a in found if a.code in fault.codes and not a.recovered]
    assert named, [a.code for a in found]
    assert fault.noted or any(a.code in fault.codes for a in watch.open)


@pytest.mark.parametrize("name", QUICK)
def test_a_healthy_run_that_looks_odd_asks_for_nothing(name: str) -> None:
    watch, _ = watched(SHAPES[name](0))
    assert watch.open == []


def test_the_plans_metric_decides_whether_an_overfit_asks_for_a_diagnosis() -> None:
    rows = [
        {
            "epoch": i,
            "train_loss": 0.8**i,
            "val_loss": 0.5 + 0.05 * abs(i - 6),
            "val_accuracy": 0.8 + 0.001 * i,
        }
        for i in range(30)
    ]
    _, (note,) = watched(rows)
    assert (note.code, note.metric, note.severity) == ("overfit", "val_loss", Severity.NOTE)
    loss = WatchSettings(directions={"val_loss": Direction.MINIMIZE})
    _, (alarm, *_) = watched(rows, loss)
    assert (alarm.code, alarm.severity) == ("overfit", Severity.WARNING)
    score = WatchSettings(directions={"val_accuracy": Direction.MAXIMIZE})
    assert watched(rows, score)[0].open == []


def test_the_best_checkpoint_ends_an_overfit() -> None:
    rows: list[dict[str, Any]] = [
        {"epoch": i, "train_loss": 0.8**i, "val_loss": 0.5 + 0.05 * abs(i - 6)} for i in range(20)
    ]
    watch, _ = watched(rows)
    assert [alarm.code for alarm in watch.open] == ["overfit"]
    newest = {"event": "checkpoint", "path": "a", "epoch": 19, "final": True}
    assert watch.feed(newest) == []
    (over,) = watch.feed({**newest, "epoch": 6})
    assert over.message == "val_loss: recovered: the final checkpoint is of the best row, 7"
    assert watch.open == []


def test_what_comes_and_goes_is_told_ever_more_seldom() -> None:
    rows = [{"step": i, "loss": 2.0, "reward_std": 0.4 * (i // 6 % 2)} for i in range(400)]
    _, found = watched(rows)
    told = [alarm for alarm in found if alarm.code == "reward_spread_zero"]
    assert 1 <= len(told) <= 4


def test_a_rate_that_ended_stays_told_at_the_end_of_the_run() -> None:
    rates = [{"epoch": i, "loss": 2.0 / (1 + i), "learning_rate": 1e-3} for i in range(10)]
    rates += [{"epoch": i, "loss": 0.2, "learning_rate": 0.0} for i in range(10, 40)]
    watch, _ = watched([{"event": "start", "total_epochs": 40}, *rates])
    assert "dead_learning_rate" in {alarm.code for alarm in watch.open}


@pytest.mark.parametrize("loss", [-1e308, 1e308])
def test_a_loss_of_any_size_beside_an_accuracy_is_watched(loss: float) -> None:
    rows = [{"epoch": i, "loss": loss, "accuracy": 0.5} for i in range(6)]
    watch, _ = watched(rows)
    assert watch.rows == 6
