"""`harness gates set MODE`: what a running loop may decide by itself, from its next step on."""

from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import CommandGroup, emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.decisions.experiments import decide
from harness.domain.records import LEAST_SEEDS
from harness.domain.statuses import DecisionKind, GateMode, SandboxKind
from harness.errors import RefusedError, UsageError
from harness.ledger.facts import GateModeSet
from harness.sandbox.select import choose

_NEXT = "a running loop takes it from its next step on"


@click.group("gates", cls=CommandGroup)
def command() -> None:
    """Show or set what the loop decides by itself: supervised, auto, full-auto."""


@command.command("show")
@project_option
@json_option
def show(project: Path, as_json: bool) -> None:
    """Show the mode in force, who set it and why."""
    with reading(project) as opened:
        plan = opened.plan()
        mode, made = opened.ledger.gate_mode(plan)
    document = {
        "plan": plan.name,
        "mode": mode,
        "by": made.by if made else plan.by,
        "reason": made.reason if made else None,
        "plan_mode": plan.content["gates"]["mode"],
    }
    why = f"set by {made.by}: {made.reason}" if made else f"of the plan, approved by {plan.by}"
    emit(document, f"{mode}  {why}", as_json=as_json)


@command.command("set")
@click.argument("mode", type=click.Choice([mode.value for mode in GateMode]))
@click.option("--reason", required=True, help="Why; recorded.")
@project_option
@json_option
def set_command(mode: str, reason: str, project: Path, as_json: bool) -> None:
    """Set the MODE of the plan in force until it is approved again. Must be run by a person.

    A running loop takes it from its next step on. full-auto is refused without a sandbox, and for a
    plan with fewer than three seeds.
    """
    by = require_person("gates set", environment())
    if not reason.strip():
        raise UsageError("--reason is empty.", hint="Say why; the ledger keeps it.")
    if mode == GateMode.FULL_AUTO:
        _require_seeds(project)
        _require_sandbox()
    with changing(project) as opened, opened.ledger.transaction():
        plan = opened.plan()
        before, _ = opened.ledger.gate_mode(plan)
        opened.ledger.append(
            GateModeSet(plan=plan.name, mode=mode, before=before, by=by, reason=reason.strip())
        )
        decide(
            opened,
            kind=DecisionKind.MODE,
            experiment=None,
            by=by,
            context=f"Gate mode of plan {plan.name}, version {plan.version}: {before}.",
            choice=f"{mode} from the loop's next step on, until the plan is approved again.",
            alternatives=f"Leave it at {before}.",
            reason=reason.strip(),
            confidence="high",
        )
    document = {"plan": plan.name, "mode": mode, "before": before, "by": by, "reason": reason}
    emit(document, f"{plan.name}: {before} -> {mode}; {_NEXT}", as_json=as_json)


def _require_seeds(start: Path) -> None:
    """Raises RefusedError (seeds_too_few), as the plan's own mode is refused."""
    with reading(start) as opened:
        seeds = opened.plan().content["oracle"]["seeds"]
    if seeds < LEAST_SEEDS:
        raise RefusedError(
            f"full-auto discards what nobody can say is better, and the plan has {seeds} seeds: it"
            " would keep nothing.",
            hint=f"Approve the plan with at least {LEAST_SEEDS}, or set auto.",
            code="seeds_too_few",
        )


def _require_sandbox() -> None:
    """Raises RefusedError (isolation_absent)."""
    if choose(None, required=False).kind is SandboxKind.NONE:
        raise RefusedError(
            "full-auto keeps what no person saw, and nothing isolates agents' code here.",
            hint="Install bubblewrap, or use a kernel with Landlock; or `harness gates set auto`.",
            code="isolation_absent",
        )
