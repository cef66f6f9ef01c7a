"""One real training, told as rows of the run logger. A fault is injected through the hooks of
`Fault`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from bench.detectors.models import build
from bench.detectors.small_data import Data, Split, load

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training, complete: equal recipes give equal rows, times aside."""

    task: str
    seed: int
    order: int = 0
    """Twins differ in this alone: the order of the batches."""
    rows: int = 40
    steps: int = 10
    """Optimizer steps a row."""
    batch: int = 64
    optimizer: str = "adam"
    lr: float = 3e-3
    schedule: str = "constant"
    width: int = 32
    dropout: float = 0.0
    decay: float = 0.0
    smoothing: float = 0.0
    clip: float | None = None
    share: float = 1.0
    """Of the training rows."""
    precision: str = "full"
    start_steps: int = 0
    """Steps that were taken before the first row: fine-tuning."""
    resumed_at: int | None = None
    """A row before which it was stopped and resumed with nothing lost."""
    form: str = "epochs"
    """epochs, or steps: rows without an epoch and without validation."""
    names: str = "ours"
    """ours, hf, lightning, percent or rounded."""


class Fault:
    """Does nothing. A subclass injects one fault by the hooks that it overrides."""

    from_start = True

    def __init__(self, seed: int) -> None:
        self.row = 0 if self.from_start else 9 + seed % 6
        """The row before which it is injected; row 0 is the first."""

    def start(self, run: "Run") -> None: ...

    def before_row(self, run: "Run", row: int) -> None: ...

    def batch(self, run: "Run", x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x, y

    def loss(self, run: "Run", loss: Tensor) -> Tensor:
        return loss

    def step(self, run: "Run") -> None:
        run.optimizer.step()
        run.optimizer.zero_grad()

    def extra_seconds(self, run: "Run", usual: float) -> float:
        return 0.0

    def active(self, run: "Run") -> bool:
        return run.row >= self.row


class Run:
    """The state of a training; `rows()` is the loop."""

    def __init__(self, recipe: Recipe, fault: Fault) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe, self.fault, self.row, self.done = recipe, fault, 0, 0
        self.data: Data = load(recipe.task)
        self.train = _part(self.data.train, recipe.share, recipe.seed)
        self.model = build(recipe.task, self.data, width=recipe.width, dropout=recipe.dropout)
        self.lr = recipe.lr
        self.optimizer = self.new_optimizer()
        self.total = recipe.rows * recipe.steps
        self.order = torch.Generator().manual_seed(1000 * recipe.seed + recipe.order)
        self.attempts, self.kept = 1, []
        self.notes: Rows = []
        """Rows of other events that are told before the next one."""
        fault.start(self)

    def new_optimizer(self) -> torch.optim.Optimizer:
        recipe, parameters = self.recipe, list(self.model.parameters())
        kinds: dict[str, Any] = {
            "sgd": lambda: torch.optim.SGD(parameters, self.lr, weight_decay=recipe.decay),
            "momentum": lambda: torch.optim.SGD(
                parameters, self.lr, momentum=0.9, weight_decay=recipe.decay
            ),
            "nesterov": lambda: torch.optim.SGD(parameters, self.lr, momentum=0.9, nesterov=True),
            "adam": lambda: torch.optim.Adam(parameters, self.lr),
            "adamw": lambda: torch.optim.AdamW(
                parameters, self.lr, weight_decay=recipe.decay or 0.01
            ),
            "rmsprop": lambda: torch.optim.RMSprop(parameters, self.lr),
            "adagrad": lambda: torch.optim.Adagrad(parameters, self.lr),
        }
        return kinds[recipe.optimizer]()

    def rows(self) -> Iterator[dict[str, Any]]:
        recipe = self.recipe
        yield {
            "event": "start",
            "total_epochs": recipe.rows if recipe.form == "epochs" else None,
            "t": 0.0,
        }
        for _ in range(recipe.start_steps):
            self._step()
        self.done, now = 0, 0.0
        for row in range(recipe.rows):
            self.row = row
            self.fault.before_row(self, row)
            if row == recipe.resumed_at:
                self.notes.append({"event": "attempt", "attempt": 2})
            yield from self.notes
            self.notes.clear()
            begin = process_time()
            losses, norms = zip(*(self._step() for _ in range(recipe.steps)), strict=True)
            metrics = {"train_loss": sum(losses) / len(losses), "grad_norm": norms[-1]}
            if recipe.form == "epochs":
                metrics |= self.evaluate()
            took = process_time() - begin
            now += took + self.fault.extra_seconds(self, took)
            metrics["memory_mb"] = 100.0 + sum(tensor.numel() * 4 for tensor in self.kept) / 1e6
            yield _named(recipe, row, metrics, self.rate, now)
        yield {"event": "end", "status": "completed", "t": now}

    @property
    def rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def _step(self) -> tuple[float, float]:
        recipe = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * factor(recipe.schedule, self.done, self.total)
        self.done += 1
        pick = torch.randint(
            len(self.train.x), (min(recipe.batch, len(self.train.x)),), generator=self.order
        )
        x, y = self.fault.batch(self, self.train.x[pick], self.train.y[pick])
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.precision == "bf16"):
            loss = self.criterion(self.model(x), y)
        self.fault.loss(self, loss).backward()
        limit = float("inf") if recipe.clip is None else recipe.clip
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.fault.step(self)
        return float(loss.detach()), float(norm)

    def criterion(self, out: Tensor, y: Tensor) -> Tensor:
        if self.data.outputs == 1:
            return nn.functional.mse_loss(out.float(), y)
        return nn.functional.cross_entropy(
            out.float().flatten(0, -2), y.flatten(), label_smoothing=self.recipe.smoothing
        )

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        self.model.eval()
        later = self.data.later
        out = self.model(later.x)
        metrics = {"val_loss": float(self.criterion(out, later.y))}
        if self.data.outputs > 1:
            metrics["val_accuracy"] = float((out.argmax(-1) == later.y).float().mean())
        return metrics


