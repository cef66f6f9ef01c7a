"""`harness import`: record the log of a run that the harness did not start."""

from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller
from harness.decisions.imported import import_log
from harness.domain.statuses import Evidence
from harness.foreign.formats import find_logs

_MOST_LOGS = 50


@click.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--experiment", default=None, help="The experiment that the log belongs to.")
@project_option
@json_option
def command(path: Path, experiment: str | None, project: Path, as_json: bool) -> None:
    """Record the log at PATH, a file or a folder of logs, with its hash.

    Its numbers are `logged`: shown beside an experiment, never read by a gate.
    """
    with changing(project) as opened:
        logs = find_logs(path, most=_MOST_LOGS)
        facts = [
            import_log(opened, log, experiment=experiment, by=caller(environment()))
            for log in logs
        ]
    document = {"evidence": Evidence.LOGGED.value, "imported": [fact.body() for fact in facts]}
    lines = [
        f"{fact.path}: {fact.format}, {len(fact.runs)} run{'s' if len(fact.runs) > 1 else ''}, "
        f"{sum(run['rows'] for run in fact.runs):,} rows; logged, not recomputed"
        for fact in facts
    ]
    emit(document, *lines, as_json=as_json)
