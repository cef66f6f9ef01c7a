"""Rows of metrics files as lists, for tests that compare them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.held_rows import Metrics, Resumes
from harness.artifacts.metrics_file import Row
from harness.artifacts.metrics_notes import MetricsNotes


@dataclass(frozen=True, kw_only=True)
class ReadMetrics:
    present: bool
    rows: list[Row]
    effective: list[Row]
    warnings: list[str]
    notes: list[str]
    """`resumed at 20`, for the last time."""
    said: list[str]
    """What is noted for a person."""
    non_finite: int
    first_bad_step: float | None


def read_rows(path: Path) -> ReadMetrics:
    noted = MetricsNotes()
    metrics = Metrics(path, look=noted.look)
    held = [*metrics.effective()]
    for row in held:
        noted.take(row)
    return ReadMetrics(
        present=metrics.present,
        rows=[*metrics.rows()],
        effective=held,
        warnings=metrics.warnings,
        notes=[f"resumed at {metrics.resumed_at}"] if metrics.resumed else [],
        said=noted.of(metrics),
        non_finite=noted.non_finite,
        first_bad_step=noted.first_bad_place,
    )


def effective(rows: Iterable[Row]) -> list[Row]:
    every, resumes = [*rows], Resumes()
    for row in every:
        resumes.take(row)
    return [*resumes.held(every)]


def bad_values(rows: Iterable[Row]) -> tuple[int, float | None]:
    noted = MetricsNotes()
    for row in rows:
        noted.take(row)
    return noted.non_finite, noted.first_bad_place
