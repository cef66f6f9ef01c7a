"""`harness data split`: held-out and hidden validation rows of one table, before agents see it."""

from pathlib import Path
from typing import Any

import click

from harness.cli.output import (
    CommandGroup,
    WholeNumber,
    emit,
    environment,
    json_option,
    project_option,
)
from harness.cli.person import require_person
from harness.clock import SystemClock
from harness.ledger.project import open_layout
from harness.plans.data_split import DataSplit, SplitOptions, split_table

HELD_OUT, VALIDATION = 0.2, 0.1
SHARE = click.FloatRange(0, 0.8, min_open=True)


@click.group("data", cls=CommandGroup)
def command() -> None:
    """Prepare the project's tables before any agent sees them."""


@command.command("split")
@click.argument("table", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--label", required=True, help="The column to predict.")
@click.option(
    "--held-out",
    type=SHARE,
    default=HELD_OUT,
    show_default=True,
    help="Its share.",
)
@click.option(
    "--validation",
    type=SHARE,
    default=VALIDATION,
    show_default=True,
    help="Its share.",
)
@click.option("--open-validation", is_flag=True, help="Training may read validation labels.")
@click.option(
    "--stratify/--no-stratify",
    default=None,
    help="Each class in each part by its share; default: when the label holds classes.",
)
@click.option("--group", default=None, help="A column: rows with the same value stay together.")
@click.option("--time", default=None, help="A column: the newest rows are held out.")
@click.option("--seed", type=WholeNumber(0), default=0, show_default=True)
@project_option
@json_option
def split(
    table: Path,
    label: str,
    held_out: float,
    validation: float,
    open_validation: bool,
    stratify: bool | None,
    group: str | None,
    time: str | None,
    seed: int,
    project: Path,
    as_json: bool,
) -> None:
    """Draw held-out and validation rows of TABLE, move them and TABLE itself into the vault, and
    write the train rows beside it.

    Prints the plan's `data`. Nobody but the harness reads what is in the vault; with
    --open-validation training may. Must be run by a person.
    """
    require_person("data split", environment(), needs_terminal=False)
    options = SplitOptions(
        label=label,
        held_out=held_out,
        validation=validation,
        open_validation=open_validation,
        stratify=stratify,
        group=group,
        time=time,
        seed=seed,
    )
    done = split_table(open_layout(project, environment()), table, options, SystemClock())
    emit(document(done), *told(done), "put this into the plan:", done.block(), as_json=as_json)


def document(done: DataSplit) -> dict[str, Any]:
    return {
        "table": done.table,
        "original": str(done.original),
        "how": done.how,
        "rows": done.rows,
        "data": done.data,
        "again": done.again,
    }


def told(done: DataSplit) -> list[str]:
    """What was done, for people."""
    rows, data = done.rows, done.data
    hidden = data["validation"] == "hidden"
    where = "in the vault" if hidden else data["validation"]
    left_out = [name for name in (data.get("group"), done.options["time"]) if name is not None]
    lines = [
        f"{done.table} {'was split before' if done.again else 'is split'}, {done.how}:",
        f"  train       {rows['train']:>8,} rows  {data['train']}",
        f"  validation  {rows['validation']:>8,} rows  {where}",
        f"  held-out    {rows['held_out']:>8,} rows  in the vault",
        f"The original is in the vault: {done.original}",
    ]
    if (own := data["held_out"]["id"]) != "id":
        lines.append(
            f"Rows are told apart by the column {own!r}; the inputs of predict call it 'id'."
        )
    if left_out:
        lines.append(
            f"No inputs: {', '.join(left_out)}. Add one to `inputs` if it is known when predicting."
        )
    return lines
