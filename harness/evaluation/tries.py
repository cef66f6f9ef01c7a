"""What an experiment is compared with, and which tries count beside it.

Facts of the ledger alone: a verdict's freshness can be told without the statistics.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from harness.domain.late import Late, dataclass
from harness.domain.records import Experiment
from harness.domain.statuses import ExperimentStatus, Split
from harness.evaluation.scores import recorded_evaluations, started
from harness.ledger.facts.evaluation import Evaluation
from harness.ledger.facts.plan import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret


@dataclass(frozen=True, kw_only=True)
class _Standing(Late):
    """An experiment on validation, in the comparison of the plan in force."""

    seeds: int
    """That have a score."""
    mean: float | None
    """As everybody may know it: of hidden labels what was told last; None without."""
    baseline: float | None
    """The trivial predictor's; None where it is nobody's to know."""


class Standings:
    """What is known of the experiments of a plan, each read once."""

    def __init__(self, project: Project, approved: ApprovedPlan) -> None:
        self._project, self._approved = project, approved
        self._objective = objective_of(approved)
        self._hidden = secret(approved, Split.VALIDATION.value)
        self._known: dict[str, _Standing] = {}
        self._parents: dict[str, str | None] = {}
        self._kept: list[Experiment] | None = None

    def scored(self, experiment: str) -> bool:
        return self._of(experiment).seeds > 0

    def reference(self, experiment: Experiment) -> str | None:
        """What `experiment` is compared with; None for the trivial predictor.

        The best of its parent, of those before it in its line and of what was kept before it:
        whoever goes on from a weak one has gained nothing by that.
        """
        parent = experiment.parent
        others = [*self._line(experiment), *self.kept_before(experiment)]
        names = [
            name
            for name in dict.fromkeys(others)
            # A part of the seeds is the parent's own fault, and told; of the others it is no score.
            if self._of(name).seeds >= (1 if name == parent else self._objective.seeds)
        ]
        if not names:
            return None
        return self._best(names)

    def best_kept(self) -> str | None:
        """What the next experiment goes on from, and is compared with, when nobody says more: the
        best that is kept; None while nothing is that beats the trivial predictor."""
        names = [one.id for one in self._kept_ones() if self._whole(one.id)]
        return self._best(names) if names else None

    def _whole(self, name: str) -> bool:
        """Whether all of the plan's seeds have a score."""
        return self._of(name).seeds >= self._objective.seeds

    def _best(self, names: Sequence[str]) -> str | None:
        """None where it is worse than the trivial predictor."""
        best = names[0]
        for name in names[1:]:
            best = name if self._beats(name, best) else best
        mean, baseline = self._of(best).mean, self._of(best).baseline
        if mean is None or baseline is None:
            return best
        return None if self._objective.gain(mean, baseline) < 0 else best

    def not_comparable(self, experiment: Experiment) -> bool:
        """Whether its parent was scored in another comparison only, e.g. on other data."""
        parent = experiment.parent
        if parent is None or self.scored(parent):
            return False
        evaluations = self._project.ledger.evaluations(parent, Split.VALIDATION)
        return any(evaluation.scored for evaluation in evaluations)

    def kept_before(self, experiment: Experiment) -> list[str]:
        """The plan's experiments that were opened before it and are kept."""
        return [one.id for one in self._kept_ones() if one.number < experiment.number]

    def _kept_ones(self) -> list[Experiment]:
        if self._kept is None:
            kept = self._project.ledger.experiments(statuses=[ExperimentStatus.KEPT])
            self._kept = [one for one in kept if one.plan == self._approved.name]
        return self._kept

    def _line(self, experiment: Experiment) -> list[str]:
        """Its parent, the parent's parent, ..."""
        line: list[str] = []
        name = experiment.parent
        while name is not None and name not in line:
            line.append(name)
            if name not in self._parents:
                self._parents[name] = self._project.ledger.experiment(name).parent
            name = self._parents[name]
        return line

    def _beats(self, name: str, best: str) -> bool:
        mean, other = self._of(name).mean, self._of(best).mean
        if mean is None or other is None:
            return mean is not None
        return self._objective.gain(mean, other) > 0

    def _of(self, experiment: str) -> _Standing:
        if experiment not in self._known:
            self._known[experiment] = self._read(experiment)
        return self._known[experiment]

    def _read(self, experiment: str) -> _Standing:
        recorded = recorded_evaluations(
            self._project, experiment, self._approved, Split.VALIDATION
        )
        scored = [one for one in recorded if one.scored]
        values = [one.value for one in scored if one.value is not None]
        mean = fmean(values) if values else None
        if self._hidden:
            mean = self._told(experiment)
        return _Standing(
            seeds=len({one.seed for one in scored}),
            mean=mean,
            baseline=scored[-1].baseline if scored else None,
        )

    def _told(self, experiment: str) -> float | None:
        # Chosen by exact scores, the reference's name would tell of the labels.
        told = self._project.ledger.releases(experiment, Split.VALIDATION)
        now = [one for one in told if one.plan_version == self._approved.comparison]
        return now[-1].mean if now else None


