"""Cross-validation that goes on at the fold where it was: each fold's result and model are kept as
soon as it is done.

    with RunLogger.from_environment() as log:
        folds = CrossValidation(log, LogisticRegression(), x, y, splits=KFold(5).split(x),
        score=accuracy) log.start(len(folds), resumed_at=folds.first) folds.run()

What the run logger counts as epochs are folds.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from harness.errors import UsageError
from harness.files import atomic_write, pretty_json, sha256_file
from harness.run_logger import RunLogger
from harness.training.cadence import Goal, goal_from_environment

Score = Callable[[Any, Any, Any], float]
"""(fitted estimator, validation inputs, validation labels) -> the plan's metric."""


@dataclass(frozen=True, kw_only=True)
class Fold:
    fold: int
    """From 0."""
    value: float
    rows: int
    """Of the validation part."""
    path: Path
    """The fitted estimator, for `joblib.load`."""


class CrossValidation:
    """Fits a clone of `estimator` on each split's training rows and scores it on the others.

    What is kept belongs to the data, the estimator's parameters and the splits by their hash: with
    others it starts again, beside. An estimator with `random_state=None` draws anew in every fold,
    also without a resume: give a number.

    Args:
        splits: (training rows, validation rows) a fold, as scikit-learn's splitters give them.
        goal: which fold is best, by default by the plan's metric.
    """

    def __init__(
        self,
        log: RunLogger,
        estimator: Any,
        x: Any,
        y: Any,
        *,
        splits: Iterable[tuple[Any, Any]],
        score: Score,
        goal: Goal | None = None,
    ) -> None:
        self._log, self._estimator, self._x, self._y, self._score = (
            log,
            estimator,
            np.asarray(x),
            np.asarray(y),
            score,
        )
        self._splits = [(np.asarray(train), np.asarray(rest)) for train, rest in splits]
        if not self._splits or any(not len(train) or not len(rest) for train, rest in self._splits):
            raise UsageError(
                "A fold without rows cannot be scored.",
                hint="Give at least one split, each with rows.",
            )
        self._goal = goal or goal_from_environment()
        told = [
            self._x,
            self._y,
            type(estimator).__qualname__,
            estimator.get_params(),
            self._splits,
        ]
        self.folder = log.checkpoint_dir / f"folds-{joblib.hash(told)[:16]}"

    def __len__(self) -> int:
        return len(self._splits)

    @property
    def first(self) -> int:
        """The first fold that is not done."""
        return next((fold for fold in range(len(self)) if self._done(fold) is None), len(self))

    def run(self) -> list[Fold]:
        """All folds, those done before as they were kept; the best one's model is told of as the
        one to score."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folds = [self._done(fold) or self._fit(fold) for fold in range(len(self))]
        best = self.best(folds)
        self._log.checkpoint_saved(
            (best or folds[-1]).path, epoch=(best or folds[-1]).fold, final=True
        )
        return folds

    def best(self, folds: Iterable[Fold]) -> Fold | None:
        """By the goal; None when no value is finite."""
        best: Fold | None = None
        for fold in folds:
            if self._goal.better(fold.value, best.value if best else None):
                best = fold
        return best

    def _fit(self, fold: int) -> Fold:
        """The row is logged before the fold counts as done: a kill between them costs the fold
        again, not its row."""
        train, rest = self._splits[fold]
        fitted = clone(self._estimator).fit(self._x[train], self._y[train])
        value = float(self._score(fitted, self._x[rest], self._y[rest]))
        path = self._path(fold)
        building = path.with_suffix(".partial")
        joblib.dump(fitted, building)
        building.replace(path)
        self._log.epoch(fold, {self._goal.metric: value})
        self._log.checkpoint_saved(path, epoch=fold)
        kept = {"fold": fold, "value": value, "rows": len(rest), "model": sha256_file(path)}
        atomic_write(path.with_suffix(".json"), pretty_json(kept))
        return Fold(fold=fold, value=value, rows=len(rest), path=path)

    def _done(self, fold: int) -> Fold | None:
        path = self._path(fold)
        try:
            kept = json.loads(path.with_suffix(".json").read_text("utf-8"))
            if kept["model"] != sha256_file(path):
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        value = float(kept["value"]) if not isinstance(kept["value"], str) else math.nan
        return Fold(fold=fold, value=value, rows=kept["rows"], path=path)

    def _path(self, fold: int) -> Path:
        return self.folder / f"fold-{fold}.joblib"
