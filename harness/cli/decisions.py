"""`harness decisions`: who decided what, why, and on which verdict."""

from pathlib import Path

import click

from harness.cli.chosen import require_id
from harness.cli.output import emit, json_option, project_option
from harness.cli.reading import reading
from harness.views.tables import render_table


@click.command("decisions")
@click.argument("experiment", required=False)
@project_option
@json_option
def command(experiment: str | None, project: Path, as_json: bool) -> None:
    """List all decisions, or those about EXPERIMENT, oldest first."""
    if experiment is not None:
        require_id(experiment, "harness decisions")
    with reading(project) as opened:
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
        render_table("", columns, table) if rows else "no decisions yet",
        as_json=as_json,
    )
