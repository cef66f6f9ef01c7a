"""docs/metrics.md lists the metrics as the table has them; a new metric is one file and one row."""

import re
from pathlib import Path

from harness.domain.metrics import METRICS, IntervalMethod, Metric, Needs, PerRow

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
NEEDS = {
    Needs.CLASS: "a class",
    Needs.NUMBER: "a number",
    Needs.SCORES: "scores",
    Needs.PROBABILITIES: "probabilities",
}
INTERVAL = {
    IntervalMethod.PROPORTION: "Wilson's",
    IntervalMethod.MEAN: "Student's t",
    IntervalMethod.RESAMPLED: "resampled",
    IntervalMethod.NONE: "none",
}
PAIRS = {
    PerRow.RIGHT_OR_WRONG: "right or wrong",
    PerRow.VALUE: "losses",
    PerRow.INFLUENCE: "influences",
    PerRow.NONE: "seeds alone",
}


def row_of(metric: Metric) -> str:
    low, high = (f"{end:g}".replace("inf", "infinity") for end in metric.range)
    cells = (
        f"`{metric.name}`",
        "larger" if metric.direction == "maximize" else "smaller",
        f"{low} to {high}",
        NEEDS[metric.needs] + (" of two" if metric.binary else ""),
        INTERVAL[metric.interval],
        PAIRS[metric.per_row],
        metric.trivial.value,
    )
    return f"| {' | '.join(cells)} |"


def test_the_page_lists_each_metric_as_the_table_has_it() -> None:
    listed = [line for line in PAGE.splitlines() if re.match(r"\| `\w+` \|", line)]
    assert listed == [row_of(metric) for metric in METRICS.values()]