def reference_of(project: Project, experiment: Experiment, approved: ApprovedPlan) -> str | None:
    """See `Standings.reference`; None also where nothing is compared."""
    standings = Standings(project, approved)
    return None if standings.not_comparable(experiment) else standings.reference(experiment)


def earlier_tries(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> list[Experiment]:
    """The plan's experiments before `candidate` that are compared with the same reference, oldest
    first."""
    standings = Standings(project, approved)
    number = project.ledger.experiment(candidate).number
    tries = []
    for experiment in sorted(project.ledger.experiments(), key=lambda one: one.number):
        another = experiment.plan != approved.name or experiment.number >= number
        if another or experiment.id == reference:
            continue
        # With a parent that was scored in another comparison nothing was compared.
        if standings.not_comparable(experiment):
            continue
        if standings.reference(experiment) == reference:
            tries.append(experiment)
    return tries


def left_behind(project: Project, approved: ApprovedPlan, experiment: str) -> list[str]:
    """The last run of each code and command that was scored on validation before the experiment
    went on with another."""
    # Each counts as a try: who looks, edits and looks again has chosen by validation.
    runs = project.ledger.runs(experiment)
    seen = {
        evaluation.run
        for evaluation in project.ledger.evaluations(experiment, Split.VALIDATION)
        if evaluation.scored and evaluation.plan_version == approved.comparison
    }
    last = {(run.code, tuple(run.argv)): run.id for run in runs if run.id in seen}
    if runs:
        newest = started(runs)[-1]
        last.pop((newest.code, tuple(newest.argv)), None)
    return list(last.values())


def comparison_inputs(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> list[Any] | None:
    """All that the experiment's comparison depends on, as plain data. None without a score."""
    own = recorded_evaluations(project, experiment.id, approved, Split.VALIDATION)
    if not any(one.scored for one in own):
        return None
    standings = Standings(project, approved)
    if standings.not_comparable(experiment):
        return [experiment.parent, approved.basis, identities(own)]
    reference = standings.reference(experiment)
    tries: list[Any] = [
        [
            earlier.id,
            left_behind(project, approved, earlier.id),
            identities(recorded_evaluations(project, earlier.id, approved, Split.VALIDATION)),
        ]
        for earlier in earlier_tries(project, approved, experiment.id, reference)
    ]
    theirs = (
        []
        if reference is None
        else recorded_evaluations(project, reference, approved, Split.VALIDATION)
    )
    behind = left_behind(project, approved, experiment.id)
    inputs = [reference, approved.basis, identities(own), identities(theirs), tries, behind]
    parent = experiment.parent
    if parent is None or parent == reference:
        return inputs
    beside = recorded_evaluations(project, parent, approved, Split.VALIDATION)
    return [*inputs, parent, identities(beside)]


def identities(evaluations: Sequence[Evaluation]) -> list[Any]:
    """What says that evaluations are the same, of recorded ones: of a sealed one its keyed name
    stands for the value."""
    return [
        [one.run, one.seed, one.checkpoint, one.predictions, one.sealed or one.value, one.baseline]
        for one in evaluations
    ]
