"""Label-free checks of a training loop, for faults that no loss shows.

    probes = Probes(model, optimizer)
    for epoch in range(epochs):
        ...
        log.epoch(epoch, {"loss": loss, **probes.values()})

`values` gives the numbers of the epoch, and detectors read them (docs/detectors.md). Probes hang
on the model's forward and on the optimizer's step; they draw no random numbers and change nothing.
What they cost is bounded: of each tensor a sample is looked at, seldom, and no more once a share of
the time is spent. An evaluation on training rows stands in `with probes.off():`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from harness.clock import Clock, SystemClock
from harness.training.row_prints import RowPrints

_UNITS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.ELU)
_MODES = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_SAMPLE = 65_536
"""Values of all parameters that one look compares."""
_TENSORS, _LAYERS = 2_000, 64
_ROWS = 256
"""Rows of a batch in which a unit is looked at."""
_EARLY = 3
"""Steps of an epoch that are all looked at: an adapter's first gradient is 0."""


class Probes:
    """Numbers of one epoch at a time, as `values` returns them; shares are of 0 to 1.

    Safe to leave in: with `share` = 0.02 they take at most about 2% of the time, from the first
    seconds on.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        *,
        every: int = 50,
        share: float = 0.02,
        clock: Clock | None = None,
    ) -> None:
        self._optimizers = (
            [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else [*optimizer]
        )
        self._model, self._every, self._share = model, every, share
        self._clock = clock or SystemClock()
        self._began, self._spent = self._clock.monotonic(), 0.0
        self._named = list(model.named_parameters())[:_TENSORS]
        kinds = (*_MODES, *_NORMS)
        self._modal = [each for each in model.modules() if isinstance(each, kinds)]
        self._silent = False
        self._prints = RowPrints()
        self._steps = 0
        self._before: dict[str, Tensor] = {}
        self._clear()
        model.register_forward_pre_hook(self._enter, with_kwargs=True)
        for each in self._optimizers:
            each.register_step_pre_hook(self._stepping)
            each.register_step_post_hook(self._stepped)
        units = [each for each in model.modules() if isinstance(each, _UNITS)]
        for number, unit in enumerate(units[:_LAYERS]):
            unit.register_forward_hook(self._activity(number))

    def values(self) -> dict[str, float]:
        """The numbers since the last call; those that could not be measured are left out."""
        found = self._of_parameters()
        if self._dead:
            dead = [float(mask.float().mean()) for mask in self._dead.values()]
            found["dead_units"] = max(dead)
        if self._ratios:
            found["update_ratio"] = sorted(self._ratios)[len(self._ratios) // 2]
        if self._modal and self._trained:
            found["training_in_eval_mode"] = self._trained_wrong / self._trained
        if self._modal and self._evaluated:
            found["evaluation_in_train_mode"] = self._evaluated_wrong / self._evaluated
        found |= self._prints.values()
        self._clear()
        return {f"probe/{name}": value for name, value in found.items()}

    @contextmanager
    def off(self) -> Iterator[None]:
        """Look at nothing, e.g. in an evaluation on training rows."""
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before

    def _clear(self) -> None:
        self._epoch_steps = 0
        self._ratios: list[float] = []
        self._with_gradient: set[str] = set()
        self._asked: set[str] = set()
        self._moved: set[str] = set()
        self._dead: dict[tuple[int, int], Tensor] = {}
        self._trained = self._trained_wrong = self._evaluated = self._evaluated_wrong = 0

    def _affords(self) -> bool:
        """Whether the share of the time is not spent; the first second is free."""
        passed = self._clock.monotonic() - self._began
        return self._spent <= self._share * max(passed, 1.0 / max(self._share, 1e-9))

    def _looks(self) -> bool:
        return self._epoch_steps < _EARLY or self._steps % self._every == 0

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin = self._clock.monotonic()
        try:
            with torch.no_grad():
                yield
        finally:
            self._spent += self._clock.monotonic() - begin

    def _enter(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Before a forward: the mode, and prints of the rows."""
        if self._silent:
            return
        training = torch.is_grad_enabled()
        in_training = any(each.training for each in self._modal)
        if training:
            self._trained += 1
            self._trained_wrong += not in_training
        else:
            self._evaluated += 1
            self._evaluated_wrong += in_training
        batch = _first_tensor([*args, *kwargs.values()])
        if batch is not None and self._affords():
            with self._timed():
                self._prints.add(batch, training=training)

    def _activity(self, number: int) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            wanted = torch.is_grad_enabled() and self._looks() and not self._silent
            if wanted and isinstance(output, Tensor) and output.dim() > 1 and self._affords():
                with self._timed():
                    self._note_dead(number, output.detach()[:_ROWS])

        return hook

    def _note_dead(self, number: int, output: Tensor) -> None:
        """A unit is dead where no row switches it on."""
        # Units are the last dimension, of images and signals the second.
        for axis in {1, output.dim() - 1} if output.dim() < 4 else {1}:
            units = output.movedim(axis, -1)
            off = (units <= 0).reshape(-1, units.shape[-1]).all(0)
            before = self._dead.get((number, axis))
            if before is not None and before.shape == off.shape:
                off &= before
            self._dead[number, axis] = off

    def _stepping(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._silent or not self._looks() or not self._affords():
            return
        rates = {id(p): g["lr"] for g in optimizer.param_groups for p in g["params"]}
        with self._timed():
            for name, parameter in self._named:
                if not float(rates.get(id(parameter), 0.0)):
                    continue
                self._asked.add(name)
                if parameter.grad is None:
                    continue
                self._with_gradient.add(name)
                self._before[name] = self._sample(parameter).clone()

    def _stepped(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer is self._optimizers[-1]:
            self._steps += 1
            self._epoch_steps += 1
        if not self._before:
            return
        with self._timed():
            for name, parameter in self._named:
                before = self._before.get(name)
                if before is None or parameter.grad is None:
                    continue
                moved = (self._sample(parameter) - before).float().norm()
                size = before.float().norm()
                # A sampled gradient of 0, as of words that no row held, says nothing.
                if float(moved) or not float(self._sample(parameter.grad).abs().max()):
                    self._moved.add(name)
                ratio = float(moved / size) if float(size) else math.inf
                if math.isfinite(ratio):
                    self._ratios.append(ratio)
            self._before.clear()

    def _sample(self, tensor: Tensor) -> Tensor:
        most = max(1, _SAMPLE // max(len(self._named), 1))
        flat = tensor.detach().reshape(-1)
        return flat[:: max(1, len(flat) // most)][:most]

    def _of_parameters(self) -> dict[str, float]:
        """Shares of the parameters, by their number of values."""
        held = {id(p) for o in self._optimizers for g in o.param_groups for p in g["params"]}
        total = sum(p.numel() for _, p in self._named)
        if not total:
            return {}
        frozen = sum(p.numel() for _, p in self._named if not p.requires_grad)
        left = sum(p.numel() for _, p in self._named if p.requires_grad and id(p) not in held)
        found = {"frozen": frozen / total, "left_out": left / total}
        if self._asked:
            asked = [
                (n, p.numel()) for n, p in self._named if n in self._asked and p.requires_grad
            ]
            unused = sum(size for name, size in asked if name not in self._with_gradient)
            still = self._with_gradient - self._moved
            found["unused"] = unused / total
            found["still"] = sum(size for name, size in asked if name in still) / total
        return found


def _first_tensor(values: Iterable[Any]) -> Tensor | None:
    """The first batch among a forward's arguments: labels come after inputs."""
    for value in values:
        if isinstance(value, Tensor) and value.dim() > 1:
            return value
        if isinstance(value, Mapping):
            found = _first_tensor(value.values())
            if found is not None:
                return found
    return None
