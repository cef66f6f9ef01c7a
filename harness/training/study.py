"""An Optuna search that goes on at the trial where it was, and draws what it would have drawn.

    with RunLogger.from_environment() as log:
        search = Search(log, seed=log.seed)
        log.start(20, resumed_at=search.first)
        study = search.run(objective, trials=20)

What the run logger counts as epochs are trials. Each trial's sampler is seeded by the search's seed
and the trial's place, so neither a resume nor an interrupted trial changes or repeats a draw.
(Optuna alone: a seeded sampler draws its first values again after a resume, and a trial of a killed
process stays RUNNING for ever.)
"""

from collections.abc import Callable
from pathlib import Path

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from harness.run_logger import RunLogger
from harness.training.cadence import Goal, goal_from_environment

_CLOSED = "closed after a kill"


class Search:
    """A study kept in `checkpoints/study.journal` of the run.

    Args:
        sampler: makes one from a seed, by default `TPESampler`.
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
        """The place of the next trial: how many have ended."""
        closed = self.study.user_attrs.get(_CLOSED, [])
        return sum(trial.number not in closed for trial in self.study.trials)

    def run(self, objective: Callable[[optuna.Trial], float], *, trials: int) -> optuna.Study:
        """Go on until `trials` have ended, those before a resume included; one row a trial."""
        for place in range(self.first, trials):
            self.study.sampler = self._sampler(self._seed + place)
            self.study.optimize(
                lambda trial, place=place: self._logged(objective, trial, place), n_trials=1
            )
        return self.study

    def _logged(
        self, objective: Callable[[optuna.Trial], float], trial: optuna.Trial, place: int
    ) -> float:
        """The row is written before the trial ends: a kill between them costs the trial again, not
        its row."""
        try:
            value = float(objective(trial))
        except optuna.TrialPruned:
            self._log.epoch(place, {"pruned": 1})
            raise
        numbers = {
            name: given for name, given in trial.params.items() if isinstance(given, int | float)
        }
        self._log.epoch(
            place,
            {self._goal.metric: value, **{f"param/{name}": numbers[name] for name in numbers}},
        )
        return value

    def _close_running(self) -> None:
        """Trials of a killed process end as failed; what they drew is drawn again by the trial in
        their place."""
        left = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if left:
            known = self.study.user_attrs.get(_CLOSED, [])
            self.study.set_user_attr(_CLOSED, sorted({*known, *(trial.number for trial in left)}))
        for trial in left:
            self.study.tell(trial.number, state=TrialState.FAIL)


def repair_journal(path: Path) -> None:
    """Cut a torn last line off and take a dead writer's lock away, before Optuna opens the file:
    behind a torn line every later one would be unreadable. One process writes the journal: the
    run's own."""
    for lock in path.parent.glob(f"{path.name}.lock*"):
        lock.unlink(missing_ok=True)
    if not path.is_file():
        return
    with path.open("rb+") as stream:
        data = stream.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            stream.truncate(whole)
