"""The role of a metric, by the words of its name.

Known spellings: the run logger, transformers and TRL (`eval_loss`, `rewards/margins`), Lightning
(`train_loss_step`), YOLO (`val/box_loss`). For the plan's own metric the plan decides instead.
"""

import re
from enum import StrEnum
from functools import lru_cache


class MetricRole(StrEnum):
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


CHANNEL = "channel/"
"""Parts of a composed loss, e.g. `channel/dpo/loss`: only the whole must fall."""
# Compared with whole words of a name only: "map" must not match "mapping".
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
        "mlogloss",
        "merror",
        "rmsle",
        "smape",
        "bce",
        "xent",
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
        "prec",
        "fb1",
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
        "rew",
        "winrate",
        "mcc",
        "ndcg",
        "mrr",
    ]
)
_PLAYERS = frozenset({"real", "fake"})
_POLICY = frozenset(
    ["policy", "reward", "rewards", "rew", "return", "returns", "episode", "rollout"]
)
_POLICY |= {"advantage", "advantages", "clipfrac", "clip", "completions", "ep"}
_REWARDS = frozenset({"reward", "rewards", "rew", "return", "returns"})
_NO_REWARD = frozenset(["std", "margin", "margins", "accuracies", "chosen", "rejected"])
_NO_REWARD |= {"min", "max", "zero", "frac", "var", "scale", "clip"}
_SAMPLES = frozenset(["samples", "examples", "batches", "images", "sequences"])
_RUNNING = frozenset(["per", "seen", "total", "consumed", "processed", "cumulative", "skipped"])
_SHARES = frozenset(
    ["accuracy", "accuracies", "acc", "f1", "auc", "auroc", "auprc", "precision", "recall"]
)
_SHARES |= {"iou", "dice", "map", "map50"}
_SHARE_PAIRS = ({"win", "rate"}, {"success", "rate"}, {"exact", "match"})
_NOT_NEGATIVE = frozenset(
    ["mse", "mae", "rmse", "mape", "rmsle", "logloss", "mlogloss", "merror", "bce", "wer", "cer"]
)
_NEGATED = frozenset(["neg", "negative", "delta", "diff", "gain", "change", "improvement"])


@lru_cache(maxsize=4096)
def role_of(key: str) -> MetricRole:
    """By the words of the name; OTHER when none is known."""
    # The order decides where a name has words of two roles: `grad_norm/loss` is a gradient,
    # `reward_std` a spread and no score, `entropy_loss` a loss.
    if key.startswith(CHANNEL):
        return MetricRole.OTHER
    words = _words(key)
    if words & (_ADVERSARIAL | _PLAYERS) and words & _SMALLER:
        # Two players: neither loss falls, and a rise of one is no fault.
        return MetricRole.OTHER
    if {"policy", "gradient", "loss"} <= words:
        # The surrogate loss of a policy: neither a norm nor a loss that falls.
        return MetricRole.OTHER
    if ("grad" in words and "norm" in words) or words & {"gnorm", "gradnorm", "gradient"}:
        return MetricRole.GRADIENT
    if "lr" in words or {"learning", "rate"} <= words:
        return MetricRole.LEARNING_RATE
    if words & {"throughput", "sps", "tps", "ips"} or (
        "per" in words and words & {"s", "sec", "second"}
    ):
        return MetricRole.THROUGHPUT
    if words & {"memory", "mem", "vram", "rss"}:
        return MetricRole.MEMORY
    if words & {"seconds", "time", "dt", "elapsed", "duration", "runtime", "ms"}:
        return MetricRole.TIME
    if "reward" in words and "zero" in words and "std" in words:
        return MetricRole.ZERO_SPREAD
    if words & {"reward", "rewards"} and "std" in words:
        # TRL: "rewards/NAME/std" is one component, which may be constant; the total is not.
        return MetricRole.OTHER if "rewards/" in key.lower() else MetricRole.REWARD_SPREAD
    if "kl" in words:
        return MetricRole.KL
    if "entropy" in words and "cross" not in words and "loss" not in words:
        return MetricRole.ENTROPY
    if words & _SMALLER or {"cross", "entropy"} <= words:
        return MetricRole.LOSS
    is_score = words & _LARGER or any(pair <= words for pair in _SHARE_PAIRS)
    return MetricRole.SCORE if is_score else MetricRole.OTHER


@lru_cache(maxsize=4096)
def is_total(key: str) -> bool:
    """Whether a loss is the whole training loss, not one of its parts."""
    return _words(key) <= _WHOLE


@lru_cache(maxsize=4096)
def range_of(key: str) -> tuple[float, float] | None:
    """The least and the largest value that the name allows; None when it allows all.

    A share may be a percentage."""
    words = _words(key)
    if words & _NEGATED or role_of(key) not in (MetricRole.LOSS, MetricRole.SCORE):
        return None
    shares = words & _SHARES or any(pair <= words for pair in _SHARE_PAIRS)
    if shares and not words & _SMALLER:
        return 0.0, 100.0
    if "r2" in words:
        return float("-inf"), 1.0
    if words & {"ppl", "perplexity"}:
        return 1.0, float("inf")
    if words & {"log"}:
        return None
    if words & _NOT_NEGATIVE or {"cross", "entropy"} <= words:
        return 0.0, float("inf")
    return None


@lru_cache(maxsize=4096)
def of_reward(key: str) -> bool:
    """Whether it is a reward or return as a whole, no part, spread or margin of one."""
    words = _words(key)
    return (
        bool(words & _REWARDS)
        and not words & _NO_REWARD
        and "rewards/" not in key.lower()
        and role_of(key) is MetricRole.SCORE
    )


@lru_cache(maxsize=4096)
def counts_samples(key: str) -> bool:
    """Whether it counts what one row was trained on."""
    words = _words(key)
    return bool(words & _SAMPLES) and not words & _RUNNING and role_of(key) is MetricRole.OTHER


def is_length(key: str) -> bool:
    """Whether it is the length of what a policy writes."""
    words = _words(key)
    return bool(words & {"length", "len", "lengths"}) and not words & {"min", "max", "ratio"}


@lru_cache(maxsize=4096)
def of_policy(key: str) -> bool:
    """Whether only the training of a policy logs such a name."""
    return bool(_words(key) & _POLICY)


@lru_cache(maxsize=4096)
def is_later(key: str) -> bool:
    """Whether it is measured on rows outside the training set."""
    return bool(_words(key) & _LATER)


def _words(key: str) -> frozenset[str]:
    return frozenset(_SPLIT.split(key.lower()))
