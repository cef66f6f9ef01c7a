"""What a metric's name says: its role and, where the name leaves no doubt, its direction.

Spellings of the run logger, transformers and TRL (`eval_loss`, `rewards/margins`), Lightning
(`train_loss_step`) and YOLO (`val/box_loss`) are known. The plan's own metric takes its direction
from the plan, whatever its name.
"""

import re
from enum import StrEnum
from functools import lru_cache


class Role(StrEnum):
    LOSS = "loss"
    """Smaller is better."""
    SCORE = "score"
    """Larger is better."""
    GRADIENT = "gradient"
    LEARNING_RATE = "learning_rate"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    TIME = "time"
    REWARD_SPREAD = "reward_spread"
    ZERO_SPREAD = "zero_spread"
    KL = "kl"
    ENTROPY = "entropy"
    OTHER = "other"


_SPLIT = re.compile(r"[^a-z0-9]+")
_LATER = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev", "heldout"})
_WHOLE = frozenset(["loss", "train", "training", "total", "step", "epoch"])
_ADVERSARIAL = frozenset(
    {"d", "g", "disc", "discriminator", "gen", "generator", "adv", "adversarial", "critic"}
)
_SMALLER = frozenset(
    [
        "loss",
        "losses",
        "nll",
        "ppl",
        "perplexity",
        "bpb",
        "bpc",
        "error",
        "err",
        "mae",
        "mse",
        "rmse",
        "mape",
        "logloss",
        "cer",
        "wer",
        "fid",
        "crossentropy",
    ]
)
_LARGER = frozenset(
    [
        "accuracy",
        "accuracies",
        "acc",
        "f1",
        "auc",
        "auroc",
        "auprc",
        "bleu",
        "rouge",
        "r2",
        "map",
        "map50",
        "precision",
        "recall",
        "iou",
        "dice",
        "score",
        "reward",
        "rewards",
        "return",
        "returns",
        "margin",
        "margins",
        "chrf",
    ]
)


@lru_cache(maxsize=4096)
def role_of(key: str) -> Role:
    """By the words of the name; OTHER when they say nothing."""
    words = _words(key)
    if words & _ADVERSARIAL and words & _SMALLER:
        return Role.OTHER  # two players: neither loss falls, and a rise of one is no fault
    if ("grad" in words and "norm" in words) or words & {"gnorm", "gradnorm", "gradient"}:
        return Role.GRADIENT
    if "lr" in words or {"learning", "rate"} <= words:
        return Role.LEARNING_RATE
    if words & {"throughput", "sps", "tps", "ips"} or (
        "per" in words and words & {"s", "sec", "second"}
    ):
        return Role.THROUGHPUT
    if words & {"memory", "mem", "vram", "rss"}:
        return Role.MEMORY
    if words & {"seconds", "time", "dt", "elapsed", "duration", "runtime", "ms"}:
        return Role.TIME
    if "reward" in words and "zero" in words and "std" in words:
        return Role.ZERO_SPREAD
    if words & {"reward", "rewards"} and "std" in words:
        return Role.REWARD_SPREAD
    if "kl" in words:
        return Role.KL
    if "entropy" in words and "cross" not in words and "loss" not in words:
        return Role.ENTROPY
    if words & _SMALLER or {"cross", "entropy"} <= words:
        return Role.LOSS
    return Role.SCORE if words & _LARGER else Role.OTHER


@lru_cache(maxsize=4096)
def is_total(key: str) -> bool:
    """Whether a loss is the whole training loss, not one of its parts."""
    return _words(key) <= _WHOLE


@lru_cache(maxsize=4096)
def is_later(key: str) -> bool:
    """Whether it was measured on rows that were not trained on."""
    return bool(_words(key) & _LATER)


def _words(key: str) -> frozenset[str]:
    return frozenset(_SPLIT.split(key.lower()))