def factor(schedule: str, step: int, total: int) -> float:
    """The part of the learning rate that a schedule gives at a step."""
    if ":" in schedule:
        return _cycle(schedule, step)
    part = step / max(total, 1)
    warm = min(1.0, (step + 1) / (0.1 * total))
    return {
        "constant": 1.0,
        "cosine": 0.5 * (1 + math.cos(math.pi * part)),
        "warmup_cosine": warm * 0.5 * (1 + math.cos(math.pi * part)),
        "restarts": 0.5 * (1 + math.cos(math.pi * (4 * part % 1))),
        "steps": 0.1 ** int(3 * part),
        "linear": 1.0 - part,
        "one_cycle": part / 0.3 if part < 0.3 else (1 - part) / 0.7,
        "inverse_root": warm / math.sqrt(max(1.0, step / (0.1 * total))),
    }[schedule]


def _cycle(schedule: str, step: int) -> float:
    """`triangular:ROWS` or `sgdr:ROWS`, for ten steps a row."""
    name, _, rows = schedule.partition(":")
    place = step / (10 * int(rows)) % 1
    if name == "sgdr":
        return 0.5 * (1 + math.cos(math.pi * place))
    return 0.05 + 0.95 * (1 - abs(2 * place - 1))


def _part(split: Split, share: float, seed: int) -> Split:
    if share >= 1:
        return split
    pick = torch.randperm(len(split.x), generator=torch.Generator().manual_seed(seed))[
        : int(share * len(split.x))
    ]
    return Split(split.x[pick], split.y[pick])


_NAMES = {
    "hf": {"train_loss": "loss", "val_loss": "eval_loss", "val_accuracy": "eval_accuracy"},
    "lightning": {"train_loss": "train_loss_step", "val_accuracy": "val_acc"},
}


def _named(
    recipe: Recipe, row: int, metrics: dict[str, float], rate: float, now: float
) -> dict[str, Any]:
    names = _NAMES.get(recipe.names, {})
    metrics = {names.get(key, key): value for key, value in metrics.items()}
    if recipe.names == "percent" and "val_accuracy" in metrics:
        metrics["val_accuracy"] *= 100
    if recipe.names == "rounded":
        metrics = {key: round(value, 4) for key, value in metrics.items()}
    plain: dict[str, Any] = {
        "event": "epoch",
        "step": (row + 1) * recipe.steps,
        "t": now,
        "learning_rate": rate,
    }
    if recipe.form == "epochs":
        plain["epoch"] = row
    return {**plain, "metrics": metrics}
