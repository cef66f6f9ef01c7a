"""What a composed training learns from: rewards, its teacher's distribution, recorded preferences.

Typed, with every default; `posttrain.composition` reads it from TOML and checks its bounds.
"""

from collections.abc import Mapping
from dataclasses import (
    asdict,
    dataclass,
    field,
)
from enum import StrEnum
from typing import Any


class Teacher(StrEnum):
    """Whose distribution is learned; else an id of the registry names a model of its own."""

    BASE = "base"
    """The model that training starts from: the adapter off."""
    EMA = "ema"
    """The student's moving average."""
    LIVE = "live"
    """The student as it is now."""


class Objective(StrEnum):
    FULL = "full"
    TOP_K = "top_k"
    SAMPLED = "sampled"


class Average(StrEnum):
    TOKENS = "tokens"
    SEQUENCES = "sequences"


class Context(StrEnum):
    """What the teacher sees, and the student does not."""

    SIBLING = "sibling"
    """Another completion of the same prompt that succeeded."""
    HINT = "hint"
    """The row's text under `hint`."""


class Reference(StrEnum):
    """Where DPO's reference log-probabilities come from."""

    ADAPTER_OFF = "adapter_off"
    FROZEN_COPY = "frozen_copy"
    PRECOMPUTED = "precomputed"


REWARDS = ("exact_match", "contains")
"""Reward functions of the package; both read the row's `answer`."""
_LISTS = (
    ("reward", "functions"),
    ("reward", "function_weights"),
    ("distillation", "contexts"),
    ("rollouts", "tools"),
)


@dataclass(frozen=True, kw_only=True)
class Channel:
    weight: float = 1.0
    """At the first step after the warm-up."""
    final_weight: float | None = None
    """At the last step, reached in a straight line; by default `weight`."""
    warmup: float = 0.0
    """Share of the steps in which the weight rises to that."""

    def at(self, step: int, steps: int) -> float:
        """The weight at `step`, from 0, of `steps`: a function of nothing else."""
        last = self.weight if self.final_weight is None else self.final_weight
        share = step / (steps - 1) if steps > 1 else 0.0
        rise = min(1.0, (step + 1) / (self.warmup * steps)) if self.warmup else 1.0
        return rise * (self.weight + share * (last - self.weight))

    @property
    def used(self) -> bool:
        """Whether the weight is above 0 at any step."""
        return self.weight > 0 or bool(self.final_weight)


@dataclass(frozen=True, kw_only=True)
class FrozenFunction:
    """A reward, or a tool or an environment that rollouts call."""

    name: str
    file: str | None = None
    """Relative to the project; None for one of REWARDS, or of a package."""
    package: str | None = None
    """An installed distribution with an entry point of this name, group `harness.rewards`."""
    version: str | None = None
    sha256: str | None = None
    """Of the file, or of all files of the package."""
    source: str | None = None
    """The file's text, as it was specified: what runs."""


def is_action(method: str) -> bool:
    """Whether the model may call this method of an environment, by TRL's contract."""
    return method not in ("reset", "get_reward") and not method.startswith("_")


@dataclass(frozen=True, kw_only=True)
class RewardChannel(Channel):
    functions: tuple[FrozenFunction, ...] = tuple(FrozenFunction(name=one) for one in REWARDS)
    function_weights: tuple[float, ...] = (1.0, 0.5)
    kl: float = 0.0
    """Of the penalty on the divergence from the base model."""


@dataclass(frozen=True, kw_only=True)
class DistillationChannel(Channel):
    teacher: str = Teacher.BASE
    ema_rate: float = 0.05
    """Of `ema`: teacher <- (1 - rate) * teacher + rate * student, after each step."""
    contexts: tuple[str, ...] = (Context.SIBLING, Context.HINT)
    success: float = 1.0
    """The smallest weighted reward of a sibling that is shown."""
    objective: str = Objective.FULL
    beta: float = 0.5
    """0: KL(teacher || student); 1: KL(student || teacher)."""
    temperature: float = 1.0
    clip: float | None = None
    """Largest share of one word of the vocabulary in a token's divergence."""
    top_k: int = 100
    tail: bool = True
    average: str = Average.TOKENS
    ratio_cap: float = 2.0
    """Of the ratio student now / student at the rollout; counts with `iterations` above 1."""


@dataclass(frozen=True, kw_only=True)
class PreferenceChannel(Channel):
    weight: float = 0.25
    reference: str = Reference.ADAPTER_OFF
    pairs: int | None = None
    """A micro-batch; by default as many as it has rows."""


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    generations: int | None = None
    """Completions a prompt; by default the largest of 8, 4, 2 that divides a step's rows."""
    max_tokens: int = 256
    iterations: int = 1
    """Steps that learn from the same rollouts."""
    tools: tuple[FrozenFunction, ...] = ()
    """Of files; the model may call them, and no channel learns what they return."""
    tool_turns: int = 4
    """Times in a rollout that tools answer."""
    environment: FrozenFunction | None = None
    """A class of a file: an instance a rollout, its methods are tools that share its state."""


@dataclass(frozen=True, kw_only=True)
class Composition:
    reward: RewardChannel = field(default_factory=RewardChannel)
    distillation: DistillationChannel = field(default_factory=DistillationChannel)
    dpo: PreferenceChannel = field(default_factory=PreferenceChannel)
    rollouts: Rollouts = field(default_factory=Rollouts)
    gradients_every: int = 10
    """Steps from one measurement of each channel's gradient to the next; 0: never."""

    @property
    def channels(self) -> dict[str, Channel]:
        return {"reward": self.reward, "distillation": self.distillation, "dpo": self.dpo}

    @property
    def rolls_out(self) -> bool:
        return self.reward.used or self.distillation.used

    @property
    def needs_rewards(self) -> bool:
        shown = self.distillation.used and Context.SIBLING in self.distillation.contexts
        return self.reward.used or shown

    @property
    def teaches_itself(self) -> bool:
        return self.distillation.used and self.distillation.teacher in tuple(Teacher)

    def plain(self) -> dict[str, Any]:
        values = asdict(self)
        for part, name in _LISTS:
            values[part][name] = list(values[part][name])
        return values


def composition_from(values: Mapping[str, Any]) -> Composition:
    """The inverse of `Composition.plain`; one without tools or environment, of before, has none."""
    reward, distillation = dict(values["reward"]), dict(values["distillation"])
    rollouts = dict(values["rollouts"])
    reward["functions"] = tuple(FrozenFunction(**one) for one in reward["functions"])
    reward["function_weights"] = tuple(reward["function_weights"])
    distillation["contexts"] = tuple(distillation["contexts"])
    rollouts["tools"] = tuple(FrozenFunction(**one) for one in rollouts.get("tools", ()))
    if environment := rollouts.get("environment"):
        rollouts["environment"] = FrozenFunction(**environment)
    return Composition(
        reward=RewardChannel(**reward),
        distillation=DistillationChannel(**distillation),
        dpo=PreferenceChannel(**values["dpo"]),
        rollouts=Rollouts(**rollouts),
        gradients_every=values["gradients_every"],
    )
