"""Two experiments side by side: what differs in code and configuration, and how their runs went."""

import math
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from harness.artifacts.code_snapshot import load_snapshot
from harness.artifacts.content import read_bytes
from harness.artifacts.held_rows import Metrics
from harness.artifacts.objects import load_object
from harness.artifacts.training_code import changed_files
from harness.detectors.watch_settings import WatchSettings
from harness.domain.records import Experiment, Run
from harness.domain.statuses import Split
from harness.errors import HarnessError, RefusedError
from harness.evaluation.scores import counted_runs
from harness.gates.check import standing
from harness.ledger.project import Project
from harness.runs.run_tail import watch_settings
from harness.views.run_picture import RunPicture
from harness.views.snapshot import split_score

_LINE = 30
"""Characters of a curve."""
_METRICS = 2
_LONGEST = 200_000
"""Bytes of a file whose lines are compared."""
_MOST = 2000
"""Lines of one answer."""


def code_difference(project: Project, candidate: str, reference: str) -> dict[str, Any]:
    """{files {path: changed, added or removed}, diff}: how the candidate's registered code differs
    from the reference's. Raises RefusedError (no_runs)."""
    objects = project.layout.objects
    snapshots = [
        load_snapshot(objects, _newest(project, name).code) for name in (candidate, reference)
    ]
    after, before = (snapshot.files for snapshot in snapshots)
    names = sorted(changed_files(*snapshots))
    kinds = {
        name: "added" if name not in before else "removed" if name not in after else "changed"
        for name in names
    }
    lines: list[str] = []
    for name in names:
        old, new = (
            b"" if name not in files else load_object(objects, files[name])
            for files in (before, after)
        )
        lines += _difference(old, new, f"{reference}/{name}", f"{candidate}/{name}")
    return {"files": kinds, "diff": _cut(lines)}


def config_difference(project: Project, candidate: str, reference: str) -> dict[str, Any]:
    """{diff} of their config.yaml, as it was when the newest run was registered."""
    after, before = (_config(project, name) for name in (candidate, reference))
    lines = _difference(before, after, f"{reference}/config.yaml", f"{candidate}/config.yaml")
    return {"diff": _cut(list(lines))}


def both_scores(project: Project, experiment: Experiment) -> dict[str, Any]:
    """{validation, held_out}, each as everybody may see it."""
    splits = (Split.VALIDATION, Split.HELD_OUT)
    return {one.value: split_score(project, experiment, one) for one in splits}


def verdict_of(project: Project, experiment: Experiment) -> dict[str, Any] | None:
    """{verdict, gate, tier} as it stands now."""
    verdict = project.ledger.latest_verdict(experiment.id)
    if verdict is None:
        return None
    return {
        "verdict": standing(project, verdict),
        "gate": verdict.gate,
        "tier": verdict.tier,
    }


def curves(project: Project, experiment: str) -> list[dict[str, Any]]:
    """{run, seed, metric, last, line} of the metrics that say most, for each counted run, as they
    were logged."""
    settings = watch_settings(project, experiment)
    return [
        curve
        for run in counted_runs(project.ledger.runs(experiment))
        for curve in _curves(project, run, settings)
    ]


def _curves(project: Project, run: Run, settings: WatchSettings) -> Iterator[dict[str, Any]]:
    picture = RunPicture(run.id, settings, watches=False)
    path = project.layout.run(run.experiment, run.id, "metrics")
    for row in Metrics(path).effective():
        picture.feed(row)
    for name in picture.shown()[:_METRICS]:
        trace = picture.traces[name]
        yield {
            "run": run.id,
            "seed": run.seed,
            "metric": name,
            "last": trace.current if math.isfinite(trace.current or 0.0) else None,
            "line": trace.sparkline(_LINE),
        }


def _newest(project: Project, experiment: str) -> Run:
    runs = counted_runs(project.ledger.runs(project.ledger.experiment(experiment).id))
    if not runs:
        raise RefusedError(
            f"{experiment} has no run, so no code of it is registered.",
            hint=f"`harness train {experiment}` registers it.",
            code="no_runs",
        )
    return runs[-1]


def _config(project: Project, experiment: str) -> bytes:
    run = _newest(project, experiment)
    try:
        if run.config is not None:
            return load_object(project.layout.objects, run.config)
        return read_bytes(project.layout.experiment(experiment, "config"))
    except HarnessError:
        return b""  # the gate names what is missing


def _difference(old: bytes, new: bytes, before: str, after: str) -> Iterator[str]:
    if b"\0" in old + new or len(old) + len(new) > _LONGEST:
        if old != new:
            yield f"{before} and {after} differ ({len(old)} and {len(new)} bytes)"
        return
    first, second = (side.decode("utf-8", "replace").splitlines() for side in (old, new))
    yield from unified_diff(first, second, before, after, lineterm="")


def _cut(lines: list[str]) -> str:
    if len(lines) > _MOST:
        lines = [*lines[:_MOST], f"... and {len(lines) - _MOST} lines more"]
    return "\n".join(lines)
