"""Logs of runs that the harness did not start, recorded as logged values."""

import math
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.errors import RefusedError, UsageError
from harness.foreign.formats import require_readable
from harness.foreign.log_rows import Row, position
from harness.foreign.metric_folders import open_log
from harness.ledger.facts import LogImported
from harness.ledger.project import Project

_MOST_RUNS = 50
_MOST_METRICS = 100
_MOST_NOTES = 20


class _Summary:
    """One run's rows, in a size that does not grow with them."""

    def __init__(self, run: str) -> None:
        self.run, self.status = run, "unknown"
        self.rows = 0
        self.counts = "step"
        self.last: dict[str, float] = {}
        self.metrics: dict[str, dict[str, Any]] = {}

    def feed(self, row: Row) -> None:
        self.rows += bool(row.get("metrics")) or "learning_rate" in row
        status = row.get("status")
        if row.get("event") in ("end", "status") and isinstance(status, str):
            self.status = status
        counts = row.get("unit")
        if isinstance(counts, str):
            self.counts = counts[:40]
        for unit in ("epoch", "step"):
            value = row.get(unit)
            if isinstance(value, int | float) and position(row) is not None:
                self.last[unit] = value
        metrics = row.get("metrics")
        for name, value in metrics.items() if isinstance(metrics, dict) else ():
            if isinstance(value, int | float):
                self._value(str(name)[:80], float(value))

    def plain(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "status": self.status[:40],
            "rows": self.rows,
            **self.last,
            **({} if self.counts == "step" else {"unit": self.counts}),
            "metrics": self.metrics,
        }

    def _value(self, name: str, value: float) -> None:
        if name not in self.metrics and len(self.metrics) >= _MOST_METRICS:
            return
        known = self.metrics.setdefault(
            name, {"last": None, "smallest": None, "largest": None, "not_finite": 0}
        )
        if not math.isfinite(value):
            known["not_finite"] += 1
            return
        known["last"] = value
        known["smallest"] = value if known["smallest"] is None else min(known["smallest"], value)
        known["largest"] = value if known["largest"] is None else max(known["largest"], value)


def import_log(project: Project, path: Path, *, experiment: str | None, by: str) -> LogImported:
    """Read the whole log and record a summary with its hash; the file stays where it is.

    Raises NotFoundError for a missing file or experiment, UsageError for a log without rows, and
    RefusedError for one that changes meanwhile.
    """
    if experiment is not None:
        experiment = project.ledger.experiment(experiment).id
    before = hash_path(path)
    reader = open_log(path)
    runs: dict[str, _Summary] = {}
    rows = reader.read_more()
    while rows or reader.behind:
        _take(runs, rows)
        rows = reader.read_more()
    _take(runs, reader.finish())
    require_readable(path, reader.problem)
    if not runs or reader.format is None:
        raise UsageError(
            f"{path} holds no row of a training.",
            hint=(
                "`harness watch --once FILE` shows what is read in it; docs/cli.md names the"
                " formats."
            ),
            code="no_log",
        )
    # The hash must be of the bytes that were read, and a growing log has no final one.
    if hash_path(path) != before:
        raise RefusedError(
            f"{path} changed while it was read.",
            hint="Wait until its training has ended.",
            code="changing",
        )
    fact = LogImported(
        path=shown(project, path),
        sha256=before,
        bytes=reader.size,
        format=reader.format,
        experiment=experiment,
        runs=[summary.plain() for summary in runs.values()],
        notes=reader.notes()[:_MOST_NOTES],
        by=by,
    )
    project.ledger.append(fact)
    return fact


def _take(runs: dict[str, _Summary], rows: list[Row]) -> None:
    for row in rows:
        name = str(row.get("run"))[:80]
        if name not in runs and len(runs) >= _MOST_RUNS:
            continue
        runs.setdefault(name, _Summary(name)).feed(row)


def shown(project: Project, path: Path) -> str:
    """Relative to the project where it lies in it."""
    resolved = path.resolve()
    inside = resolved.is_relative_to(project.layout.root)
    return project.layout.relative(resolved) if inside else str(resolved)
