"""What the figures of a report show beside its table: curves as they were logged, and training
minutes over time."""

from collections.abc import Sequence
from typing import Any

from harness.artifacts.held_rows import Metrics
from harness.clock import parse_iso
from harness.domain.records import Experiment, Run
from harness.domain.statuses import DecisionKind
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project
from harness.runs.run_tail import watch_settings
from harness.views.run_picture import RunPicture

_METRICS = 2
"""Of one experiment: the plan's and a loss, where both are logged."""
_RUNS = 6
"""Lines of one figure."""


def logged_curves(project: Project, experiment: str) -> list[dict[str, Any]]:
    """{metric, axis, lines [{run, seed, points}]} of the metrics that say most; of the counted
    runs, at most six. Empty where no rows are on this machine."""
    runs = counted_runs(project.ledger.runs(experiment))[:_RUNS]
    pictures = [(run, _picture(project, run)) for run in runs]
    names = list(dict.fromkeys(name for _, one in pictures for name in one.shown()))
    return [
        {
            "metric": name,
            "axis": next(one.word for _, one in pictures if name in one.traces),
            "lines": [
                {"run": run.id, "seed": run.seed, "points": one.traces[name].points()}
                for run, one in pictures
                if name in one.traces
            ],
        }
        for name in names[:_METRICS]
    ]


def _picture(project: Project, run: Run) -> RunPicture:
    settings = watch_settings(project, run.experiment)
    picture = RunPicture(run.id, settings, watches=False)
    path = project.layout.run(run.experiment, run.id, "metrics")
    for row in Metrics(path).effective():
        picture.feed(row)
    return picture


def spent_over_time(
    project: Project, experiments: Sequence[Experiment], limit: float
) -> dict[str, Any]:
    """{minutes [(hours, minutes of training so far)], decided [(hours, id)], limit}: hours since
    the first experiment was opened, as the supervisor measured them."""
    if not experiments:
        return {"minutes": [], "decided": [], "limit": limit}
    begun = parse_iso(experiments[0].opened_at)

    def hours(at: str) -> float:
        return max(0.0, (parse_iso(at) - begun).total_seconds() / 3600)

    ended = [
        (hours(run.ended_at), run.seconds)
        for one in experiments
        for run in project.ledger.runs(one.id)
        if run.ended_at is not None and run.seconds is not None
    ]
    minutes, total = [], 0.0
    for when, seconds in sorted(ended):
        total += seconds / 60
        minutes.append((when, total))
    final = (DecisionKind.KEEP, DecisionKind.DISCARD)
    decided = [
        (hours(decision.at), one.id)
        for one in experiments
        for decision in project.ledger.decisions(one.id)
        if decision.kind in final
    ]
    return {"minutes": minutes, "decided": decided, "limit": limit}
