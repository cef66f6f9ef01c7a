"""What the predictor scores that knows the training labels and nothing about a row: where the tiers
of a first plan start."""

import math
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
    up, best = METRICS[metric].direction is Direction.MAXIMIZE, _best(metric)
    start = trivial if trivial is not None else (0.0 if up else 1.0)
    tiers = {
        name: rounded(metric, start + part * (best - start))
        for name, part in zip(("must", "should"), _PARTS, strict=True)
    }
    # A trivial predictor that is as good as can be leaves no way to go.
    return tiers if tiers["must"] != tiers["should"] else {"must": tiers["must"]}


def rounded(metric: str, value: float) -> float:
    """To three digits of its distance from the best score: of rare classes the trivial score is
    near it, and 0.9985 must not become 0.998."""
    best = _best(metric)
    left = abs(best - value)
    return round(value, 2 - math.floor(math.log10(left))) + 0.0 if left else best


def _best(metric: str) -> float:
    known = METRICS[metric]
    return float(known.range[known.direction is Direction.MAXIMIZE])
