"""The exact scores of one experiment, for a person's own terminal and nowhere else."""

from typing import Any

from harness.domain.records import Experiment
from harness.domain.statuses import Split
from harness.evaluation.scores import counted_evaluations, summarise
from harness.ledger.project import Project
from harness.plans.approved import plan_of, secret


def exact_scores(project: Project, experiment: Experiment) -> list[dict[str, Any]]:
    """Of each split that was evaluated: the mean over seeds, and value, interval and findings a
    run, opened from the vault. `here` is False where the records are not on this machine."""
    approved = plan_of(project, experiment)
    shown = []
    for split in Split:
        evaluations = counted_evaluations(project, experiment.id, approved, split)
        if not evaluations:
            continue
        score = summarise(evaluations)
        shown.append(
            {
                "split": split.value,
                "secret": secret(approved, split.value),
                "mean": None if score is None else score.mean,
                "spread": None if score is None else score.spread,
                "interval": None if score is None else score.interval,
                "baseline": None if score is None else score.baseline,
                "runs": [
                    {
                        "run": one.run,
                        "seed": one.seed,
                        "value": one.value,
                        "interval": one.interval,
                        "predict_seconds": one.predict_seconds,
                        "findings": [found.plain() for found in one.findings],
                        "here": one.sealed is None or one.value is not None or bool(one.findings),
                    }
                    for one in evaluations
                ],
            }
        )
    return shown
