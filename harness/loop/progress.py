"""Which experiments were progress: what each achieved on validation, and whether by the rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.domain.records import Objective
from harness.domain.statuses import GateName, Verdict
from harness.evaluation.noise_floor import compare, compare_to_baseline
from harness.evaluation.outcome import TRIVIAL
from harness.gates.findings import FINDINGS
from harness.ledger.facts import RecordedVerdict


@dataclass(frozen=True, kw_only=True)
class ScoredExperiment:
    """What an experiment achieved on validation."""

    verdict: Verdict | None
    findings: tuple[str, ...] = ()
    """The codes that the verdict names."""
    values: tuple[float, ...] = ()
    """One for each seed."""
    baseline: float | None = None
    told: bool = False
    """On hidden labels: its answer, against the best told so far, stands for the values."""
    experiment: str = ""
    against: str | None = None
    """What the verdict compared it with: an experiment, or the trivial predictor; None without a
    comparison."""
    better: bool | None = None
    """The result of the verdict's comparison, by seeds, rows and number of tries."""

    @property
    def competes(self) -> bool:
        """Whether the contract was kept and every seed scored.

        A score below the lowest tier can be progress; one reached by breaking the contract cannot.
        """
        if not (self.values or self.told) or self.verdict not in (Verdict.PASS, Verdict.FAIL):
            return False
        blocking = {
            code
            for code in self.findings
            if code not in FINDINGS or FINDINGS[code].outcome is not Verdict.PASS
        }
        return self.verdict is Verdict.PASS or blocking == {"below_tier"}


def scored_by(verdicts: Sequence[RecordedVerdict]) -> ScoredExperiment:
    """The score as the newest verdict on validation has it."""
    mine = [recorded for recorded in verdicts if recorded.gate == GateName.VALIDATION]
    if not mine or mine[-1].score is None:
        return ScoredExperiment(verdict=mine[-1].verdict if mine else None)
    newest, score = mine[-1], mine[-1].score
    findings = tuple(finding.code for finding in newest.findings)
    comparison = newest.comparison or {}
    return ScoredExperiment(
        verdict=newest.verdict,
        findings=findings,
        values=tuple(score["values"]),
        baseline=score["baseline"],
        told="released" in score,
        experiment=newest.experiment,
        against=comparison.get("against"),
        better=comparison.get("better"),
    )


def improvements(
    experiments: Sequence[ScoredExperiment],
    objective: Objective,
    compared: Callable[[str, str | None], bool | None],
) -> list[bool]:
    """Which experiments beat the best one before them, oldest first.

    What does not compete is never an improvement and never becomes the best; the first that
    competes is measured against the trivial predictor. `compared` answers as a gate would, or None.
    """
    best: ScoredExperiment | None = None
    flags = []
    for experiment in experiments:
        better = experiment.competes and _better(experiment, best, objective, compared)
        flags.append(better)
        if better or (best is None and experiment.competes):
            best = experiment
    return flags


def _better(
    experiment: ScoredExperiment,
    best: ScoredExperiment | None,
    objective: Objective,
    compared: Callable[[str, str | None], bool | None],
) -> bool:
    if experiment.told:
        return experiment.better is True
    # The verdict's own comparison counts where it used the same reference: two answers to one
    # question would contradict each other.
    reference = TRIVIAL if best is None else best.experiment
    if experiment.against is not None and experiment.against == reference:
        return experiment.better is True
    again = compared(experiment.experiment, None if best is None else best.experiment)
    if again is not None:
        return again
    # Without the evaluations, in a clone or of an older version of the plan, what the verdicts hold
    # gives an order by seeds alone, and by none in pairs.
    if best is not None:
        return compare(experiment.values, best.values, objective).better is True
    if experiment.baseline is None:
        return False
    return compare_to_baseline(experiment.values, experiment.baseline, objective).better is True
