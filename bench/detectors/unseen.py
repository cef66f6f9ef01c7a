"""Faults and healthy shapes that no threshold was set on: written after the rules.

The first such half had 89 of 105 faults named and 10 of 125 healthy runs that asked for a
diagnosis; the four kinds that were missed and the two shapes were moved, rules mended, others
written in their place, by the same hand.

Whoever changes a rule after looking at these moves what was looked at to `made_up_faults` or
`unusual_trainings`, and writes others.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench.detectors.made_up_faults import MadeFault, fall, rise, rows_of
from bench.detectors.unusual_trainings import trained, without_rate

Row = dict[str, Any]
NAN = float("nan")


def back_to_chance(i: int, r: Random) -> Row:
    """The weights are lost at row 15, and nothing is learned again."""
    return {"train_loss": fall(i, r) if i < 15 else 2.303 + 0.004 * r.gauss(0, 1)}


def nan_in_evaluation(i: int, r: Random) -> Row:
    return {"train_loss": fall(i, r), "eval_loss": fall(i, r) if i % 3 == 0 else NAN}


def perplexity_below_1(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "val_perplexity": 0.7 + 0.02 * r.random()}


def map_collapse(i: int, r: Random) -> Row:
    score = rise(i, r, 0.62) if i < 18 else max(0.1, 0.62 - 0.05 * (i - 18))
    return {"train/box_loss": fall(i, r, 1.8, 0.5), "metrics/mAP50": 100 * score}


def slow_collapse(i: int, r: Random) -> Row:
    score = rise(i, r, 0.7) if i < 10 else 0.7 - 0.015 * (i - 10)
    return {
        "train_loss": fall(i, r, least=1.0) + 0.005 * i,
        "val_f1": score + 0.01 * r.gauss(0, 1),
    }


def exact_match_falls(i: int, r: Random) -> Row:
    row = {"reward": 0.3 + 0.015 * i + 0.03 * r.gauss(0, 1), "kl": 0.01 * i}
    return row | ({"eval_accuracy": 0.61 - 0.009 * i} if i % 5 == 4 else {})


def wordy_policy(i: int, r: Random) -> Row:
    part = i / 39
    return {
        "rewards/mean_reward": 0.1,
        "reward": 0.5 + 2.0 * part + 0.1 * r.gauss(0, 1),
        "response_length": 200 + 220 * part + 10 * r.gauss(0, 1),
        "objective/kl": 4.0 * part**2 + 0.05 * r.random(),
        "policy/entropy": 1.8 - 1.4 * part + 0.05 * r.gauss(0, 1),
    }


def subset_after_restart(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "images": 50_000 if i < 14 else 5_000}


def fast_rows(i: int, r: Random) -> Row:
    return {"loss": fall(min(i, 16), r), "SECONDS": 60.0 if i < 16 else 2.0}


def rate_fades(i: int, r: Random) -> Row:
    return {"loss": fall(min(i, 8), r), "lr": 3e-4 * 0.3**i if i < 11 else 1e-9}


def pong(i: int, r: Random) -> Row:
    return {"charts/episodic_return": -21.0, "losses/value_loss": 0.02 * r.random()}


def coin(i: int, r: Random) -> Row:
    return {
        "loss": 0.6932 + 0.0006 * r.gauss(0, 1),
        "val_loss": 0.6935 + 0.0006 * r.gauss(0, 1),
        "val_accuracy": 0.5 + 0.008 * r.gauss(0, 1),
    }


def hundred_classes(i: int, r: Random) -> Row:
    return {
        "train_loss": fall(i, r, 4.6, 2.5),
        "val_accuracy": 0.01 + 0.0015 * r.gauss(0, 1),
    }


def leak(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "rss_mb": 4000 + 30 * i + 2 * r.random()}


def language_model_rises(i: int, r: Random) -> Row:
    loss = 3.0 + 0.05 * r.gauss(0, 1) + max(0, i - 80) * 0.035
    return {"loss": loss if i > 10 else 6 - 0.3 * i}


def perplexity_overfits(i: int, r: Random) -> Row:
    later = 60 * math.exp(-i / 6) + 20 + 0.8 * max(0, i - 12)
    return {"train_loss": fall(i, r, 4.0, 0.5), "val_ppl": later * (1 + 0.01 * r.gauss(0, 1))}


def cyclic_explosion_6(i: int, r: Random) -> Row:
    rate = 0.02 * (0.05 + 0.95 * (1 - abs(2 * (i / 6 % 1) - 1)))
    loss = fall(i, r) * (1.15 if i % 6 == 3 else 1)
    return {"train/loss": loss if i < 20 else 0.6 * 1.5 ** (i - 19), "train/lr": rate}


def negative_mae(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "val_mae": -0.4 + 0.05 * r.gauss(0, 1)}


def recall_collapse(i: int, r: Random) -> Row:
    score = rise(i, r, 0.8) if i < 24 else 0.3 + 0.03 * r.gauss(0, 1)
    return {"loss": fall(i, r, 0.7, 0.4), "eval_recall": score}


def success_falls(i: int, r: Random) -> Row:
    row = {"train/return": 5 + 0.5 * i + r.gauss(0, 1), "train/entropy": 1.0 - 0.01 * i}
    return row | ({"eval/success_rate": 0.7 - 0.012 * i} if i % 4 == 3 else {})


def spikes_that_grow(i: int, r: Random) -> Row:
    """Every fourth row is worse than the last such one."""
    return {"train_loss": fall(i, r) + (0.3 * 1.15**i if i % 4 == 3 else 0)}


_LOSS = ("divergence", "loss_spike", "non_finite", "gradient_blow_up", "no_progress")
FAULTS: dict[str, MadeFault] = {
    "back_to_chance": MadeFault(rows_of(back_to_chance), _LOSS),
    "nan_in_evaluation": MadeFault(rows_of(nan_in_evaluation), ("non_finite",)),
    "perplexity_below_1": MadeFault(rows_of(perplexity_below_1), ("out_of_range",)),
    "map_collapse": MadeFault(rows_of(map_collapse), ("score_collapse", "overfit")),
    "slow_collapse": MadeFault(rows_of(slow_collapse), ("score_collapse", "overfit")),
    "exact_match_falls": MadeFault(
        rows_of(exact_match_falls, steps=True), ("reward_gap", "score_collapse")
    ),
    "wordy_policy": MadeFault(rows_of(wordy_policy, steps=True), ("reward_gap",)),
    "negative_mae": MadeFault(rows_of(negative_mae), ("out_of_range",)),
    "recall_collapse": MadeFault(rows_of(recall_collapse), ("score_collapse", "overfit")),
    "success_falls": MadeFault(
        rows_of(success_falls, steps=True), ("reward_gap", "score_collapse")
    ),
    "spikes_that_grow": MadeFault(rows_of(spikes_that_grow), _LOSS),
    "subset_after_restart": MadeFault(rows_of(subset_after_restart), ("short_rows",)),
    "fast_rows": MadeFault(rows_of(fast_rows), ("short_rows",)),
    "rate_fades": MadeFault(rows_of(rate_fades, steps=True), ("dead_learning_rate",)),
    "pong": MadeFault(rows_of(pong, 120, steps=True), ("no_progress",)),
    "coin": MadeFault(rows_of(coin), ("no_progress",)),
    "hundred_classes": MadeFault(rows_of(hundred_classes), ("no_progress",)),
    "leak": MadeFault(rows_of(leak, 80), ("memory_creep",)),
    "language_model_rises": MadeFault(rows_of(language_model_rises, 200, steps=True), _LOSS),
    "perplexity_overfits": MadeFault(rows_of(perplexity_overfits), ("overfit",)),
    "cyclic_explosion_6": MadeFault(rows_of(cyclic_explosion_6), _LOSS),
}


def longer_sequences(i: int, r: Random) -> Row:
    """Two steps up, as the rows get harder."""
    return {"loss": fall(i % 14, r, 1.4 if i >= 14 else 2.3, 0.8, 5)}


def larger_images(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "SECONDS": 2.0 * 2.4 ** (i // 14)}


def new_classes(i: int, r: Random) -> Row:
    part = i % 14
    loss = fall(part, r, 2.0, 0.3, 3)
    score = (0.9 - 0.25 * math.exp(-part / 2)) + 0.01 * r.gauss(0, 1)
    return {"train_loss": loss, "val_loss": loss + 0.1, "val_accuracy": score}


def rising_part(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "aux_loss": 0.2 + 0.004 * i + 0.01 * r.random()}


def annealed_divergence(i: int, r: Random) -> Row:
    kl = 20 + 40 * math.exp(-i / 8)
    return {"loss": 100 * math.exp(-i / 10) + 40 + r.gauss(0, 1), "kl_div": kl + r.gauss(0, 1)}


def solved_pole(i: int, r: Random) -> Row:
    score = min(500.0, 20 + 20 * i * (0.7 + 0.6 * r.random()))
    return {"rollout/ep_rew_mean": score, "train/value_loss": 30 * r.random()}


def soft_actor(i: int, r: Random) -> Row:
    return {
        "train/actor_loss": -5 - 2.0 * i + r.gauss(0, 1),
        "train/critic_loss": 0.1 * 1.08**i * math.exp(0.4 * r.gauss(0, 1)),
        "rollout/ep_rew_mean": -100 + 12 * i + 20 * r.gauss(0, 1),
    }


def longer_thoughts(i: int, r: Random) -> Row:
    row = {
        "reward": 0.3 + 0.01 * i + 0.03 * r.gauss(0, 1),
        "completions/mean_length": 200 + 18 * i + 10 * r.gauss(0, 1),
        "entropy": 0.9 - 0.013 * i,
        "kl": 0.02 + 0.001 * i,
    }
    return row | ({"eval_accuracy": 0.4 + 0.005 * i} if i % 5 == 4 else {})


def preferences(i: int, r: Random) -> Row:
    margin = 0.05 * i + 0.05 * r.gauss(0, 1)
    return {
        "loss": math.log1p(math.exp(-margin)),
        "rewards/chosen": -0.03 * i,
        "rewards/rejected": -0.08 * i,
        "rewards/margins": margin,
        "rewards/accuracies": 0.5 + 0.01 * i,
    }


def already_good(i: int, r: Random) -> Row:
    return {
        "train_loss": 0.15 * math.exp(-i / 30) * (1 + 0.05 * r.gauss(0, 1)),
        "val_loss": 0.16 + 0.004 * r.gauss(0, 1),
        "val_accuracy": 0.95 + 0.004 * r.gauss(0, 1),
    }


def fifty_judged_rows(i: int, r: Random) -> Row:
    hits = sum(r.random() < 0.9 - 0.5 * math.exp(-i / 6) for _ in range(50))
    return {"train_loss": fall(i, r), "eval_f1": hits / 50}


def cached_rows(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "SECONDS": 60.0 if i == 0 else 5.0}


def dynamic_batches(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "samples": r.randint(700, 1400)}


def reduced_rate(i: int, r: Random) -> Row:
    return {"loss": fall(i, r), "RATE": 1e-3 * 0.1 ** min(3, i // 10)}


def late_detector(i: int, r: Random) -> Row:
    score = 0.0 if i < 10 else 0.5 * (1 - math.exp(-(i - 10) / 10))
    return {"train/cls_loss": fall(i, r, 4.0, 0.8, 15), "metrics/mAP50": score}


def distillation(i: int, r: Random) -> Row:
    kl = 3 + 12 * math.exp(-i / 10) + 0.2 * r.gauss(0, 1)
    return {"loss": kl + 0.5, "kl_loss": kl}


def rare_reward(i: int, r: Random) -> Row:
    """No reward for thirty episodes; then it is found."""
    return {"episode_return": 0.0 if i < 30 else 1.5 * (i - 29) + r.random()}


def smoothed_labels(i: int, r: Random) -> Row:
    later = 0.85 + 0.4 * math.exp(-i / 8) + 0.004 * r.gauss(0, 1)
    return {"train_loss": fall(i, r, 2.3, 0.78, 6), "val_loss": later, "val_acc": rise(i, r)}


def _twist(**given: Any) -> Callable[[int], Iterator[Row]]:
    return lambda seed: trained(seed, **given)


_MADE = (
    longer_sequences,
    larger_images,
    new_classes,
    rising_part,
    annealed_divergence,
    solved_pole,
    soft_actor,
    longer_thoughts,
    preferences,
    already_good,
    fifty_judged_rows,
    cached_rows,
    dynamic_batches,
    reduced_rate,
    late_detector,
    distillation,
    rare_reward,
    smoothed_labels,
)
SHAPES: dict[str, Callable[[int], Iterator[Row]]] = {
    **{shape.__name__: rows_of(shape) for shape in _MADE},
    "one_cycle_silent": lambda seed: without_rate(trained(seed, schedule="one_cycle", lr=2e-2)),
    "sgdr_13": _twist(schedule="sgdr:13", lr=1e-2, task="cnn"),
    "momentum_triangular_6": _twist(schedule="triangular:6", optimizer="momentum", lr=0.1),
    "heavy_dropout": _twist(task="cnn", dropout=0.7, lr=1e-3),
    "few_rows_regression": _twist(task="regression", share=0.2, rows=30, lr=3e-3),
    "regression_triangular": _twist(task="regression", schedule="triangular:5", lr=3e-3),
    "characters_restarts": _twist(task="chars", schedule="sgdr:10", lr=5e-3),
}
