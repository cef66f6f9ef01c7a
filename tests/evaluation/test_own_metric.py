"""A metric that somebody adds, which is no mean over rows: its interval comes from resamples, or
there is none, and no row decides a comparison."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.domain.metrics import METRICS, IntervalMethod, Metric, PerRow
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import Direction
from harness.evaluation import scoring
from harness.evaluation.evaluate_run import EvaluationOutcome
from harness.evaluation.paired import metric_interval
from harness.evaluation.scoring import FrozenScorer

from .workplace import PREDICT, N, Workplace

FILE = """\
def score(labels, predictions):
    return max(abs(a - b) for a, b in zip(labels, predictions["prediction"]))
"""
NEAR = PREDICT + "write([(row['id'], float(row['x']) * (1 + cut / 100)) for row in rows])\n"


def added(interval: IntervalMethod) -> Metric:
    return replace(
        METRICS["mae"],
        name="worst",
        direction=Direction.MINIMIZE,
        per_row=PerRow.NONE,
        interval=interval,
    )


def evaluated(workplace: Workplace, sandbox: Sandbox) -> EvaluationOutcome:
    x = np.array([float(i - N / 2) for i in range(N)])
    workplace.checkpoint.write_text("3.0")
    return workplace.evaluate(
        NEAR,
        sandbox,
        table=workplace.table(workplace.vault / "numbers.csv", x=x, y=x),
        train=workplace.table(workplace.project / "data" / "train.csv", x=x[:3], y=x[:3]),
        metric="worst",
        scorer=FrozenScorer(name="worst"),
    )


@pytest.mark.parametrize("interval", [IntervalMethod.RESAMPLED, IntervalMethod.NONE])
def test_it_is_scored_with_the_interval_that_its_row_names(
    workplace: Workplace,
    unsandboxed: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    interval: IntervalMethod,
) -> None:
    (tmp_path / "worst.py").write_text(FILE)
    monkeypatch.setattr(scoring, "_METRICS", tmp_path)
    monkeypatch.setitem(METRICS, "worst", added(interval))
    outcome = evaluated(workplace, unsandboxed)
    assert outcome.value == pytest.approx(0.6)
    if interval is IntervalMethod.NONE:
        assert outcome.interval is None
        assert metric_interval("worst", [1.0], {"prediction": [1.0]}, None) is None
        return
    assert outcome.interval is not None
    low, high = outcome.interval
    assert 0.3 < low <= high <= 0.6 + 1e-9
