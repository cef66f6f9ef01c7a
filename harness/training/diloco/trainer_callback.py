"""DiLoCo for transformers.Trainer and every trainer built on it.

    replicas = DiLoCoCallback(log)
    trainer = Trainer(model, TrainingArguments(max_steps=400, save_strategy="no", ...),
                      train_dataset=replicas.shard(dataset),
                      callbacks=[TransformersCallback(log), replicas])
    trainer.train()

In a run without replicas it does nothing, so one program serves both.

TRL's trainers order a table themselves: it is made of `replicas.share(rows)`. A trainer whose loss
is not its model's calls `note` before each step, as `ComposedTrainer` does.
"""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from harness.domain import variables
from harness.domain.distributed import DiLoCoConfig
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.training.diloco.replica import DiLoCo

T = TypeVar("T")
_Loss = tuple[torch.Tensor | float, float]
"""(mean, tokens)."""


class DiLoCoCallback(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """Rounds are placed by the trainer's steps. `state.global_step` is the step that counts: it
    goes on where a healed replica is, and back after a round in which one died."""

    def __init__(self, log: RunLogger, config: DiLoCoConfig | None = None) -> None:
        self._log = log
        self._replica = os.environ.get(variables.REPLICA)
        self._config = config or DiLoCoConfig.from_environment(os.environ)
        self._diloco: DiLoCo | None = None
        self._hook: Any = None
        self._rows: _Shard | None = None
        self._answered: list[_Loss] = []
        self._told: _Loss | None = None

    def share(self, rows: Sequence[T]) -> list[T]:
        """This replica's rows, for a trainer that orders them itself; all without replicas."""
        every = 1 if self._replica is None else self._config.replicas
        return list(rows[int(self._replica or 0) :: every])

    def note(self, loss: torch.Tensor | float, *, tokens: float) -> None:
        """The loss of the step that comes, a mean over `tokens`, in place of what the model's
        forward passes answered."""
        self._told = loss, tokens

    def shard(self, dataset: Any) -> Any:
        """This replica's rows, without end, in an order of the run's seed. Those of a replica that
        is away wait for it."""
        if self._replica is None:
            return dataset
        own = range(int(self._replica), len(dataset), self._config.replicas)
        self._rows = _Shard(dataset, list(own), self._log.seed)
        return self._rows

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        model: torch.nn.Module | None = None,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_more: Any,
    ) -> None:
        if self._replica is None:
            return
        if args.max_steps <= 0 or args.max_steps % self._config.steps:
            raise UsageError(
                f"TrainingArguments.max_steps is {args.max_steps}; expected a multiple of"
                f" {self._config.steps}, the steps of a round: all replicas end with one.",
                hint=f"E.g. max_steps={10 * self._config.steps}.",
                code="distributed_invalid",
            )
        assert model is not None
        inner = getattr(optimizer, "optimizer", optimizer)  # accelerate's has it inside
        self._diloco = DiLoCo(
            model, inner, self._config, log=self._log, scheduler=lr_scheduler, by_steps=True
        )
        self._hook = model.register_forward_hook(self._noted, with_kwargs=True)
        self._diloco.__enter__()
        if self._rows is not None:
            self._rows.a_step = args.per_device_train_batch_size * args.gradient_accumulation_steps
        self._go_on(state)

    def on_pre_optimizer_step(self, *_words: Any, **_more: Any) -> None:
        if self._diloco is not None:
            for loss, tokens in self._answered if self._told is None else [self._told]:
                self._diloco.note(loss, tokens=tokens)
        self._answered, self._told = [], None

    def on_step_end(
        self, _args: TrainingArguments, state: TrainerState, control: TrainerControl, **_more: Any
    ) -> TrainerControl:
        if self._diloco is not None and self._diloco.steps != state.global_step:
            self._go_on(state)
        control.should_training_stop |= state.global_step >= state.max_steps
        return control

    def on_train_end(
        self,
        _args: TrainingArguments,
        _state: TrainerState,
        _control: TrainerControl,
        **_more: Any,
    ) -> None:
        if self._diloco is not None:
            self._hook.remove()
            self._diloco.__exit__(None, None, None)

    def _go_on(self, state: TrainerState) -> None:
        assert self._diloco is not None
        state.global_step = self._diloco.steps
        if self._rows is not None:
            self._rows.go_on(self._diloco.steps)

    def _noted(
        self, model: torch.nn.Module, _args: Any, given: Mapping[str, Any], answer: Any
    ) -> None:
        loss = getattr(answer, "loss", None)
        if self._diloco is None or loss is None or not model.training:
            return
        labels = given.get("labels")
        tokens = 1 if labels is None else int((labels != -100).sum())
        # With accumulation the trainer has the loss divided by the tokens of the whole step.
        items = given.get("num_items_in_batch")
        total = float(loss.detach()) * float(tokens if items is None else items)
        self._answered.append((total / max(1, tokens), tokens))


class _Shard(torch.utils.data.IterableDataset[Any]):
    def __init__(self, dataset: Any, own: list[int], seed: int) -> None:
        self._dataset, self._own, self._seed = dataset, own, seed
        self._place, self._pass = 0, -1
        self._order: list[int] = []
        self.a_step = 1
        """Rows of one step of the optimizer."""

    def go_on(self, step: int) -> None:
        self._place = step * self.a_step

    def __iter__(self) -> Iterator[Any]:
        while True:
            number, inside = divmod(self._place, len(self._own))
            if number != self._pass:
                self._pass, self._order = number, self._own.copy()
                random.Random(f"{self._seed}/{number}").shuffle(self._order)
            self._place += 1  # before the row: the trainer may set it meanwhile
            yield self._dataset[self._order[inside]]
