"""Each kind fires on its fault and stays quiet on the healthy run that looks most like it."""

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.kinds import KINDS
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings
from harness.domain.statuses import Direction

Values = Callable[[int], Mapping[str, float]]
NAN = float("nan")


def watched(
    values: Values, rows: int = 40, settings: WatchSettings | None = None, **row: Any
) -> list[Alarm]:
    watch = RunWatch(settings)
    found = watch.feed({"event": "start", "total_epochs": rows})
    for i in range(rows):
        more = {key: value(i) if callable(value) else value for key, value in row.items()}
        found += watch.feed({"event": "epoch", "epoch": i, "metrics": dict(values(i)), **more})
    return found


def falling(i: int) -> float:
    return 2.3 * math.exp(-i / 10) + 0.3 + 0.01 * Random(i).random()


def loss(value: Callable[[int], float]) -> Values:
    return lambda i: {"train_loss": value(i)}


def beside(**values: Callable[[int], float]) -> Values:
    """Beside a loss that falls as it should."""
    return lambda i: {
        "train_loss": falling(i),
        **{key.replace("__", "/"): value(i) for key, value in values.items()},
    }


def every(seconds: Callable[[int], float]) -> Callable[[int], float]:
    return lambda i: sum(seconds(k) for k in range(i + 1))


def replicas(name: str, *values: Callable[[int], float]) -> Values:
    """`replica-0/NAME` and so on."""
    told = {f"replica-{at}__{name}": value for at, value in enumerate(values)}
    return beside(**told)


