"""`harness recall`: what experiments, decisions, diagnoses, priors and hand-offs say of some
words."""

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.chosen import require_id
from harness.cli.output import WholeNumber, emit, json_option, project_option
from harness.cli.reading import reading
from harness.errors import UsageError
from harness.projections.recall import MOST, Kind, kin_of, memories, recall


@click.command("recall")
@click.argument("query", nargs=-1, required=True, metavar="QUERY")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in Kind]),
    multiple=True,
    help="Only these; may be repeated.",
)
@click.option(
    "--experiment",
    default=None,
    metavar="EXP",
    help="What is about EXP, or what it builds on, counts more.",
)
@click.option("--limit", type=WholeNumber(1, 200), default=MOST, show_default=True)
@project_option
@json_option
def command(
    query: Sequence[str],
    kinds: Sequence[str],
    experiment: str | None,
    limit: int,
    project: Path,
    as_json: bool,
) -> None:
    """Find what the project remembers about QUERY, the nearest first."""
    words = " ".join(query)
    if not any(character.isalnum() for character in words):
        raise UsageError(
            f"QUERY is {words!r}; expected words to look for.",
            hint="E.g. `harness recall learning rate diverged`.",
        )
    if experiment is not None:
        require_id(experiment, "harness recall --experiment")
    with reading(project) as opened:
        if experiment is not None:
            opened.ledger.experiment(experiment)
        known = memories(opened.ledger, opened.layout)
        found = recall(
            (one for one in known if not kinds or one.kind.value in kinds),
            words,
            kin=kin_of(opened.ledger, experiment),
            limit=limit,
        )
    rows = [
        {
            "kind": one.memory.kind.value,
            "id": one.memory.id,
            "experiment": one.memory.experiment,
            "at": one.memory.at,
            "excerpt": one.excerpt,
            "score": round(one.score, 6),
        }
        for one in found
    ]
    lines = [
        f"{row['kind']:<10}  {row['id']}  {row['experiment'] or ''}\n            {row['excerpt']}"
        for row in rows
    ]
    none = "nothing is remembered about it; `harness experiment list` shows what was tried"
    emit({"query": words, "found": rows}, *(lines or [none]), as_json=as_json)
