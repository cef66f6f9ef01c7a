"""`harness cost`: what models took, and what is expected."""

from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.reading import reading
from harness.views.costs import costs, costs_text
from harness.views.tables import fitted


@click.command("cost")
@project_option
@json_option
def command(project: Path, as_json: bool) -> None:
    """Show tokens and dollars of the loop's sessions by role, experiment and day, measured beside
    projected, and what is left of the budget."""
    with reading(project) as opened:
        document = costs(opened, environment())
    emit(document, *fitted(costs_text(document)), as_json=as_json)