FAULTS: dict[str, list[tuple[Values, dict[str, Any]]]] = {
    "replica_apart": [
        (replicas("seconds", lambda i: 1.0, lambda i: 1.0 if i < 9 else 2.5), {}),
        (replicas("seconds", lambda i: 1.0, lambda i: 1.1, lambda i: 4.0), {}),
        (replicas("drift", lambda i: 0.2, lambda i: 0.2 + 0.1 * i), {}),
    ],
    "non_finite": [
        (loss(lambda i: falling(i) if i < 9 else NAN), {}),
        (beside(grad_norm=lambda i: 1.0 if i < 9 else math.inf), {}),
        (loss(lambda i: NAN if i % 2 else falling(i)), {}),
    ],
    "divergence": [
        (
            loss(lambda i: falling(i) if i < 16 else 0.7 * 1.35 ** (i - 15)),
            {"learning_rate": lambda i: 0.01 * (0.1 + 0.9 * abs(2 * (i / 4 % 1) - 1))},
        ),
        (lambda i: {"loss": 1.7**i, "kl_loss": 0.1}, {}),
        (lambda i: {"loss": 1.7**i, "reward": 0.5, "kl": 0.1}, {}),
        (loss(lambda i: falling(i) if i < 9 else 2.0 * i), {}),
        (beside(val_loss=lambda i: 900.0, val_accuracy=lambda i: 0.4), {}),
    ],
    "loss_spike": [(loss(lambda i: falling(i) * (12 if 30 <= i < 34 else 1)), {})],
    "spike_recovered": [(loss(lambda i: falling(i) * (12 if i == 30 else 1)), {})],
    "gradient_blow_up": [
        (
            lambda i: {
                "train_loss": falling(i) if i < 15 else 1.2,
                "grad_norm": 1.0 if i < 15 else 90.0,
            },
            {},
        ),
        (lambda i: {"train_loss": 2 + 0.2 * (i % 3), "grad_norm": 1.0 + i}, {}),
    ],
    "gradient_vanishing": [(beside(grad_norm=lambda i: 1.0 if i < 15 else 1e-9), {})],
    "overfit": [
        (beside(val_loss=lambda i: 1 + 0.08 * abs(i - 8)), {}),
        (beside(val_accuracy=lambda i: 0.9 - 0.02 * max(0, i - 8)), {}),
        (lambda i: {"train_loss": 2.3 * 0.6**i, "val_loss": 0.9 + 1.4 * 0.6**i + 1e-4 * i}, {}),
        (
            lambda i: {
                "train_loss": 1.5 * 0.8**i + (0.004 if i % 5 else 0.016),
                "val_loss": 0.4 + 1.4 * 0.8**i + 0.02 * max(0, i - 15),
            },
            {},
        ),
    ],
    "plateau": [(loss(lambda i: falling(i) if i < 12 else 1.1 + 0.01 * Random(i).random()), {})],
    "no_progress": [
        (loss(lambda i: 2.3 + 0.01 * Random(i).random()), {}),
        (lambda i: {"train/return": -50.0}, {}),
        (lambda i: {"rollout/ep_rew_mean": 9.0, "train/loss": 0.3 + i % 3}, {}),
        (beside(val_accuracy=lambda i: 0.1 + 0.005 * (i % 3)), {}),
        (beside(val_loss=lambda i: 2.31 + 0.01 * (i % 2), val_accuracy=lambda i: 0.1), {}),
    ],
    "out_of_range": [
        (lambda i: {"loss": 2 / (1 + i), "val_accuracy": 8.8}, {}),
        (beside(eval_f1=lambda i: -0.2), {}),
        (beside(test_acc=lambda i: 101.0 + i), {}),
        (beside(val_mse=lambda i: -0.5 - i), {}),
        (lambda i: {"train_loss": 2 - 0.4 * i, "train_accuracy": 0.3}, {}),
    ],
    "score_collapse": [
        (beside(val_accuracy=lambda i: 0.9 if i < 15 else 0.1), {}),
        (
            lambda i: {
                "train_loss": 1.5 + 0.02 * i,
                "val_acc": 0.52 if i < 12 else 0.18 + 0.34 * 0.8 ** (i - 12),
            },
            {},
        ),
    ],
    "reward_gap": [
        (
            lambda i: (
                {"reward": 0.2 + 0.02 * i}
                | ({"eval_accuracy": 0.572 - 0.011 * i} if i % 3 == 2 else {})
            ),
            {},
        ),
        (
            lambda i: {
                "reward": 1.4 + 0.03 * i,
                "completions/mean_length": 64 + 1.5 * i,
                "kl": 0.05 * i,
                "entropy": 2.5 - 0.05 * i,
            },
            {},
        ),
    ],
    "short_rows": [
        (beside(samples=lambda i: 1200 if i < 12 else 64), {}),
        (loss(falling), {"step": lambda i: 19 * min(i, 12) + max(0, i - 12)}),
        (loss(falling), {"t": every(lambda i: 3.8 if i < 12 else 0.2)}),
    ],
    "stall": [(loss(lambda i: falling(min(i, 20))), {})],
    "dead_learning_rate": [
        (loss(falling), {"learning_rate": lambda i: 0.0 if i > 9 else 1e-3}),
        (loss(falling), {"learning_rate": lambda i: 1e-8 if i > 5 else 1e-3}),
        (beside(lr__group0=lambda i: 1e-8 if i > 5 else 1e-3), {}),
    ],
    "throughput_drop": [
        (loss(falling), {"t": every(lambda i: 1.0 if i < 20 else 9.0)}),
        (beside(tokens_per_second=lambda i: 1000.0 if i < 20 else 90.0), {}),
    ],
    "no_checkpoint": [(loss(falling), {"settings": WatchSettings(checkpoint_every=5)})],
    "memory_creep": [
        (beside(gpu_memory_mb=lambda i: 1000.0 + 50 * i), {}),
        (beside(gpu_memory_mb=lambda i: 2000.0 + 16 * i), {}),
    ],
    "reward_spread_zero": [
        (beside(reward_std=lambda i: 0.4 if i < 9 else 0.0), {}),
        (beside(frac_reward_zero_std=lambda i: 0.1 if i < 9 else 1.0), {}),
    ],
    "unmoved_parameters": [
        (beside(probe__left_out=lambda i: 0.4), {}),
        (beside(probe__unused=lambda i: 0.1), {}),
        (beside(probe__still=lambda i: 1.0), {}),
        (beside(probe__frozen=lambda i: 0.9), {}),
    ],
    "dead_units": [(beside(probe__dead_units=lambda i: 0.2 + 0.02 * i), {})],
    "update_size": [
        (beside(probe__update_ratio=lambda i: 0.5), {}),
        (beside(probe__update_ratio=lambda i: 1e-9), {}),
    ],
    "wrong_mode": [
        (beside(probe__evaluation_in_train_mode=lambda i: 0.5), {}),
        (beside(probe__training_in_eval_mode=lambda i: 1.0), {}),
    ],
    "batch_overlap": [(beside(probe__overlap=lambda i: 0.05), {})],
    "data_order": [
        (beside(probe__same_order=lambda i: 1.0), {}),
        (beside(probe__distinct=lambda i: 0.02), {}),
    ],
    "kl_high": [(beside(kl=lambda i: 0.1 if i < 9 else 30.0, reward=lambda i: 0.1), {})],
    "entropy_collapse": [(beside(entropy=lambda i: 1.4 if i < 9 else 0.01), {})],
    "channel_silent": [
        (beside(channel__distillation__rows=lambda i: 8.0 if i < 9 else 0.0), {}),
        (beside(channel__reward__rows=lambda i: 0.0), {}),
    ],
    "dpo_stuck": [
        (lambda i: {"loss": math.log(2), "rewards/margins": 0.0}, {}),
        (lambda i: {"loss": math.log(2) + 1e-3 * (i % 2), "rewards/margins": 0.0}, {}),
    ],
}


