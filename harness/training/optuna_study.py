"""Optuna with the run logger: `Search`, which can be resumed, and a callback for any other study.

    with RunLogger.from_environment() as log:
        search = Search(log, seed=log.seed)
        log.start(20, resumed_at=search.first)
        study = search.run(objective, trials=20)

    with RunLogger.from_environment() as log:
        callback = OptunaCallback(log, total_trials=40, study=study)
        study.optimize(objective, n_trials=40, callbacks=[callback])

The run logger's epochs are trials.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import (
    BasePruner,
    NopPruner,
)
from optuna.samplers import (
    BaseSampler,
    TPESampler,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import (
    FrozenTrial,
    TrialState,
)

from harness.run_logger import RunLogger
from harness.training.cadence import (
    Goal,
    goal_from_environment,
)
from harness.training.callback_rows import numbers

_CLOSED = "closed after a kill"


class Search:
    """A study kept in `checkpoints/study.journal` of the run. A resumed search continues with the
    next trial and draws what it would have drawn.

    Args:
        sampler: makes a sampler from a seed, by default `TPESampler`.
        pruner: by default none (Optuna's own default is the median pruner).
        goal: metric and direction, by default the plan's.
    """

    def __init__(
        self,
        log: RunLogger,
        *,
        seed: int,
        sampler: Callable[[int], BaseSampler] = lambda seed: TPESampler(seed=seed),
        pruner: BasePruner | None = None,
        goal: Goal | None = None,
    ) -> None:
        self._log, self._seed, self._sampler = log, seed, sampler
        self._goal = goal or goal_from_environment()
        path = log.checkpoint_dir / "study.journal"
        path.parent.mkdir(parents=True, exist_ok=True)
        repair_journal(path)
        self.study = optuna.create_study(
            study_name="study",
            storage=JournalStorage(JournalFileBackend(str(path))),
            direction=self._goal.direction.value,
            pruner=pruner or NopPruner(),
            load_if_exists=True,
        )
        self._close_running()

    @property
    def first(self) -> int:
        """The place of the next trial: the number of trials that have ended."""
        closed = self.study.user_attrs.get(_CLOSED, [])
        return sum(trial.number not in closed for trial in self.study.trials)

    def run(self, objective: Callable[[optuna.Trial], float], *, trials: int) -> optuna.Study:
        """Run until `trials` have ended, those before a resume included; one row a trial."""
        if self.first:
            self._log.resumed()
        # Each trial has a sampler of its own, seeded by the search's seed and the trial's place.
        # One seeded sampler for all would draw its first values again after a resume.
        for place in range(self.first, trials):
            self.study.sampler = self._sampler(self._seed + place)
            self.study.optimize(
                lambda trial, place=place: self._logged(objective, trial, place), n_trials=1
            )
        return self.study

    def _logged(
        self, objective: Callable[[optuna.Trial], float], trial: optuna.Trial, place: int
    ) -> float:
        # The row is written before the trial ends: a kill in between repeats the trial, and never
        # leaves a trial without its row.
        try:
            value = float(objective(trial))
        except optuna.TrialPruned:
            self._log.epoch(place, {"pruned": 1})
            raise
        drawn = {
            f"param/{name}": parameter
            for name, parameter in trial.params.items()
            if isinstance(parameter, int | float)
        }
        self._log.epoch(place, {self._goal.metric: value, **drawn})
        return value

    def _close_running(self) -> None:
        """Trials of a killed process end as failed; the next trial takes their place and draws the
        same."""
        # Optuna alone would leave them RUNNING for ever.
        left = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if left:
            known = self.study.user_attrs.get(_CLOSED, [])
            self.study.set_user_attr(_CLOSED, sorted({*known, *(trial.number for trial in left)}))
        for trial in left:
            self.study.tell(trial.number, state=TrialState.FAIL)


def repair_journal(path: Path) -> None:
    """Cut off a torn last line and remove a dead writer's lock, before Optuna opens the file."""
    # Behind a torn line every later one would be unreadable. No lock can be a living writer's: only
    # the run's own process writes the journal.
    for lock in path.parent.glob(f"{path.name}.lock*"):
        lock.unlink(missing_ok=True)
    if not path.is_file():
        return
    with path.open("rb+") as stream:
        data = stream.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            stream.truncate(whole)


def _not_restored(study: optuna.Study, number: int) -> list[str]:
    open_ones = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    left = [str(one.number) for one in open_ones if one.number < number]
    missing = [f"what the {type(study.sampler).__name__} would have drawn"]
    return missing + ([f"trials that were running ({', '.join(left)})"] if left else [])


class OptunaCallback:
    """Row n is trial n: `metric`, `best`, `seconds`, and its numeric parameters as param/<name>.

    Optuna counts a trial as failed whose value is NaN, or that raised an error named by `catch`:
    the row says NaN for both. A pruned or failed trial has `pruned` or `failed`. The callback
    starts the log; in a study that was loaded again it names the first trial, and what such a study
    does not keep: a `Search` goes on exactly.

    `study`: one that may have been loaded again. Optuna keeps a trial before its callbacks are
    called; the row of the last one, which a kill in between has lost, is then written again.
    """

    def __init__(
        self,
        log: RunLogger,
        *,
        metric: str = "objective",
        total_trials: int | None = None,
        study: optuna.Study | None = None,
    ) -> None:
        self._log, self._metric, self._total = log, metric, total_trials
        self._begun = False
        trials = [] if study is None else study.get_trials(deepcopy=False)
        if study is not None and (ended := [one for one in trials if one.state.is_finished()]):
            self._begin(study, trials[-1].number + 1, at=ended[-1].number)
            self._write(study, ended[-1])

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        if not self._begun:
            self._begin(study, trial.number, at=trial.number)
        self._write(study, trial)

    def _begin(self, study: optuna.Study, number: int, *, at: int) -> None:
        """Of the next trial; rows from `at` on are written by this process."""
        self._begun = True
        if number:
            self._log.resumed(_not_restored(study, number))
        self._log.start(self._total, {"study": study.study_name}, resumed_at=at or None)

    def _write(self, study: optuna.Study, trial: FrozenTrial) -> None:
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

    def _best(self, study: optuna.Study) -> dict[str, float]:
        if len(study.directions) > 1:
            return {}
        try:
            return {"best": study.best_value}
        except ValueError:  # no trial has completed yet
            return {}
