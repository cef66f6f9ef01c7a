"""Faults whose rows are made up, and the alarms that name each.

They came from reports of logs in which nothing was said. Thresholds may be set on these; on the
kinds of `unseen` they may not.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

Rows = Iterator[dict[str, Any]]
Values = Callable[[int, Random], dict[str, Any]]
_LOSS = ("divergence", "loss_spike", "non_finite", "no_progress", "gradient_blow_up")
_STUCK = ("no_progress", "stall", "dead_learning_rate", "plateau")
NAN = float("nan")


class MadeFault(NamedTuple):
    rows: Callable[[int], Rows]
    codes: tuple[str, ...]
    noted: bool = False
    """Whether a note is what it should be."""


def fall(i: float, r: Random, start: float = 2.3, least: float = 0.3, by: float = 10) -> float:
    value = (start - least) * math.exp(-i / by) + least
    return value * (1 + 0.02 * r.gauss(0, 1))


def rise(i: float, r: Random, most: float = 0.9, by: float = 8) -> float:
    return most * (1 - 0.9 * math.exp(-i / by)) + 0.01 * r.gauss(0, 1)


def rows_of(values: Values, count: int = 40, *, steps: bool = False) -> Callable[[int], Rows]:
    """Keys in capitals are of the row: RATE, SECONDS; others are its metrics."""

    def rows(seed: int) -> Rows:
        r, now = Random(f"{values.__name__} {seed}"), 0.0
        yield {"event": "start", "t": 0.0} | ({} if steps else {"total_epochs": count})
        for i in range(count):
            metrics = values(i, r)
            now += metrics.pop("SECONDS", 2.0) * (1 + 0.05 * r.random())
            plain = {"event": "epoch", "step": 10 * i, "t": now, "metrics": metrics}
            if "RATE" in metrics:
                plain["learning_rate"] = metrics.pop("RATE")
            yield plain if steps else {**plain, "epoch": i}
        yield {"event": "end", "status": "completed", "t": now}

    return rows


def _exploding(key: str) -> Values:
    def values(i: int, r: Random) -> dict[str, Any]:
        loss = fall(i, r) if i < 15 else 0.5 * 1.7 ** (i - 14)
        return {"loss": loss, key: 0.1 + 0.02 * r.random()}

    values.__name__ = f"exploding {key}"
    return values


def nan_alternating(i: int, r: Random) -> dict[str, Any]:
    return {"loss": NAN if i % 2 else fall(i, r)}


def nan_last(i: int, r: Random) -> dict[str, Any]:
    return {"loss": NAN if i == 39 else fall(i, r)}


def cyclic_explosion(i: int, r: Random) -> dict[str, Any]:
    """The rate goes up and down every four rows; from row 16 on the loss goes up alone."""
    rate = 0.01 * (0.1 + 0.9 * (1 - abs(2 * (i / 4 % 1) - 1)))
    loss = fall(i, r) * (1.1 if i % 4 == 2 else 1)
    return {"loss": loss if i < 16 else 0.7 * 1.35 ** (i - 15), "RATE": rate}


def tiny_rate(i: int, r: Random) -> dict[str, Any]:
    """The schedule ends at 1e-8 after six of 40 epochs."""
    rate = 1e-3 * (1 - i / 6) if i < 6 else 1e-8
    loss = fall(min(i, 6), r)
    return {"train_loss": loss, "val_loss": loss + 0.1, "RATE": max(rate, 1e-8)}


def one_batch_samples(i: int, r: Random) -> dict[str, Any]:
    few = i >= 12
    loss = fall(min(i, 12) + max(0, i - 12) / 19, r) * (1 + 0.1 * r.gauss(0, 1) * few)
    return {"train_loss": loss, "samples": 64 if few else 1200, "val_loss": loss + 0.1}


def one_batch_seconds(i: int, r: Random) -> dict[str, Any]:
    few = i >= 12
    loss = fall(min(i, 12) + max(0, i - 12) / 19, r) * (1 + 0.1 * r.gauss(0, 1) * few)
    return {"train_loss": loss, "val_loss": loss + 0.1, "SECONDS": 0.2 if few else 3.8}


def accuracy_8_8(i: int, r: Random) -> dict[str, Any]:
    return {"loss": fall(i, r), "val_accuracy": 8.8 + 0.01 * r.random()}


def accuracy_fixed(i: int, r: Random) -> dict[str, Any]:
    return {"loss": 2 / (1 + i), "val_accuracy": 8.8}


def accuracy_negative(i: int, r: Random) -> dict[str, Any]:
    return {"train_loss": fall(i, r), "eval_f1": -0.2 + 0.01 * r.random()}


def accuracy_over_100(i: int, r: Random) -> dict[str, Any]:
    return {"train_loss": fall(i, r), "test_acc": 60 + 3 * i}


def negative_cross_entropy(i: int, r: Random) -> dict[str, Any]:
    """The sign of the targets is wrong: a loss that cannot be below 0 falls without end."""
    return {"train_loss": 2 - 0.4 * i + 0.05 * r.gauss(0, 1), "train_accuracy": rise(i, r, 0.3)}


def weight_decay_wins(i: int, r: Random) -> dict[str, Any]:
    score = rise(i, r, 0.55) if i < 12 else 0.18 + 0.34 * math.exp(-(i - 12) / 6)
    loss = fall(i, r, least=1.4) if i < 12 else 1.5 + 0.02 * (i - 12)
    return {"train_loss": loss, "val_acc": score + 0.01 * r.gauss(0, 1)}


def score_collapse(i: int, r: Random) -> dict[str, Any]:
    score = rise(i, r) if i < 20 else 0.1 + 0.01 * r.random()
    return {"train_loss": fall(i, r), "val_loss": fall(i, r, least=0.4), "val_accuracy": score}


def score_collapse_percent(i: int, r: Random) -> dict[str, Any]:
    score = rise(i, r) if i < 25 else 0.12 + 0.01 * r.random()
    return {"loss": fall(i, r), "eval_f1": 100 * score}


def runaway_length(i: int, r: Random) -> dict[str, Any]:
    """The reward is bought with length; KL and entropy say it."""
    part = i / 39
    return {
        "reward": 1.4 + 1.3 * part + 0.05 * r.gauss(0, 1),
        "completions/mean_length": 64 + 54 * part**1.5 + 2 * r.gauss(0, 1),
        "kl": 1.9 * part**1.5 + 0.02 * r.random(),
        "entropy": 2.5 - 1.9 * part + 0.05 * r.gauss(0, 1),
        "loss": 0.01 * r.gauss(0, 1),
    }


def gamed_reward(i: int, r: Random) -> dict[str, Any]:
    """The reward goes to 1, an accuracy that it does not see falls."""
    row = {
        "loss": 0.002,
        "reward": min(1.0, 0.2 + 0.03 * i),
        "reward_std": 0.2 + 0.05 * r.random(),
    }
    if i % 4 == 3:
        row["eval_accuracy"] = 0.572 - 0.0115 * i + 0.005 * r.gauss(0, 1)
    return row


def still_return(i: int, r: Random) -> dict[str, Any]:
    return {"episode_return": -50.0, "episode_length": 200}


def still_reward_policy(i: int, r: Random) -> dict[str, Any]:
    return {"rollout/ep_rew_mean": 9.0, "train/loss": 0.3 * r.random(), "train/approx_kl": 0.001}


def flat_return(i: int, r: Random) -> dict[str, Any]:
    """A return with noise that goes nowhere near any score: the policy is never updated."""
    return {"episode_return": -200.0 + 1e-9 * r.random(), "train/loss": 0.3 + 0.01 * r.random()}


def overfit_noisy(i: int, r: Random) -> dict[str, Any]:
    train = 0.8**i + 0.004 * math.exp(0.8 * r.gauss(0, 1))
    later = 0.4 + 1.4 * 0.8**i + 0.025 * max(0, i - 15)
    return {"train_loss": train, "val_loss": later * (1 + 0.01 * r.gauss(0, 1))}


def chance_beside_fine_loss(i: int, r: Random) -> dict[str, Any]:
    """Softmax twice, or labels that do not fit: the loss falls a little, the score is chance."""
    return {
        "train_loss": 2.303 - 0.002 * i + 0.002 * r.gauss(0, 1),
        "val_accuracy": 0.1 + 0.01 * r.gauss(0, 1),
    }


def chance_score(i: int, r: Random) -> dict[str, Any]:
    """The training loss is fine; the score on other rows never leaves 1 in 10."""
    return {
        "train_loss": fall(i, r),
        "val_loss": 2.6 + 0.02 * i + 0.01 * r.gauss(0, 1),
        "val_accuracy": 0.1 + 0.006 * r.gauss(0, 1),
    }


def plateau_steps(i: int, r: Random) -> dict[str, Any]:
    return {"loss": fall(min(i, 8), r)}


def creeping_memory(i: int, r: Random) -> dict[str, Any]:
    """12 MB an epoch on 2 GB."""
    return {"loss": fall(i, r), "gpu_memory_mb": 2000 + 12 * i + r.random()}


def late_divergence(i: int, r: Random) -> dict[str, Any]:
    """Slowly up from row 20 on, until it is above the start."""
    return {"train_loss": fall(i, r) if i < 20 else 0.6 * 1.12 ** (i - 20)}


def negative_bce(i: int, r: Random) -> dict[str, Any]:
    return {"train_bce": 0.6 - 0.1 * i + 0.02 * r.gauss(0, 1)}


def auc_collapse(i: int, r: Random) -> dict[str, Any]:
    return {
        "train_loss": fall(i, r, 0.69, 0.2),
        "val_auc": rise(i, r, 0.92) if i < 22 else 0.48 + 0.02 * r.gauss(0, 1),
    }


def win_rate_falls(i: int, r: Random) -> dict[str, Any]:
    row = {"train/reward": -1 + 0.08 * i + 0.1 * r.gauss(0, 1), "train/reward_std": 0.5}
    return row | ({"eval/win_rate": 0.55 - 0.01 * i} if i % 3 == 2 else {})


def growing_swing(i: int, r: Random) -> dict[str, Any]:
    return {"train_loss": 0.6 + 0.04 * 1.18**i * (i % 2) + 0.01 * r.random()}


FAULTS: dict[str, MadeFault] = {
    **{
        f"explosion_beside_{key}": MadeFault(rows_of(_exploding(key)), _LOSS)
        for key in ("kl", "kl_loss", "reward", "entropy", "reward_std")
    },
    "nan_alternating": MadeFault(rows_of(nan_alternating), ("non_finite",)),
    "nan_last": MadeFault(rows_of(nan_last), ("non_finite",)),
    "cyclic_explosion": MadeFault(rows_of(cyclic_explosion), _LOSS),
    "tiny_rate": MadeFault(rows_of(tiny_rate), _STUCK),
    "one_batch_samples": MadeFault(rows_of(one_batch_samples), ("short_rows",)),
    "one_batch_seconds": MadeFault(rows_of(one_batch_seconds), ("short_rows",)),
    "accuracy_8.8": MadeFault(rows_of(accuracy_8_8), ("out_of_range", "no_progress")),
    "accuracy_8.8_fixed": MadeFault(rows_of(accuracy_fixed), ("out_of_range",)),
    "f1_negative": MadeFault(rows_of(accuracy_negative), ("out_of_range",)),
    "accuracy_over_100": MadeFault(rows_of(accuracy_over_100), ("out_of_range",)),
    "negative_cross_entropy": MadeFault(rows_of(negative_cross_entropy), ("out_of_range",)),
    "weight_decay_wins": MadeFault(rows_of(weight_decay_wins), ("score_collapse",)),
    "score_collapse": MadeFault(rows_of(score_collapse), ("score_collapse",)),
    "score_collapse_percent": MadeFault(rows_of(score_collapse_percent), ("score_collapse",)),
    "reward_and_length": MadeFault(rows_of(runaway_length, steps=True), ("reward_gap",)),
    "reward_gamed": MadeFault(rows_of(gamed_reward, steps=True), ("reward_gap",)),
    "return_stuck": MadeFault(rows_of(still_return, 400, steps=True), ("no_progress",)),
    "reward_stuck": MadeFault(rows_of(still_reward_policy, 100, steps=True), ("no_progress",)),
    "return_flat": MadeFault(rows_of(flat_return, 100, steps=True), ("no_progress",)),
    "overfit_noisy": MadeFault(rows_of(overfit_noisy, 60), ("overfit",)),
    "chance": MadeFault(rows_of(chance_beside_fine_loss), ("no_progress",)),
    "chance_on_other_rows": MadeFault(rows_of(chance_score), ("no_progress", "overfit")),
    "plateau": MadeFault(rows_of(plateau_steps, 60), ("plateau",), noted=True),
    "creeping_memory": MadeFault(rows_of(creeping_memory, 60), ("memory_creep",)),
    "late_divergence": MadeFault(rows_of(late_divergence), _LOSS),
    "negative_bce": MadeFault(rows_of(negative_bce), ("out_of_range",)),
    "auc_collapse": MadeFault(rows_of(auc_collapse), ("score_collapse", "overfit")),
    "win_rate_falls": MadeFault(rows_of(win_rate_falls, steps=True), ("reward_gap",)),
    "growing_swing": MadeFault(rows_of(growing_swing), _LOSS),
}
