"""`harness train EXP [-- COMMAND]`: the only way to train."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import (
    emit,
    environment,
    json_option,
    print_event,
    project_option,
    sandbox_for,
    sandbox_option,
)
from harness.cli.person import session_of
from harness.domain.findings import as_text
from harness.runs.supervisor import train


@click.command("train")
@click.argument("experiment")
@click.argument("training_command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--session", default=None, hidden=True, help="The agent's session that asked for this run."
)
@click.option(
    "--resume",
    is_flag=True,
    help="A run that stopped before its end goes on from its last checkpoint.",
)
@sandbox_option
@project_option
@json_option
def command(
    experiment: str,
    training_command: tuple[str, ...],
    session: str | None,
    resume: bool,
    sandbox: str,
    project: Path,
    as_json: bool,
) -> None:
    """Train EXPERIMENT once for each seed of the plan, supervised: `harness train exp-0001 --
    python train.py`.

    Without a command the plan's training.entry is used. With --resume a seed's run that stopped
    goes on as a further attempt, if its command, code, data and sandbox are the same and nothing of
    it was changed; the training command finds its checkpoints where it left them. Exit 1 when a run
    failed or hit a limit.
    """
    with changing(project) as opened:
        report = train(
            opened,
            experiment,
            list(training_command) or None,
            sandbox=sandbox_for(sandbox),
            session=session or session_of(environment()),
            resume=resume,
            on_event=(lambda event: None) if as_json else print_event,
        )
    runs = [
        {
            "run": run.id,
            "seed": run.seed,
            "status": run.status,
            "rows": run.rows,
            "reason": run.reason,
        }
        for run in report.runs
    ]
    document = {
        "experiment": experiment,
        "ok": report.ok,
        "runs": runs,
        "findings": [finding.plain() for finding in report.findings],
    }
    lines = [f"{run['run']}  seed {run['seed']}  {run['status']}  {run['reason']}" for run in runs]
    lines.append(as_text(report.findings) or f"next: `harness evaluate {experiment}`")
    emit(document, as_json=as_json, text=lambda: "\n".join(lines))
    sys.exit(0 if report.ok else 1)
