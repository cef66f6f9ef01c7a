"""`harness import`: record the log of a run that the harness did not start, or the list of
experiments that another loop kept."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller
from harness.decisions.imported import import_log
from harness.decisions.imported_list import Beyond, Judged, document, judge_list, record_list
from harness.domain.statuses import Direction, Evidence
from harness.domain.words import some
from harness.errors import UsageError
from harness.foreign.formats import find_logs
from harness.foreign.kept_list import read_list
from harness.ledger.facts import LogImported
from harness.ledger.project import Project
from harness.views.tables import number, render_table

_MOST_LOGS = 50
_BETTER = {Direction.MINIMIZE: "smaller", Direction.MAXIMIZE: "larger"}
_LIST_ALONE = "--noise and --direction belong to a list of experiments (results.tsv)"


@click.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--experiment", default=None, help="The experiment that the log belongs to.")
@click.option(
    "--noise",
    type=float,
    default=None,
    help="Of a list of experiments: the standard deviation of one run of the same code.",
)
@click.option(
    "--direction",
    type=click.Choice([str(one) for one in Direction]),
    default=None,
    help="Of a list of experiments: by default what its KEEPs say.",
)
@project_option
@json_option
def command(
    path: Path,
    experiment: str | None,
    noise: float | None,
    direction: str | None,
    project: Path,
    as_json: bool,
) -> None:
    """Record the log at PATH, a file or a folder of logs, with its hash.

    Its numbers are `logged`: shown beside an experiment, never read by a gate. Of a list of
    experiments (autoresearch's results.tsv) status and description are recorded as they stand
    there, and the answer says which KEEPs are within the noise.
    """
    said = None if direction is None else Direction(direction)
    with changing(project) as opened:
        logs = find_logs(path, most=_MOST_LOGS)
        found = {log: read_list(log) for log in logs if experiment is None}
        judged = {
            log: judge_list(listed, noise=noise, direction=said)
            for log, listed in found.items()
            if listed is not None
        }
        if not judged and (noise is not None or said is not None):
            raise UsageError(
                f"{_LIST_ALONE}, and {path} is none.",
                hint="One has a header with `status`, whose cells say keep, discard or crash.",
                code="no_list",
            )
        facts = [_record(opened, log, judged.get(log), experiment) for log in logs]
    lines = [_line(fact) for fact in facts if fact.experiments is None]
    for fact, log in zip(facts, logs, strict=True):
        lines += _told(fact, judged[log]) if log in judged else []
    told: dict[str, Any] = {
        "evidence": Evidence.LOGGED.value,
        "imported": [
            {**fact.body(), "judged": document(judged[log]) if log in judged else None}
            for fact, log in zip(facts, logs, strict=True)
        ],
    }
    emit(told, *lines, as_json=as_json)


def _record(
    project: Project,
    log: Path,
    judged: Judged | None,
    experiment: str | None,
) -> LogImported:
    by = caller(environment())
    if judged is not None:
        return record_list(project, log, judged, by=by)
    return import_log(project, log, experiment=experiment, by=by)


def _line(fact: LogImported) -> str:
    rows = sum(run["rows"] for run in fact.runs)
    runs = some(len(fact.runs), "run")
    return f"{fact.path}: {fact.format}, {runs}, {rows:,} rows; logged, not recomputed"


def _told(fact: LogImported, judged: Judged) -> list[str]:
    counts = Counter(row.status for row in judged.of.rows)
    listed = ", ".join(f"{count} {status}" for status, count in counts.items())
    rows = some(len(judged.of.rows), "experiment")
    noise, metric = judged.noise, judged.of.metric
    found = "noise: " + noise.source
    if noise.deviation is not None and noise.limit is not None:
        one, two = number(noise.deviation), number(noise.limit)
        found = f"noise: {one} a run, so {two} between two; from {noise.source}"
    shown = [
        (
            one.row.commit or "-",
            number(one.row.value),
            "-" if one.gain is None else number(one.gain),
            one.beyond.value,
            one.row.description or "-",
        )
        for one in judged.kept
    ]
    columns = ("kept", metric, "gain", "is it better", "description")
    return [
        f"{fact.path}: {rows} of another program: {listed}; as it says, nothing recomputed",
        *(f"note: {note}" for note in fact.notes),
        f"{metric}: {_BETTER[judged.direction]} is better",
        found,
        render_table("", columns, shown).rstrip(),
        _sum(judged),
    ]


def _sum(judged: Judged) -> str:
    later = [one.beyond for one in judged.kept[1:]]
    total, metric = judged.total, judged.of.metric
    if total.gain is None or not later:
        return "one was kept: there is nothing to compare"
    if judged.noise.limit is None:
        return f"{some(len(later), 'further KEEP')}: say the noise with --noise to judge them"
    within = sum(one is not Beyond.YES for one in later)
    first, last = judged.kept[0].row.value, total.row.value
    return (
        f"{within} of {some(len(later), 'further KEEP')} not beyond the noise; in all"
        f" {metric} went from {number(first)} to {number(last)}: {total.beyond.value}"
    )
