"""The closed sets of words of a specification, and the bounds of its numbers."""

from dataclasses import dataclass
from enum import StrEnum

SCHEMA = 1
TRAINERS = "harness.training.trainers"
EVALUATORS = "harness.training.evaluators"


class Backend(StrEnum):
    TRL_ORPO = "trl-orpo"
    TRL_DPO = "trl-dpo"
    TRL_SFT = "trl-sft"
    TRL_GRPO = "trl-grpo"
    UNSLOTH_ORPO = "unsloth-orpo"
    COMMAND = "command"
    """A user's own program, by the same protocol."""
    DRY_RUN = "dry-run"
    """Validates everything and makes nothing."""


class Mode(StrEnum):
    ORPO = "orpo"
    DPO = "dpo"
    SFT = "sft"
    GRPO = "grpo"


class Profile(StrEnum):
    """What a worker does with the model."""

    READER = "local-reader"
    EDITOR = "local-editor"


class Tier(StrEnum):
    CPU = "cpu-experimental"
    SMALL_GPU = "small-gpu"  # 8 to 16 GB
    CONSUMER_GPU = "consumer-gpu"  # 24 GB
    DATACENTER_GPU = "datacenter-gpu"  # 80 GB


class Evaluator(StrEnum):
    PREFERENCE = "preference"
    EXACT_MATCH = "exact_match"
    PERPLEXITY = "perplexity"


class EvaluationMode(StrEnum):
    PROMPT_ASSISTED = "prompt_assisted"
    REDUCED_PROMPT = "reduced_prompt"


DTYPES = ("float32", "bfloat16", "float16")
FORMAT = "peft-adapter"
"""Of every artifact: an adapter on the base model."""
MODES: dict[Backend, frozenset[Mode]] = {
    Backend.TRL_ORPO: frozenset({Mode.ORPO}),
    Backend.TRL_DPO: frozenset({Mode.DPO}),
    Backend.TRL_SFT: frozenset({Mode.SFT}),
    Backend.TRL_GRPO: frozenset({Mode.GRPO}),
    Backend.UNSLOTH_ORPO: frozenset({Mode.ORPO}),
    Backend.COMMAND: frozenset(Mode),
    Backend.DRY_RUN: frozenset(Mode),
}
"""Which training mode a backend does."""
TIERS: dict[Backend, frozenset[Tier]] = {
    **{backend: frozenset(Tier) for backend in Backend},
    Backend.UNSLOTH_ORPO: frozenset(Tier) - {Tier.CPU},
}
"""Which hardware tier a backend runs on."""
LARGEST: dict[Tier, int] = {
    Tier.CPU: 500_000_000,
    Tier.SMALL_GPU: 4_000_000_000,
    Tier.CONSUMER_GPU: 14_000_000_000,
    Tier.DATACENTER_GPU: 80_000_000_000,
}
"""Parameters of the largest base model that a tier trains."""
PACKAGES: dict[Backend, tuple[str, ...]] = {
    **{
        backend: ("torch", "transformers", "trl", "peft")
        for backend in Backend
        if backend.startswith("trl-")
    },
    Backend.UNSLOTH_ORPO: ("unsloth",),
}
"""What the project's interpreter must have."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A number between two others; the lower end belongs to it unless `open_low`."""

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
