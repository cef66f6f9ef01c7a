"""The faults, listed before anything was measured: whether the stream of rows can show each, and
which alarms name it.

A fault is *stream-visible* when rows alone differ from those of its clean twins; *probe-needed*
when they need not: leaked rows make scores better, frozen layers learn more slowly, a new optimizer
state is re-estimated within tens of steps. No alarm is asked for there, and what was reported is
told.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from bench.detectors.models import build
from bench.detectors.other_trainings import REWARD_IS_CONSTANT_FROM
from bench.detectors.real_training import Fault
from bench.detectors.small_data import Split

if TYPE_CHECKING:
    from bench.detectors.real_training import Run

_STUCK = ("no_progress", "stall", "gradient_vanishing")
_BROKEN = ("non_finite", "divergence", "loss_spike", "gradient_blow_up", *_STUCK)


class Kind(NamedTuple):
    fault: type[Fault]
    visible: bool
    codes: tuple[str, ...]
    """Alarms that name it."""
    tasks: tuple[str, ...] = ("cnn", "digits", "chars")
    noted: bool = False
    """Whether a note counts: an overfit whose score holds asks for no diagnosis."""


class HighRate(Fault):
    """300 times the rate that trains well."""

    def start(self, run: "Run") -> None:
        run.lr *= 300


class ZeroRate(Fault):
    def start(self, run: "Run") -> None:
        run.lr = 0.0


class LateZeroRate(Fault):
    """A schedule that was given too few total steps."""

    from_start = False

    def before_row(self, run: "Run", row: int) -> None:
        if row == self.row:
            run.lr = 0.0


class ExplodingInit(Fault):
    def start(self, run: "Run") -> None:
        with torch.no_grad():
            for parameter in run.model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(30)
        run.lr *= 10


class DeadReLU(Fault):
    """Biases so low that no unit of a layer is ever on."""

    def start(self, run: "Run") -> None:
        with torch.no_grad():
            for name, parameter in run.model.named_parameters():
                if name.endswith("bias"):
                    parameter.fill_(-50.0)


class ShuffledLabels(Fault):
    def start(self, run: "Run") -> None:
        order = torch.randperm(len(run.train.x), generator=run.order)
        labels = run.train.y.flatten()[torch.randperm(run.train.y.numel(), generator=run.order)]
        run.train = Split(run.train.x[order], labels.reshape(run.train.y.shape))


class NoZeroGrad(Fault):
    def step(self, run: "Run") -> None:
        run.optimizer.step()


class NaNBatch(Fault):
    """One batch holds a NaN, and the weights keep it."""

    from_start = False

    def loss(self, run: "Run", loss: Tensor) -> Tensor:
        return loss * float("nan") if run.row == self.row else loss


class Fp16Overflow(Fault):
    """Gradients in fp16 with a fixed scale of 2^20, and no look at overflow."""

    from_start = False

    def step(self, run: "Run") -> None:
        if self.active(run):
            for parameter in run.model.parameters():
                if parameter.grad is not None:
                    parameter.grad = (parameter.grad * 2.0**20).half().float() / 2.0**20
        super().step(run)


class OverfitSubset(Fault):
    """64 training rows, seen hundreds of times."""

    def start(self, run: "Run") -> None:
        run.train = Split(run.train.x[:64], run.train.y[:64])


class LoaderStall(Fault):
    """Each batch waits for the disk. The wait is added to the clock of the rows, not slept."""

    from_start = False

    def extra_seconds(self, run: "Run", usual: float) -> float:
        return 0.5 + 6 * usual if self.active(run) else 0.0


class LostWeights(Fault):
    """A resume that loads the weights of before training."""

    from_start = False

    def before_row(self, run: "Run", row: int) -> None:
        if row == self.row:
            torch.manual_seed(run.recipe.seed + 99)
            run.model = rebuilt(run)
            run.optimizer = run.new_optimizer()
            resumed(run)


class ResumeWithoutOptimizer(Fault):
    from_start = False

    def before_row(self, run: "Run", row: int) -> None:
        if row == self.row:
            run.optimizer = run.new_optimizer()
            resumed(run)


class KeptGraphs(Fault):
    """A tensor of each batch is kept: 8 MB a step."""

    from_start = False

    def step(self, run: "Run") -> None:
        if self.active(run):
            run.kept.append(torch.empty(2_000_000))
        super().step(run)


class Ascent(Fault):
    """The sign of the loss is wrong from some row on."""

    from_start = False

    def loss(self, run: "Run", loss: Tensor) -> Tensor:
        return -loss if self.active(run) else loss


class ForeignParameters(Fault):
    """The optimizer holds the parameters of a copy of the model: gradients flow, nothing moves."""

    def start(self, run: "Run") -> None:
        model, run.model = run.model, rebuilt(run)
        run.optimizer = run.new_optimizer()
        run.model = model


class ConstantReward(Fault):
    """Injected by `others.grpo` itself."""

    def __init__(self, seed: int) -> None:
        self.row = REWARD_IS_CONSTANT_FROM


class FrozenLayers(Fault):
    def start(self, run: "Run") -> None:
        for parameter in list(run.model.parameters())[:-2]:
            parameter.requires_grad_(False)


class LeakedRows(Fault):
    """The later rows are among the training rows."""

    def start(self, run: "Run") -> None:
        later = run.data.later
        run.train = Split(torch.cat([run.train.x, later.x]), torch.cat([run.train.y, later.y]))


def rebuilt(run: "Run") -> torch.nn.Module:
    return build(run.recipe.task, run.data, width=run.recipe.width)


def resumed(run: "Run") -> None:
    run.attempts += 1
    run.notes.append({"event": "attempt", "attempt": run.attempts})


TWO = ("cnn", "digits")
KINDS: dict[str, Kind] = {
    "high_learning_rate": Kind(HighRate, True, _BROKEN),
    "zero_learning_rate": Kind(ZeroRate, True, ("dead_learning_rate", *_STUCK)),
    "late_zero_learning_rate": Kind(LateZeroRate, True, ("dead_learning_rate", *_STUCK)),
    "exploding_init": Kind(ExplodingInit, True, _BROKEN),
    "dead_relu": Kind(DeadReLU, True, _STUCK, TWO),
    "shuffled_labels": Kind(ShuffledLabels, True, ("no_progress", "overfit"), TWO),
    "no_zero_grad": Kind(NoZeroGrad, True, (*_BROKEN, "overfit")),
    "nan_batch": Kind(NaNBatch, True, ("non_finite",)),
    "fp16_overflow": Kind(Fp16Overflow, True, ("non_finite",)),
    "overfit_subset": Kind(OverfitSubset, True, ("overfit",), noted=True),
    "loader_stall": Kind(LoaderStall, True, ("throughput_drop",)),
    "lost_weights": Kind(LostWeights, True, ("resume_discontinuity", "loss_spike", "divergence")),
    "kept_graphs": Kind(KeptGraphs, True, ("memory_creep",)),
    "ascent": Kind(Ascent, True, _BROKEN),
    "foreign_parameters": Kind(ForeignParameters, True, _STUCK),
    "constant_reward": Kind(ConstantReward, True, ("reward_spread_zero",), ("grpo",)),
    "runaway_policy": Kind(
        Fault, True, ("kl_high", "entropy_collapse", "reward_spread_zero"), ("grpo",)
    ),
    "same_reference": Kind(Fault, True, ("dpo_stuck",), ("dpo",)),
    "frozen_layers": Kind(FrozenLayers, False, ()),
    "leaked_rows": Kind(LeakedRows, False, ()),
    "resume_without_optimizer": Kind(ResumeWithoutOptimizer, False, ("resume_discontinuity",)),
}
