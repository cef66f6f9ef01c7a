"""Cross-validation that can be resumed: a fold's result and model are kept as soon as it is done.

    with RunLogger.from_environment() as log:
        folds = CrossValidation(log, LogisticRegression(), x, y,
                                splits=KFold(5).split(x), score=accuracy)
        log.start(len(folds), resumed_at=folds.first)
        folds.run()

The run logger's epochs are folds.
"""

import json
import math
from collections.abc import (
    Callable,
    Iterable,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from harness.errors import UsageError
from harness.files import (
    atomic_write,
    pretty_json,
    sha256_file,
)
from harness.run_logger import RunLogger
from harness.training.cadence import (
    Goal,
    goal_from_environment,
)

Score = Callable[[Any, Any, Any], float]
"""(fitted estimator, validation inputs, validation labels) -> the plan's metric."""


@dataclass(frozen=True, kw_only=True)
class Fold:
    fold: int
    """From 0."""
    value: float
    rows: int
    """Number of validation rows."""
    path: Path
    """The fitted estimator, for `joblib.load`."""


class CrossValidation:
    """Fits a clone of `estimator` on each split's training rows and scores it on the others.

    Kept folds belong to one hash of data, parameters and splits; with others the folds start again.
    Give the estimator a `random_state`: with None a resumed fold draws other numbers.

    Args:
        splits: (training rows, validation rows) a fold, as scikit-learn's splitters give them.
        goal: decides which fold is best, by default the plan's.
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
        self._log, self._estimator, self._score = log, estimator, score
        self._x, self._y = np.asarray(x), np.asarray(y)
        self._splits = [(np.asarray(train), np.asarray(rest)) for train, rest in splits]
        if not self._splits or any(
            not len(train) or not len(rest) for train, rest in self._splits
        ):
            raise UsageError(
                "A fold without rows cannot be scored.",
                hint="Give at least one split, each with rows.",
            )
        self._goal = goal or goal_from_environment()
        name, parameters = type(estimator).__qualname__, estimator.get_params()
        digest = joblib.hash([self._x, self._y, name, parameters, self._splits])
        self.folder = log.checkpoint_dir / f"folds-{digest[:16]}"

    def __len__(self) -> int:
        return len(self._splits)

    @property
    def first(self) -> int:
        """The first fold that is not done."""
        return next((fold for fold in range(len(self)) if self._done(fold) is None), len(self))

    def run(self) -> list[Fold]:
        """All folds; those done before are read back. The best fold's model is logged as final."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.first:
            self._log.resumed()
        folds = [self._done(fold) or self._fit(fold) for fold in range(len(self))]
        chosen = self.best(folds) or folds[-1]
        self._log.checkpoint_saved(chosen.path, epoch=chosen.fold, final=True)
        return folds

    def best(self, folds: Iterable[Fold]) -> Fold | None:
        """The best fold by the goal; None when no value is finite."""
        best: Fold | None = None
        for fold in folds:
            if self._goal.better(fold.value, best.value if best else None):
                best = fold
        return best

    def _fit(self, fold: int) -> Fold:
        train, rest = self._splits[fold]
        fitted = clone(self._estimator).fit(self._x[train], self._y[train])
        value = float(self._score(fitted, self._x[rest], self._y[rest]))
        path = self._path(fold)
        building = path.with_suffix(".partial")
        joblib.dump(fitted, building)
        building.replace(path)
        # The row is logged before the fold counts as done: a kill in between repeats the fold, and
        # never leaves a fold without its row.
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
