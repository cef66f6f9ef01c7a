"""Healthy rows that are made up, for shapes that cost too much to train here; called synthetic
wherever they count."""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Shape = Callable[[int, Random], dict[str, float]]


def _pretraining(i: int, r: Random) -> dict[str, float]:
    """A language model's noisy step losses, by a power law, with its tokens a second."""
    loss = 2.8 + 7.0 * (i + 5) ** -0.5 * 1.6
    return {
        "loss": loss * (1 + 0.03 * r.gauss(0, 1)),
        "grad_norm": (0.4 + 3 / (1 + i / 10)) * math.exp(0.25 * r.gauss(0, 1)),
        "tokens_per_second": 1.2e5 * (1 + 0.05 * r.gauss(0, 1)),
        "gpu_memory_mb": 40_000 + 5_000 * (1 - math.exp(-i / 4)),
    }


def _detection(i: int, r: Random) -> dict[str, float]:
    """An object detector: parts of a loss, one of which rises while the others fall."""
    return {
        "train/box_loss": 1.2 * math.exp(-i / 60) + 0.4 + 0.02 * r.gauss(0, 1),
        "train/cls_loss": 2.0 * math.exp(-i / 20) + 0.5 + 0.03 * r.gauss(0, 1),
        "train/dfl_loss": 0.9 + 0.002 * i + 0.01 * r.gauss(0, 1),
        "val/box_loss": 1.3 * math.exp(-i / 60) + 0.5 + 0.05 * r.gauss(0, 1),
        "metrics/mAP50": 0.7 * (1 - math.exp(-i / 25)) + 0.02 * r.gauss(0, 1),
    }


def _vae(i: int, r: Random) -> dict[str, float]:
    """A negative log-likelihood of densities goes below zero; its KL part rises from zero."""
    kl = 8 * (1 - math.exp(-i / 15)) + 0.1 * r.gauss(0, 1)
    return {"train_loss": 40 * math.exp(-i / 12) - 60 + r.gauss(0, 1), "kl_loss": kl}


def _diffusion(i: int, r: Random) -> dict[str, float]:
    """A loss that is almost noise after a few rows."""
    return {"loss": (0.9 * math.exp(-i / 3) + 0.06) * math.exp(0.35 * r.gauss(0, 1))}


def _ppo(i: int, r: Random) -> dict[str, float]:
    """Value and policy losses wander; the return rises with large noise."""
    return {
        "train/policy_loss": 0.02 * r.gauss(0, 1),
        "train/value_loss": 50 * math.exp(0.8 * r.gauss(0, 1)) * (1 + i / 20),
        "train/entropy": 1.4 - 0.006 * i + 0.02 * r.gauss(0, 1),
        "train/approx_kl": abs(0.01 + 0.005 * r.gauss(0, 1)),
        "rollout/reward": 20 + 2.5 * i + 15 * r.gauss(0, 1),
    }


def _contrastive(i: int, r: Random) -> dict[str, float]:
    """From ln of the batch size slowly down, with a temperature that is learned."""
    return {
        "loss": math.log(256) * (0.35 + 0.65 * math.exp(-i / 25)) + 0.04 * r.gauss(0, 1),
        "temperature": 0.07 + i / 5000,
    }


def _one_spike(i: int, r: Random) -> dict[str, float]:
    """One bad batch, over at the next row."""
    return {
        "loss": (2 * math.exp(-i / 30) + 0.5) * (1 + 0.02 * r.gauss(0, 1)) * (6 if i == 50 else 1)
    }


def _curriculum(i: int, r: Random) -> dict[str, float]:
    """Harder rows come in at each third: the loss steps up a little and falls again."""
    part = i % 34
    return {
        "train_loss": 2 * math.exp(-i / 25)
        + 0.5
        + 0.25 * (i >= 34) * math.exp(-part / 12)
        + 0.03 * r.gauss(0, 1)
    }


SHAPES: dict[str, Shape] = {
    shape.__name__.strip("_"): shape
    for shape in (
        _pretraining,
        _detection,
        _vae,
        _diffusion,
        _ppo,
        _contrastive,
        _one_spike,
        _curriculum,
    )
}


def rows(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """100 rows, of which a tenth takes twice as long."""
    random, now = Random(f"{name} {seed}"), 0.0
    for i in range(100):
        now += 2.0 * math.exp(0.2 * random.gauss(0, 1)) * (2 if random.random() < 0.1 else 1)
        yield {"event": "epoch", "step": i, "t": now, "metrics": SHAPES[name](i, random)}
