"""What the predictor scores that knows the training labels and nothing about a row: where the tiers
of a first plan start."""

import tempfile
from pathlib import Path

from harness.domain.metrics import METRICS
from harness.domain.statuses import Direction
from harness.evaluation.problems import Unscorable
from harness.evaluation.scoring import FrozenScorer, ScoreJob, score
from harness.evaluation.truth import Labels, read_truth

_SECONDS = 120.0
_PARTS = (0.25, 0.5)
"""Of the way from the trivial predictor to the best score: must and should."""


def trivial_score(metric: str, labels: Labels) -> float | None:
    """On the training labels themselves; None where the metric cannot be computed from them."""
    scorer = FrozenScorer(name=metric)
    try:
        truth = read_truth(labels, labels, scorer, which="train")
        job = ScoreJob(
            labels=truth.labels,
            ids=[str(row) for row in range(len(truth.labels))],
            predictions=truth.baseline,
            baseline=None,
            seed=0,
            positive=truth.positive,
        )
        with tempfile.TemporaryDirectory(prefix="harness-trivial-") as name:
            folder = Path(name)
            return score(scorer, job, objects=folder, work=folder, seconds=_SECONDS).value
    except Unscorable:
        return None


def first_tiers(metric: str, trivial: float | None) -> dict[str, float]:
    """must and should: a quarter and half of the way from the trivial score to the best one."""
    known = METRICS[metric]
    up = known.direction is Direction.MAXIMIZE
    least, most = known.range
    best = most if up else least
    start = trivial if trivial is not None else (0.0 if up else 1.0)
    tiers = {
        name: _digits(start + part * (best - start))
        for name, part in zip(("must", "should"), _PARTS, strict=True)
    }
    # A trivial predictor that is as good as can be leaves no way to go.
    return tiers if tiers["must"] != tiers["should"] else {"must": tiers["must"]}


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
