"""`harness postmortem`: what went wrong with experiments, by class, and what came of it."""

from collections import Counter
from pathlib import Path

import click

from harness.cli.chosen import require_id
from harness.cli.output import emit, json_option, project_option
from harness.cli.reading import reading
from harness.projections.post_mortems import post_mortems


@click.command("postmortem")
@click.argument("experiment", required=False)
@project_option
@json_option
def command(experiment: str | None, project: Path, as_json: bool) -> None:
    """Show the failures of EXPERIMENT (default: of all), oldest first, and what came of them."""
    if experiment is not None:
        require_id(experiment, "harness postmortem")
    with reading(project) as opened:
        ledger = opened.ledger
        names = [experiment] if experiment else [one.id for one in ledger.experiments()]
        found = post_mortems(ledger, names)
        answers: dict[str, list[str]] = {}
        for prior in ledger.priors():
            if prior.answers is not None:
                answers.setdefault(prior.answers, []).append(f"{prior.id} {prior.status}")
    rows = [
        {
            "experiment": one.experiment,
            "failure": one.failure,
            "cause": one.cause,
            "code": one.code,
            "what": one.what,
            "shown_by": one.shown_by,
            "at": one.at,
            "priors": answers.get(one.code, []),
        }
        for one in found
    ]
    causes = Counter(str(one.cause) for one in found)
    lines = []
    for one in found:
        told = ", ".join(answers.get(one.code, []))
        lines.append(one.line + (f"  -> {told}" if told else ""))
    if found:
        lines.append(", ".join(f"{cause} {count}" for cause, count in causes.most_common()))
    document = {"post_mortems": rows, "causes": dict(causes)}
    emit(document, *(lines or ["nothing went wrong yet"]), as_json=as_json)