def harder_rows(i: int) -> Mapping[str, float]:
    """More classes from row 12 on: the loss jumps, what counts gets better."""
    later = i - 12
    return {
        "train_loss": 0.9 * 0.7**i if later < 0 else 0.3 + 2.2 * 0.9**later,
        "val_loss": 6.0 + 0.1 * i if later < 0 else 0.4 + 2.0 * 0.9**later,
        "val_accuracy": 0.28 + 0.002 * i if later < 0 else 0.9 - 0.5 * 0.9**later,
    }


LOOKALIKES: dict[str, list[tuple[Values, dict[str, Any]]]] = {
    "replica_apart": [
        (replicas("seconds", lambda i: 0.01, lambda i: 0.05), {}),
        (replicas("seconds", lambda i: 1.0, lambda i: 4.0 if i % 5 == 0 else 1.2), {}),
        (replicas("seconds", lambda i: 9.0 if i % 2 else 1.0), {}),  # the other is away
        (replicas("drift", lambda i: 0.2, lambda i: 0.5), {}),
    ],
    "channel_silent": [
        (beside(channel__reward__rows=lambda i: 0.0 if i % 8 else 4.0), {}),
        (beside(channel__dpo__loss=lambda i: 0.0), {}),
    ],
    "non_finite": [
        (beside(grad_norm=lambda i: math.inf if i in (3, 4, 20) else 1.0), {}),
        (loss(lambda i: NAN if i in (3, 12, 21, 30) else falling(i)), {}),
    ],
    "divergence": [
        (lambda i: {"loss": 1e-5 * (1 + 90 * (i % 7)), "reward": 0.1 + i / 50, "kl": 0.1}, {}),
        (loss(lambda i: falling(i) * (1.3 if i > 20 else 1)), {}),
        (harder_rows, {}),
        (beside(val_loss=lambda i: 10.5 * 0.9**i, val_accuracy=lambda i: 1 - 0.9 ** (i + 1)), {}),
    ],
    "loss_spike": [
        (loss(lambda i: falling(i) * (12 if i == 30 else 1)), {}),
        (harder_rows, {}),
    ],
    "spike_recovered": [(loss(lambda i: falling(i) * (1.2 if i == 20 else 1)), {})],
    "gradient_blow_up": [(beside(grad_norm=lambda i: 0.2 + 0.2 * i), {})],
    "gradient_vanishing": [
        (lambda i: {"train/loss": 20 - i / 3, "train/policy_gradient_loss": -0.01}, {}),
        (lambda i: {"train_loss": 2.3 * 0.5**i, "grad_norm": 0.5**i}, {}),
        (beside(grad_norm=lambda i: 1.0 / (1 + i)), {}),
    ],
    "overfit": [
        (
            beside(
                val_loss=lambda i: falling(i) + 0.1 + 0.02 * (i % 5), val_accuracy=lambda i: 0.9
            ),
            {},
        )
    ],
    "plateau": [(loss(falling), {})],
    "no_progress": [
        (lambda i: {"return": -50.0 if i < 30 else -49.0 + i}, {}),
        (loss(lambda i: 2.3 - 0.002 * i), {}),
        (
            lambda i: {
                "train_loss": 0.9,
                "val_loss": 0.8 + 1e-3 * Random(i).random(),
                "val_accuracy": 0.7,
            },
            {},
        ),
    ],
    "out_of_range": [
        (beside(val_accuracy=lambda i: 8.8 + 1.5 * i), {}),
        (beside(val_r2=lambda i: -3 + 0.1 * i), {}),
        (beside(val_neg_mse=lambda i: -1 / (1 + i)), {}),
        (lambda i: {"train_loss": -1 + 0.9**i, "knn_accuracy": 0.5}, {}),
    ],
    "score_collapse": [
        (beside(val_accuracy=lambda i: 0.2 if i in (8, 20, 30) else 0.8), {}),
        (beside(val_f1=lambda i: 0.5 + 0.15 * math.sin(i)), {}),
    ],
    "reward_gap": [
        (lambda i: {"reward": 0.2 + 0.02 * i, "eval_accuracy": 0.5 + 0.005 * i}, {}),
        (
            lambda i: {
                "reward": 0.2 + 0.02 * i,
                "completions/mean_length": 64 + 10 * i,
                "kl": 0.01 * i,
                "entropy": 0.5 - 0.002 * i,
            },
            {},
        ),
    ],
    "short_rows": [
        (beside(samples=lambda i: 1200 if i % 4 else 64), {}),
        (loss(falling), {"t": every(lambda i: 9.0 if i < 2 else 0.9)}),
    ],
    "stall": [
        (loss(lambda i: 0.0 if i > 20 else falling(i)), {}),
        (loss(lambda i: round(falling(i // 3), 2)), {}),
        (beside(val_loss=lambda i: falling(i - i % 6)), {}),
    ],
    "dead_learning_rate": [(loss(falling), {"learning_rate": lambda i: 1e-3 * (1 - i / 39)})],
    "throughput_drop": [(loss(falling), {"t": every(lambda i: 6.0 if i % 5 == 4 else 1.0)})],
    "memory_creep": [(beside(gpu_memory_mb=lambda i: 1000.0 + 800 * min(i, 4)), {})],
    "reward_spread_zero": [
        (lambda i: {"loss": 0.0, "reward_std": 0.7}, {}),
        (lambda i: {"loss": 0.0, "reward_std": 0.7, "rewards/format/std": 0.0}, {}),
    ],
    "unmoved_parameters": [
        (
            beside(
                probe__left_out=lambda i: 0.0,
                probe__unused=lambda i: 0.005,
                probe__still=lambda i: 0.02 if i == 0 else 0.0,
            ),
            {},
        )
    ],
    "dead_units": [(beside(probe__dead_units=lambda i: 0.6), {})],
    "update_size": [(beside(probe__update_ratio=lambda i: 0.1 / (1 + i) ** 2), {})],
    "wrong_mode": [(beside(probe__training_in_eval_mode=lambda i: 0.2), {})],
    "batch_overlap": [(beside(probe__overlap=lambda i: 0.005), {})],
    "data_order": [(beside(probe__same_order=lambda i: 0.1, probe__distinct=lambda i: 0.4), {})],
    "kl_high": [(beside(kl=lambda i: 0.2 * i), {})],
    "entropy_collapse": [(beside(entropy=lambda i: 1.4 - 0.03 * i), {})],
    "dpo_stuck": [(lambda i: {"loss": math.log(2) * 0.97**i, "rewards/margins": 0.01 * i}, {})],
}


@pytest.mark.parametrize("code", FAULTS)
def test_it_fires_on_its_fault(code: str) -> None:
    for values, more in FAULTS[code]:
        alarms = [alarm for alarm in watched(values, **more) if alarm.code == code]
        assert alarms, f"{code}: quiet"
        first = alarms[0]
        assert first.threshold.startswith(f"{code}.")
        assert first.evidence
        assert first.message.startswith(f"{first.metric}: ")


@pytest.mark.parametrize("code", LOOKALIKES)
def test_it_is_quiet_on_what_looks_like_it(code: str) -> None:
    for values, more in LOOKALIKES[code]:
        assert [alarm for alarm in watched(values, **more) if alarm.code == code] == []


def test_a_value_that_is_not_finite_in_the_last_row_waits_for_no_other() -> None:
    watch = RunWatch()
    for i in range(10):
        assert watch.feed({"step": i, "metrics": {"loss": NAN if i == 9 else falling(i)}}) == []
    (alarm,) = watch.feed({"event": "end"})
    assert (alarm.code, alarm.severity) == ("non_finite", Severity.WARNING)
    assert alarm.message == "loss: not finite in the last row"
    assert [each.code for each in watch.open] == ["non_finite"]
    assert watch.end() == []


def test_a_plateau_is_seen_by_steps_too() -> None:
    watch = RunWatch()
    found = watch.feed({"event": "start", "total_steps": 1000})
    for i in range(100):
        value = falling(i) if i < 12 else 1.2 + 0.1 * Random(i).random()
        found += watch.feed({"step": 10 * i, "metrics": {"loss": value}})
    (alarm,) = [alarm for alarm in found if alarm.code == "plateau"]
    assert (alarm.severity, 55 < alarm.row < 75) == (Severity.NOTE, True)


def test_a_log_that_rounds_the_end_of_its_schedule_to_zero_names_no_dead_rate() -> None:
    for rows, zeros, dead in ((1000, 40, False), (1000, 80, True)):
        watch = RunWatch()
        for i in range(rows):
            rate = 1e-3 * max(0.0, 1 - i / (rows - zeros))
            watch.feed({"step": i, "lr": round(rate, 6), "metrics": {"loss": falling(i)}})
        assert ("dead_learning_rate" in {alarm.code for alarm in watch.open}) is dead


def test_an_episode_lasts_as_long_as_its_policy_makes_it() -> None:
    for unit, slow in (("episode", False), ("iteration", True)):
        watch = RunWatch()
        for i in range(40):
            t = i if i < 20 else 20 + 10 * (i - 20)
            watch.feed({"step": i, "unit": unit, "t": t, "metrics": {"r": 1.0 + i}})
        assert ("throughput_drop" in {alarm.code for alarm in watch.open}) is slow


def test_a_drop_that_few_evaluated_rows_make_by_luck_is_no_overfit() -> None:
    """By chance, 20 rows with a chance of 0.75 have six right ones less at times."""
    for rows, told in ((20, False), (20_000, True)):
        watch = RunWatch()
        for i in range(40):
            hits = round(rows * (0.75 + (0.05 if i < 20 else -0.1)))
            hits += i % 2  # the least move is one row
            watch.feed({"epoch": i, "train_loss": 0.8**i, "val_accuracy": hits / rows})
        assert ("overfit" in {alarm.code for alarm in watch.open}) is told


def test_an_overfit_does_not_recover_while_it_is_worse() -> None:
    for values, more in FAULTS["overfit"][3:]:
        found = [alarm for alarm in watched(values, rows=60, **more) if alarm.code == "overfit"]
        assert found
        assert not any(alarm.recovered for alarm in found)
        assert found[-1].severity is Severity.WARNING


def test_one_row_is_one_row() -> None:
    (spike,) = [
        alarm
        for alarm in watched(FAULTS["spike_recovered"][0][0])
        if alarm.code == "spike_recovered"
    ]
    assert " for 1 row, back at " in spike.message


def test_every_kind_has_a_fault_here() -> None:
    # Below: one needs another event, one a parent.
    assert set(KINDS) - set(FAULTS) == {"resume_discontinuity", "behind_parent"}


PARENT = {i: (0.5 + 0.01 * i, 0.52 + 0.01 * i, 0.54 + 0.01 * i) for i in range(40)}


def behind(value: Callable[[int], float], **more: Any) -> list[Alarm]:
    given = {
        "directions": {"val_accuracy": Direction.MAXIMIZE},
        "parent": {"val_accuracy": PARENT},
    }
    settings = WatchSettings(**{**given, **more})
    found = watched(beside(val_accuracy=value), settings=settings)
    return [alarm for alarm in found if alarm.code == "behind_parent"]


def test_a_run_that_trails_every_seed_of_its_parent_is_told_once() -> None:
    (alarm,) = behind(lambda i: 0.45 + 0.01 * i if i > 9 else 0.52 + 0.01 * i)
    assert (alarm.severity, alarm.row) == (Severity.NOTE, 16)
    assert "0.59 here, 0.66 +- 0.02 there over 3 seeds" in alarm.message


@pytest.mark.parametrize(
    ("value", "more"),
    [
        (lambda i: 0.49 + 0.01 * i, {}),  # within the spread
        (lambda i: 0.4 if i % 5 else 0.52 + 0.01 * i, {}),  # not row after row
        (lambda i: 0.2, {"parent": {}}),  # without the plan's word
        (lambda i: 0.2, {"parent": {"val_accuracy": dict.fromkeys(range(40), (0.5,))}}),
        (lambda i: 2.0, {}),
    ],
)
def test_what_is_within_the_spread_or_not_compared_is_not_behind(value: Any, more: Any) -> None:
    assert behind(value, **more) == []


def test_where_less_is_better_behind_is_above() -> None:
    down = {"directions": {"val_accuracy": Direction.MINIMIZE}}
    assert behind(lambda i: 0.2, **down) == []
    assert len(behind(lambda i: 2.0, **down)) == 1


@pytest.mark.parametrize(("factor", "expected"), [(2.5, True), (1.05, False)])
def test_a_resume_far_from_where_it_stopped(factor: float, expected: bool) -> None:
    watch, found = RunWatch(), []
    for i in range(30):
        if i == 20:
            found += watch.feed({"event": "attempt", "attempt": 2})
        value = falling(i) * (factor if 20 <= i < 24 else 1)
        found += watch.feed({"event": "epoch", "epoch": i, "metrics": {"train_loss": value}})
    assert ("resume_discontinuity" in {alarm.code for alarm in found}) is expected


def test_no_row_decides_alone() -> None:
    for code, faults in FAULTS.items():
        for values, more in faults:
            asks = [alarm for alarm in watched(values, **more) if alarm.open]
            fatal = [alarm for alarm in asks if alarm.severity is Severity.FATAL]
            assert all(alarm.row >= 3 for alarm in fatal), code


def test_a_rise_of_the_learning_rate_explains_a_rise_of_the_loss() -> None:
    def restarted(i: int) -> float:
        return falling(i % 30)

    assert any(a.open for a in watched(loss(restarted), rows=60))
    rates = {"learning_rate": lambda i: 1e-3 * (1 - (i % 30) / 30)}
    assert [a for a in watched(loss(restarted), rows=60, **rates) if a.open] == []


def test_two_players_are_no_fault() -> None:
    wild = Random(1)
    assert (
        watched(
            lambda i: {"d_loss": 3 * wild.random(), "g_loss": math.exp(3 * wild.random())},
            rows=200,
        )
        == []
    )


def logged(
    epochs: list[int],
    total: int,
    values: Callable[[int], float],
    every: int | None = None,
    rate: Values | None = None,
) -> dict[str, Alarm]:
    """The first alarm of each kind over rows of these epochs, in that order; several rows may be of
    one epoch."""
    watch = RunWatch(WatchSettings(checkpoint_every=every))
    found = watch.feed({"event": "start", "total_epochs": total})
    for row, epoch in enumerate(epochs):
        more = {} if rate is None else rate(epoch)
        found += watch.feed(
            {"event": "epoch", "epoch": epoch, "metrics": {"train_loss": values(row)}, **more}
        )
    return {alarm.code: alarm for alarm in reversed(found)}


def flat(row: int) -> float:
    return 2.3 + 0.01 * Random(row).random() + (row > 0) * 0.01


def test_many_rows_of_one_epoch_are_one_epoch() -> None:
    assert "no_checkpoint" not in logged([0] * 50 + [1] * 50, 10, falling, every=1)
    late = logged([epoch for epoch in range(4) for _ in range(20)], 10, falling, every=1)[
        "no_checkpoint"
    ]
    assert (late.place, late.row) == (2, 42)
    assert late.message == "checkpoint: none for 3 epochs, expected one within 2"


def test_one_row_in_many_steps_is_many_steps() -> None:
    """As transformers reports: the plan's cadence and the total count steps, and ten of them have
    one row."""
    steps = list(range(9, 1000, 10))
    assert logged(steps, 1000, falling, every=100)["no_checkpoint"].place == 209
    assert "dead_learning_rate" not in logged(
        steps, 1000, falling, rate=lambda step: {"learning_rate": 1e-3 * (step < 960)}
    )
    dead = logged(steps, 1000, falling, rate=lambda step: {"learning_rate": 1e-3 * (step < 500)})[
        "dead_learning_rate"
    ]
    assert dead.message == "learning_rate: 0 with 48% of the epochs left"


def test_a_rate_of_zero_in_rows_of_whole_epochs_of_rows() -> None:
    epochs = [epoch for epoch in range(10) for _ in range(100)]
    found = logged(epochs, 10, falling, rate=lambda epoch: {"learning_rate": 1e-3 * (epoch < 2)})
    assert found["dead_learning_rate"].place == 2
    assert "dead_learning_rate" not in logged(
        epochs, 10, falling, rate=lambda epoch: {"learning_rate": 1e-3 * (epoch < 9)}
    )


@pytest.mark.parametrize("each", [1, 10, 50])
def test_a_loss_that_stands_still_is_told_however_often_it_is_logged(each: int) -> None:
    steps = list(range(each - 1, 1000, each))
    found = logged(steps, 1000, flat)
    begun, flattened = found["no_progress"].place, found["plateau"].place
    assert begun is not None
    assert flattened is not None
    assert 100 <= begun < 100 + 10 * each
    assert 500 <= flattened < 500 + 3 * each
