"""`harness run PLAN` and `harness continue`: the loop of agents and experiments."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.in_clone import in_clone
from harness.cli.isolation import isolation, isolation_options
from harness.cli.output import (
    WholeNumber,
    emit,
    environment,
    json_option,
    print_event,
    project_option,
    tell,
)
from harness.cli.tmux_pane import watched_beside
from harness.cli.train import launcher_option
from harness.contract.profiles import PROFILES, profile_of
from harness.domain.ids import names_experiment
from harness.domain.prices import MODEL
from harness.driver.loop_runner import expected_night, open_gateway, run_loop
from harness.driver.scenario_check import require_playable
from harness.errors import UsageError
from harness.ledger.facts import LoopEnded
from harness.loop.steps import StopReason
from harness.plans.approval import require_approved
from harness.plans.rehearsal import require_no_rehearsal
from harness.runs.launchers.launcher import launching

_WELL = (StopReason.TARGET, StopReason.PLAYED)
SCENARIO = click.option(
    "--scenario",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Play the agents from this file; needs no model and no budget for one.",
)
RECORD = click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record the live sessions in this file.",
)
PROFILE = click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default=None,
    help="What sessions are given; default: the plan's agents.profile.",
)
PARALLEL = click.option(
    "--parallel",
    type=WholeNumber(1, 64),
    default=1,
    metavar="N",
    help="Up to N experiments open at once, each with its part of the machine; default: 1.",
)


@click.command("run")
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path), default="plan.md")
@SCENARIO
@RECORD
@PARALLEL
@PROFILE
@launcher_option
@isolation_options
@project_option
@json_option
def command(
    plan: Path,
    scenario: Path | None,
    record: Path | None,
    parallel: int,
    profile: str | None,
    launcher: str | None,
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Run experiments on the approved PLAN until its target, budget or patience is reached.

    With --parallel N up to N train at once, each on a GPU of its own or its part of the cores.
    They are looked at, judged and decided in the order in which they were opened.
    """
    if names_experiment(str(plan)):
        raise UsageError(
            f"`harness run` takes a plan, for its loop of agents; {plan} is an experiment.",
            hint=f"`harness train {plan}` trains it; `harness run plan.md` begins the loop.",
        )
    _loop(project, plan, scenario, record, parallel, profile, launcher, sandbox, reason, as_json)


@click.command("continue")
@SCENARIO
@RECORD
@PARALLEL
@PROFILE
@launcher_option
@isolation_options
@project_option
@json_option
def continue_command(
    scenario: Path | None,
    record: Path | None,
    parallel: int,
    profile: str | None,
    launcher: str | None,
    sandbox: str,
    reason: str,
    project: Path,
    as_json: bool,
) -> None:
    """Resume an interrupted loop: close lost runs, end leftover processes, then run on."""
    _loop(project, None, scenario, record, parallel, profile, launcher, sandbox, reason, as_json)


def _loop(
    project: Path,
    plan: Path | None,
    scenario: Path | None,
    record: Path | None,
    parallel: int,
    profile: str | None,
    launcher: str | None,
    sandbox: str,
    reason: str,
    as_json: bool,
) -> None:
    if scenario is not None:
        in_clone(project)
    with changing(project) as opened:
        approved = require_approved(opened, plan)
        if scenario is not None:
            require_playable(scenario, opened)
        else:
            require_no_rehearsal(approved)
        used = PROFILES[profile or profile_of(approved.content)]
        asked = {**environment(), **({MODEL: used.model} if used.model else {})}
        gateway = open_gateway(
            opened,
            approved,
            asked,
            scenario=scenario,
            record=record,
        )
        if scenario is None:
            expected = expected_night(opened, approved, asked, used)
            tell(f"models: {gateway.service.words}\n{expected.words}")
        required = approved.content.get("sandbox") == "required"
        chosen = isolation(opened, sandbox, reason, verb="run", required=required)
        with (
            watched_beside(project, environment(), wanted=sys.stdout.isatty() and not as_json),
            launching(opened, launcher) as placing,
        ):
            ended: LoopEnded = run_loop(
                placing,
                gateway,
                chosen,
                on_progress=print_event,
                parallel=parallel,
                profile=used,
            )
    document = {"plan": ended.plan, "reason": ended.reason, "detail": ended.detail}
    emit(document, f"stopped: {ended.reason}. {ended.detail}", as_json=as_json)
    sys.exit(0 if ended.reason in _WELL else 1)
