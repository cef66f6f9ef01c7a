"""Closed sets of a specification's words, the bounds of its numbers, and what a model must reach.

A new trainer is one file, `harness/training/trainers/<backend>.py`, and one row of `Backend`. A new
evaluator is one file, `harness/training/evaluators/<name>.py`, and one row of `Evaluator`. A new
training mode is one row of `Mode`.

The defaults in each `__new__` are for the type checker alone: `Mode("orpo")` looks a row up.
"""

from collections.abc import (
    Iterable,
    Sequence,
)
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SCHEMA = 1
TRAINERS = "harness.training.trainers"
EVALUATORS = "harness.training.evaluators"
RowTexts = Sequence[tuple[str, ...]]
"""The texts that a row must hold: of each tuple at least one key."""
PAIR: RowTexts = (("prompt",), ("chosen",), ("rejected",))


class Profile(StrEnum):
    """What a worker does with the model."""

    READER = "local-reader"
    EDITOR = "local-editor"


class EvaluationMode(StrEnum):
    PROMPT_ASSISTED = "prompt_assisted"
    REDUCED_PROMPT = "reduced_prompt"


class Mode(StrEnum):
    """Training mode: name, texts of a training row."""

    row_texts: RowTexts

    def __new__(cls, name: str, row_texts: RowTexts = ()) -> "Mode":
        mode = str.__new__(cls, name)
        mode._value_, mode.row_texts = name, row_texts
        return mode

    ORPO = "orpo", PAIR
    DPO = "dpo", PAIR
    SFT = "sft", (("prompt",), ("completion", "chosen"))
    GRPO = "grpo", (("prompt",), ("answer",))
    COMPOSED = "composed", (("prompt",),)  # each channel says what else it needs


class HardwareTier(StrEnum):
    """Hardware tier: name, parameters of the largest base model that is trained on it."""

    largest_model: int

    def __new__(cls, name: str, largest_model: int = 0) -> "HardwareTier":
        tier = str.__new__(cls, name)
        tier._value_, tier.largest_model = name, largest_model
        return tier

    CPU = "cpu-experimental", 500_000_000
    SMALL_GPU = "small-gpu", 4_000_000_000  # 16 GB; weights in 16 bits, as below
    CONSUMER_GPU = "consumer-gpu", 9_000_000_000  # 24 GB
    DATACENTER_GPU = "datacenter-gpu", 35_000_000_000  # 80 GB


_TRL = ("torch", "transformers", "trl", "peft")


class Backend(StrEnum):
    """Trainer: name, modes, packages that the project's interpreter must have."""

    modes: frozenset[Mode]
    packages: tuple[str, ...]

    def __new__(
        cls,
        name: str,
        modes: Iterable[Mode] = (),
        packages: tuple[str, ...] = (),
    ) -> "Backend":
        backend = str.__new__(cls, name)
        backend._value_ = name
        backend.modes, backend.packages = frozenset(modes), packages
        return backend

    TRL_ORPO = "trl-orpo", {Mode.ORPO}, _TRL
    TRL_DPO = "trl-dpo", {Mode.DPO}, _TRL
    TRL_SFT = "trl-sft", {Mode.SFT}, _TRL
    TRL_GRPO = "trl-grpo", {Mode.GRPO}, _TRL
    COMPOSED = "composed", {Mode.COMPOSED}, _TRL
    COMMAND = "command", Mode  # the user's own program, by the same protocol
    DRY_RUN = "dry-run", Mode  # validates everything and trains nothing

    @property
    def module(self) -> str:
        """The trainer's module in this package; `command` and `dry-run` have none."""
        return f"{TRAINERS}.{self.value.replace('-', '_')}"


class Evaluator(StrEnum):
    """Evaluator: name, texts of a benchmark row, whether its scores lie in [0, 1]."""

    row_texts: RowTexts
    bounded: bool

    def __new__(cls, name: str, row_texts: RowTexts = (), bounded: bool = True) -> "Evaluator":
        evaluator = str.__new__(cls, name)
        evaluator._value_, evaluator.row_texts, evaluator.bounded = name, row_texts, bounded
        return evaluator

    PREFERENCE = "preference", (("id",), *PAIR)
    EXACT_MATCH = "exact_match", (("id",), ("prompt",), ("answer", "completion", "chosen"))
    PERPLEXITY = "perplexity", (("id",), ("prompt",), ("completion", "chosen", "answer")), False


def is_bounded(evaluator: Any) -> bool:
    """Whether scores lie in [0, 1]. A program of the project (no name) must give such scores."""
    return not isinstance(evaluator, str) or Evaluator(evaluator).bounded


DTYPES = ("float32", "bfloat16", "float16")
FORMAT = "peft-adapter"
"""Format of every artifact: an adapter on the base model."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The interval of a number. It includes the lower end unless `open_low`."""

    default: float | int
    low: float
    high: float
    whole: bool = False
    open_low: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"


HYPERPARAMETERS: dict[str, Bound] = {
    "learning_rate": Bound(default=3e-4, low=0, high=1e-2, open_low=True),
    "batch_size": Bound(default=2, low=1, high=1024, whole=True),
    "gradient_accumulation": Bound(default=8, low=1, high=1024, whole=True),
    "lora_rank": Bound(default=16, low=1, high=1024, whole=True),
    "lora_alpha": Bound(default=32, low=1, high=4096, whole=True),
    "lora_dropout": Bound(default=0.05, low=0, high=0.9),
    "warmup_ratio": Bound(default=0.1, low=0, high=0.9),
    "max_steps": Bound(default=1000, low=1, high=1_000_000, whole=True),
    "max_seq_length": Bound(default=2048, low=16, high=131_072, whole=True),
    "beta": Bound(default=0.1, low=0, high=10, open_low=True),
}
MINUTES = Bound(default=240.0, low=0, high=10_080, open_low=True)
TOKENS = Bound(default=2_000_000, low=1, high=1_000_000_000_000, whole=True)
SEEDS = Bound(default=1, low=0, high=2**32 - 1, whole=True)


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a model must reach for its next step."""

    delta: float = 0.05
    """Smallest gain over the baseline; its 95% interval must lie above 0, too."""
    rows: int = 20
    """Fewest rows that a verdict is given on."""
    quality: float = 0.65
    """Smallest score of the candidate itself."""
    arbiter_rejection: float = 0.20
    """Largest share of shadow answers that the arbiter rejected."""
    execution_rejection: float = 0.15
    """Largest share of shadow answers that timed out, failed or were invalid."""
    observations: int = 5
    shadow_seconds: float = 3600.0


THRESHOLDS = Thresholds()
