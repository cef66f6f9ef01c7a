"""`harness experiment new | result | list | show | compare`.

What takes long to import is imported by the verb that needs it: to list is not to compare.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.artifacts.resources import in_words
from harness.cli.answer import Answer, give
from harness.cli.chosen import EXPERIMENT, chosen, require_id
from harness.cli.compared import compared_lines
from harness.cli.output import (
    CommandGroup,
    WholeNumber,
    emit,
    environment,
    json_option,
    project_option,
)
from harness.cli.person import caller, open_at_once, require_person, session_of
from harness.cli.reading import reading
from harness.decisions.dead_ends import tried_before
from harness.decisions.experiments import open_experiment, record_result
from harness.domain.findings import as_text
from harness.domain.late import later
from harness.domain.plain_text import one_line
from harness.domain.statuses import FINAL_RUNS, Split, spoken
from harness.errors import RefusedError, UsageError
from harness.ledger.project import Project
from harness.plans.approved import data_told, training_tables
from harness.rendering.standing import next_step
from harness.views.snapshot import experiment_row, experiment_rows
from harness.views.tables import (
    experiments_table,
    gone_text,
    interval_text,
    render_table,
    score_text,
    status_words,
    value_text,
)

if TYPE_CHECKING:
    from harness.cli import changing
    from harness.decisions import claimed as claim_checks
    from harness.views import exact as exact_view
    from harness.views import experiments, side_by_side
else:
    changing = later("harness.cli.changing")
    claim_checks = later("harness.decisions.claimed")
    exact_view = later("harness.views.exact")
    experiments = later("harness.views.experiments")
    side_by_side = later("harness.views.side_by_side")

_LISTED = 50
"""Experiments that a list shows by default."""


@click.group("experiment", cls=CommandGroup)
def command() -> None:
    """Open and inspect experiments. Each has one hypothesis, configuration and code snapshot."""


@command.command("new")
@click.option("--hypothesis", required=True, help="One line: what you try.")
@click.option("--rationale", default="", help="Why it should help.")
@click.option("--parent", default=None, help="The experiment it builds on, e.g. exp-0001.")
@project_option
@json_option
def new(hypothesis: str, rationale: str, parent: str | None, project: Path, as_json: bool) -> None:
    """Open an experiment and make its folder. A person may have several open at once."""
    with changing.changing(project) as opened:
        answer = new_answer(
            opened,
            hypothesis=hypothesis,
            rationale=rationale,
            parent=parent,
        )
    give(answer, as_json=as_json)


def new_answer(
    project: Project,
    *,
    hypothesis: str,
    rationale: str,
    parent: str | None,
    seeds: int | None = None,
) -> Answer:
    """Open an experiment, as `open_experiment`."""
    experiment = open_experiment(
        project,
        hypothesis=hypothesis,
        rationale=rationale,
        parent=parent,
        by=caller(environment()),
        session=session_of(environment()),
        seeds=seeds,
        parallel=open_at_once(environment()),
    )
    folder, plan = project.layout.experiment(experiment.id), project.ledger.plan()
    before = tried_before(project, experiment)
    document = {
        "experiment": experiment.id,
        "status": experiment.status,
        "folder": str(folder),
        "data": {} if plan is None else training_tables(plan),
        "findings": [finding.plain() for finding in before],
    }
    lines = [
        f"opened {experiment.id}: {folder}",
        *([as_text(before)] if before else []),
        *([f"data: {data_told(plan)}"] if plan is not None else []),
        "first write its config.yaml, or give values to train: `--set lr=0.1`",
        next_step(project, experiment.id).line,
    ]
    return Answer(document=document, lines=lines)


@command.command("result")
@EXPERIMENT
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="METRIC=VALUE",
    help="A recomputed number, copied digit for digit.",
)
@click.option("--summary", required=True, help="What the evaluation shows.")
@click.option(
    "--shortfall", "shortfalls", multiple=True, help="What is missing; the most important first."
)
@project_option
@json_option
def result(
    experiment: str | None,
    claims: Sequence[str],
    summary: str,
    shortfalls: Sequence[str],
    project: Path,
    as_json: bool,
) -> None:
    """Write result.md of EXPERIMENT (default: the open one).

    E.g. `harness experiment result exp-0001 --claim accuracy=0.94 --summary TEXT`.
    """
    claimed = _claims(claims)
    with changing.changing(project) as opened:
        experiment = chosen(opened, experiment, "harness experiment result")
        answer = result_answer(
            opened, experiment, claims=claimed, summary=summary, shortfalls=shortfalls
        )
    give(answer, as_json=as_json)


def result_answer(
    project: Project,
    experiment: str,
    *,
    claims: dict[str, str],
    summary: str,
    shortfalls: Sequence[str] = (),
) -> Answer:
    """Write result.md, as `record_result`."""
    path = record_result(
        project,
        experiment,
        claims=claims,
        summary=summary,
        shortfalls=shortfalls,
        by=caller(environment()),
    )
    findings = claim_checks.claim_notes(project, experiment, claims)
    document = {
        "experiment": experiment,
        "written": str(path),
        "findings": [finding.plain() for finding in findings],
    }
    lines = [f"wrote {path}", as_text(findings), next_step(project, experiment).line]
    return Answer(document=document, lines=[line for line in lines if line])


@command.command("list")
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    default=_LISTED,
    show_default=True,
    help="Show the newest so many.",
)
@project_option
@json_option
def list_command(limit: int, project: Path, as_json: bool) -> None:
    """List the newest experiments with their recomputed scores, the oldest of them first."""
    with reading(project) as opened:
        rows = experiment_rows(opened, newest=limit)
        total = opened.ledger.last_number()
    lines = [experiments_table(rows) if rows else "no experiments yet"]
    if total > len(rows):
        all_of_them = f"`harness experiment list --limit {total}`"
        lines.append(f"the newest {len(rows)} of {total}; {all_of_them} shows all")
    emit({"experiments": rows, "total": total}, *lines, as_json=as_json)


@command.command("show")
@EXPERIMENT
@click.option(
    "--exact",
    is_flag=True,
    help="Print exact scores on secret labels, for your eyes only. Must be run by a person.",
)
@project_option
@json_option
def show(experiment: str | None, exact: bool, project: Path, as_json: bool) -> None:
    """Show EXPERIMENT (default: the open one): runs, evaluations, verdicts, decisions."""
    if exact:
        require_person("experiment show --exact", environment())
        with reading(project) as opened:
            experiment = chosen(opened, experiment, "harness experiment show --exact")
            scores = exact_view.exact_scores(opened, opened.ledger.experiment(experiment))
        lines = [line for score in scores for line in _exact_text(score)]
        none = [] if lines else ["nothing was evaluated yet"]
        emit({"experiment": experiment, "exact": scores}, *lines, *none, as_json=as_json)
        return
    with reading(project) as opened:
        experiment = chosen(opened, experiment, "harness experiment show")
        record = opened.ledger.experiment(experiment)
        row = experiment_row(opened, record)
        document = {**row, **experiments.details(opened, record)}
    emit(document, *_shown(row, document), as_json=as_json)


@command.command("compare")
@click.argument("candidate", metavar="A")
@click.argument("reference", metavar="B")
@click.option("--code", is_flag=True, help="Show how A's code differs from B's.")
@click.option("--config", is_flag=True, help="Show how A's config.yaml differs from B's.")
@project_option
@json_option
def compare_command(
    candidate: str, reference: str, code: bool, config: bool, project: Path, as_json: bool
) -> None:
    """Compare A with B: scores, verdicts and curves of both; exit 1 unless A is significantly
    better than B.

    A is e.g. an experiment, and B its parent. Where no score can be compared, --code and --config
    show what differs all the same. Of hidden labels it says what the gates told.
    """
    for name in (candidate, reference):
        require_id(name, "harness experiment compare")
    if candidate == reference:
        raise UsageError(
            f"A and B are the same experiment, {candidate}.",
            hint="Name another one as B, e.g. its parent; `harness experiment list` shows them.",
            code="same_experiment",
        )
    with reading(project) as opened:
        records = [opened.ledger.experiment(name) for name in (candidate, reference)]
        try:
            document = experiments.comparison(opened, candidate, reference)
        except RefusedError as error:
            if not (code or config):
                raise
            document = {"better": None, "why": f"{error.message} {error.hint}"}
        document["scores"] = {one.id: side_by_side.both_scores(opened, one) for one in records}
        document["verdicts"] = {one.id: side_by_side.verdict_of(opened, one) for one in records}
        document["curves"] = {one.id: side_by_side.curves(opened, one.id) for one in records}
        if code:
            document["code"] = side_by_side.code_difference(opened, candidate, reference)
        if config:
            document["config"] = side_by_side.config_difference(opened, candidate, reference)
    emit(document, *compared_lines(records, document), as_json=as_json)
    sys.exit(0 if document["better"] else 1)


def _claims(options: Sequence[str]) -> dict[str, str]:
    """Metric -> the number as typed: its number of digits is part of the claim."""
    claims: dict[str, str] = {}
    for text in options:
        metric, sign, value = text.partition("=")
        if not sign or not metric.strip() or metric.strip() in claims:
            what = "is given twice" if sign and metric.strip() else "is not a claim"
            raise UsageError(
                f"--claim {text!r} {what}; expected METRIC=VALUE.",
                hint="E.g. `--claim accuracy=0.94`.",
            )
        claims[metric.strip()] = value.strip()
    return claims


def _of_tree(tree: dict[str, Any] | None) -> list[str]:
    if tree is None or tree["here"]:
        return []
    where = f": `cd {shlex.quote(tree['folder'])}`" if tree["folder"] else ", not on this machine"
    return [f"of       {tree['words']}{where}; its files are there"]


def _told(told: dict[str, Any]) -> str:
    return (
        f"told     {told['experiment_bits']:g} bits of secret labels by this experiment,"
        f" {told['plan_bits']:g} of {told['bits']:g} by its plan"
    )


def _exact_text(score: dict[str, Any]) -> list[str]:
    columns = ("run", "seed", "value", "interval")
    title = f"{spoken(score['split'])}, mean {score['mean']}"
    if not all(run["here"] for run in score["runs"]):
        title += " (the exact records are not on this machine)"
    table = render_table(
        title, columns, [[run[name] for name in columns] for run in score["runs"]]
    )
    found = [finding for run in score["runs"] for finding in run["findings"]]
    return [table, *(f"  - {one['message']} {one['hint']}" for one in found)]


def _shown(row: dict[str, Any], document: dict[str, Any]) -> list[str]:
    elsewhere = ", checked elsewhere" if document["checked"] == "elsewhere" else ""
    gate = f" ({spoken(row['gate'])} gate)" if row["gate"] else ""
    head = [
        f"{row['experiment']}  {status_words(row)}  {row['hypothesis']}",
        f"parent   {row['parent'] or '-'}",
        *_of_tree(row["tree"]),
        *([f"folder   {gone_text(row['gone'])}"] if row["gone"] else []),
        f"score    {score_text(row)}",
        f"verdict  {document['standing'] or '-'}{elsewhere}{gate}",
        *([f"scored   by the {document['predict_code']}"] if document["predict_code"] else []),
        *(
            f"again    {made['outcome']} as {made['reproduction']}: {made['why']}"
            for made in document["reproductions"]
        ),
        *([_told(document["told"])] if document["told"] else []),
        *(
            f"changed  by version {one['version']} of the plan ({one['by']}): {one['changed']}"
            for one in document["approved_since"]
        ),
        *(f"  - {one_line(one['message'])} {one_line(one['hint'])}" for one in row["findings"]),
        *(
            f"  noticed: {one_line(note)}"
            for verdict in document["verdicts"][-1:]
            for note in verdict["notes"]
        ),
    ]
    parts = ["\n".join(head) + "\n"]
    parts += _used(document["runs"])
    for title, rows in _tables(document):
        if rows:
            columns = list(rows[0])
            cells = [
                [("-" if row[column] is None else row[column]) for column in columns]
                for row in rows
            ]
            parts.append(render_table(title, columns, cells))
    return parts


def _used(runs: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"  {run['run']}  {'  '.join(in_words(run['resources']))}"
        for run in runs
        if run["resources"]
    ]
    if not lines:
        return []
    head = "used of the machine (peak, mean)"
    return ["\n".join([head, *lines]) + "\n"]


def _tables(document: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What runs now comes first; no column holds numbers of two splits."""
    runs = sorted(document["runs"], key=lambda run: run["status"] in FINAL_RUNS)
    yield (
        "runs",
        [{name: value for name, value in run.items() if name != "resources"} for run in runs],
    )
    for title in ("alarms", "imported"):
        yield title, document[title]
    for split in Split:
        of_split = [row for row in document["evaluations"] if row["split"] == split]
        yield f"evaluations on {spoken(split)}", _drawn(of_split)
    yield "decisions", document["decisions"]


def _drawn(evaluations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Their value and whether there is one in one column."""
    return [
        {name: value for name, value in row.items() if name not in ("scored", "split")}
        | {"value": value_text(row), "interval": interval_text(row["interval"])}
        for row in evaluations
    ]
