"""`harness watch [EXP]`: follow the runs that train now."""

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.domain.statuses import FINAL_RUNS
from harness.project.context import Project, open_project
from harness.views.progress import Following, all_completed, is_watched_over, progress, watched
from harness.views.tables import render_table

POLL_SECONDS = 0.5


@click.command("watch")
@click.argument("experiment", required=False)
@click.option("--once", is_flag=True, help="Show where the runs are now, and leave.")
@project_option
@json_option
def command(experiment: str | None, once: bool, project: Path, as_json: bool) -> None:
    """Print the epochs of EXPERIMENT's runs (default: the active one's) as they are logged, until training ends.

    Exit 1 when the newest run of a seed did not complete. With --json only the end is printed, as one object.
    """
    with open_project(project, environment(), read_only=True) as opened:
        name = watched(opened, experiment)
        if not once:
            _follow(opened, name, quiet=as_json)
        document = progress(opened, name)
    emit(document, as_json=as_json, text=lambda: _text(document))
    sys.exit(0 if once or all_completed(document) else 1)


def _follow(project: Project, experiment: str, *, quiet: bool) -> None:
    following = Following(project, experiment)
    going = True
    while going:
        going = is_watched_over(project, experiment)  # asked first: what is logged until the end is still told
        for row in [] if quiet else following.new_rows():
            click.echo(_line(row))
        if going:
            project.clock.sleep(POLL_SECONDS)


def _line(row: dict[str, Any]) -> str:
    passed = "" if row["seconds"] is None else f"{row['seconds']:.1f} s"
    return f"{row['run']}  seed {row['seed']}  epoch {row['epoch']}  {_metrics(row['metrics'])}  {passed}".rstrip()


def _metrics(metrics: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _text(document: dict[str, Any]) -> str:
    columns = ("run", "seed", "status", "epoch", "metrics", "seconds", "reason")
    rows = [
        (
            run["run"],
            run["seed"],
            run["status"] if run["alive"] or run["status"] in FINAL_RUNS else f"{run['status']} (nobody watches it)",
            _epoch(run),
            _metrics(run["metrics"]) or "-",
            "-" if run["seconds"] is None else f"{run['seconds']:.1f}",
            run["reason"] or "-",
        )
        for run in document["runs"]
    ]
    head = f"{document['experiment']}: {document['state']} ({document['evidence']}, not recomputed)\n"
    return head + (render_table("", columns, rows, colour=sys.stdout.isatty()) if rows else "no run yet\n")


def _epoch(run: dict[str, Any]) -> str:
    if run["epoch"] is None:
        return "-"
    return f"{run['epoch']} of {run['total_epochs']}" if run["total_epochs"] else f"{run['epoch']}"
