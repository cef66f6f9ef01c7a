"""`harness status`: the state of the project."""

import time
from pathlib import Path
from typing import Any

import click

from harness.artifacts.looked import looking, remembered
from harness.cli.output import emit, json_option, project_option, sandbox_for
from harness.cli.reading import reading
from harness.domain.plain_text import one_line
from harness.domain.statuses import CLOSED_EXPERIMENTS
from harness.process import SYSTEM_FOLDERS, boot_id
from harness.projections.briefing import briefing
from harness.rendering.standing import next_steps
from harness.views.snapshot import snapshot
from harness.views.tables import experiments_table, fitted


@click.command("status")
@click.option(
    "--briefing", "only_briefing", is_flag=True, help="Print the briefing of the next session."
)
@project_option
@json_option
def command(only_briefing: bool, project: Path, as_json: bool) -> None:
    """Show the plan, the sandbox, the open runs and the newest experiments."""
    with reading(project) as opened:
        if only_briefing:
            text = briefing(opened.ledger, next_steps(opened))
            emit({"briefing": text}, text, as_json=as_json)
            return
        with looking(opened.layout.looked):
            picture = snapshot(opened, sandbox=_sandbox())
    emit(picture, *fitted(_text(picture)), as_json=as_json)


def _sandbox() -> str:
    """The strongest that works here, tried at most once an hour: whatever runs in it tries it
    anew."""
    programs = [Path(folder) / "bwrap" for folder in SYSTEM_FOLDERS]
    now = [boot_id(), int(time.time() // 3600)]
    return remembered("sandbox", programs, lambda: str(sandbox_for("auto").kind), also=now)


def _text(picture: dict[str, Any]) -> list[str]:
    plan = picture["plan"]
    lines = [
        f"project  {picture['project']['id']}  {picture['project']['root']}",
        (
            f"plan     {plan['name']}, version {plan['version']} ({plan['path']}):"
            f" {plan['workflow']}, gates {plan['gates']}"
            if plan
            else "plan     none approved"
        ),
    ]
    lines += [
        f"running  {run['experiment']}/{run['run']} seed {run['seed']}"
        + ("" if run["alive"] else "  (process gone)")
        for run in picture["runs"]
    ]
    lines += [
        f"sandbox  {picture['sandbox']}",
        f"state    {picture['paths']['state']}",
    ]
    if picture["facts_wait"]:
        lines.append(
            "memory   the facts of this clone are not imported yet: `harness ledger import`"
        )
    lines += [
        f"memory   facts of writer {ahead['writer']} {ahead['came']} ({ahead['path']}) and are"
        " not taken in: `harness ledger import`"
        for ahead in picture["facts_ahead"]
    ]
    if plan and plan["changed"]:
        lines.append(
            f"         {plan['path']} has changed since; `harness plan approve` makes a new version"
        )
    if plan:
        lines.append(
            f"told     {plan['bits_told']:g} of {plan['bits']:g} bits about secret labels"
        )
    if plan and plan["more_bits"]:
        lines.append(
            f"         few are left: answers are coarse, then refused. {plan['more_bits']}"
        )
    if picture["active"]:
        lines.append(f"active   {picture['active']}")
    lines += [
        f"of       {row['tree']['words']}: {row['experiment']} is {row['status']}"
        + (f" in {row['tree']['folder']}" if row["tree"]["folder"] else ", in another clone")
        for row in picture["experiments"]
        if row["tree"] and not row["tree"]["here"] and row["status"] not in CLOSED_EXPERIMENTS
    ]
    lines += [f"alarm    {one_line(finding['message'])}" for finding in picture["alarms"]]
    lines.append(f"next     {picture['next']['text']}")
    rows = picture["experiments"]
    return [*lines, "", experiments_table(rows) if rows else "no experiments yet"]
