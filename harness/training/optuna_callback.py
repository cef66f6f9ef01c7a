"""A search by Optuna logs to the run logger through this callback: one row a trial.

with RunLogger.from_environment() as log:
    study.optimize(objective, n_trials=40, callbacks=[RunLoggerCallback(log, total_trials=40)])
"""

import math
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from harness.run_logger import RunLogger
from harness.training.reports import numbers


class RunLoggerCallback:
    """Row n is trial n: `metric`, `best`, the seconds it took, and its parameters that are numbers,
    as param/<name>.

    Optuna drops a NaN and calls the trial failed, like one that raised an error which `catch`
    names: both rows say NaN. A pruned or failed trial has `pruned` or `failed`. The callback starts
    the log; in a study that was loaded again it says from which trial on.
    """

    def __init__(
        self, log: RunLogger, *, metric: str = "objective", total_trials: int | None = None
    ) -> None:
        self._log, self._metric, self._total = log, metric, total_trials
        self._begun = False

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        if not self._begun:
            self._begun = True
            self._log.start(
                self._total, {"study": study.study_name}, resumed_at=trial.number or None
            )
        row = self._values(trial) | self._best(study)
        row |= {f"param/{name}": value for name, value in numbers(trial.params).items()}
        if trial.duration is not None:
            row["seconds"] = trial.duration.total_seconds()
        if trial.state in (TrialState.PRUNED, TrialState.FAIL):
            row["pruned" if trial.state is TrialState.PRUNED else "failed"] = 1
        self._log.epoch(trial.number, row)

    def _values(self, trial: FrozenTrial) -> dict[str, Any]:
        if trial.values is None:
            return {self._metric: math.nan} if trial.state is TrialState.FAIL else {}
        names = (
            [self._metric]
            if len(trial.values) == 1
            else [f"{self._metric}/{i}" for i in range(len(trial.values))]
        )
        return dict(zip(names, trial.values, strict=True))

    def _best(self, study: Study) -> dict[str, float]:
        if len(study.directions) > 1:
            return {}
        try:
            return {"best": study.best_value}
        except ValueError:  # no trial has completed yet
            return {}
