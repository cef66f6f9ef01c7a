"""`harness decisions`: who decided what, why, and on which verdict."""

import sys
from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.ledger.project import open_project
from harness.views.tables import render_table


@click.command("decisions")
@click.argument("experiment", required=False)
@project_option
@json_option
def command(experiment: str | None, project: Path, as_json: bool) -> None:
    """List all decisions, or those about EXPERIMENT, oldest first."""
    with open_project(project, environment(), read_only=True) as opened:
        if experiment is not None:
            opened.ledger.experiment(experiment)  # an unknown id is an error, not an empty list
        decisions = opened.ledger.decisions(experiment)
    rows = [
        {
            "id": decision.id,
            "kind": decision.kind,
            "experiment": decision.experiment,
            "by": decision.by,
            "reason": decision.reason,
            "verdict": decision.verdict,
            "at": decision.at,
        }
        for decision in decisions
    ]
    columns = ("id", "kind", "experiment", "by", "verdict", "at", "reason")
    table = [[row[column] or "-" for column in columns] for row in rows]
    emit(
        {"decisions": rows},
        as_json=as_json,
        text=lambda: (
            render_table("", columns, table, colour=sys.stdout.isatty())
            if rows
            else "no decisions yet"
        ),
    )
