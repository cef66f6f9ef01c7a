"""`harness phase`: where the project is, what its phase lacks; a person passes or reopens it."""

from pathlib import Path
from typing import Any

import click

from harness.cli.changing import changing
from harness.cli.output import CommandGroup, emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.contract.phases import EVIDENCE
from harness.decisions.phases import pass_phase, reopen_phase
from harness.domain.plain_text import one_line
from harness.ledger.phases import PhaseView, are_gates, due_phase, phase_views
from harness.views.tables import render_table

_SHOWN = 80
_reason = click.option("--reason", required=True, help="Why; recorded.")


@click.group("phase", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show where the project is, and what its phase lacks; pass a phase, or open one again."""
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("show")
@project_option
@json_option
def show(project: Path, as_json: bool) -> None:
    """Show each phase of the plan's workflow with its evidence."""
    with reading(project) as opened:
        plan = opened.plan()
        views = phase_views(opened.ledger, plan)
        due = due_phase(opened.ledger, plan)
    gates = are_gates(plan)
    document = {
        "plan": plan.name,
        "workflow": plan.content["workflow"],
        "gates": gates,
        "due": None if due is None else due.name,
        "phases": [_plain(view) for view in views],
    }
    rows = [_row(view, due, gates=gates) for view in views]
    table = render_table("", ("phase", "role", "status", "evidence"), rows)
    emit(document, table, _next(due, gates=gates), as_json=as_json)


@command.command("next")
@_reason
@click.option("--override", is_flag=True, help="Without the evidence that is missing.")
@project_option
@json_option
def next_command(reason: str, override: bool, project: Path, as_json: bool) -> None:
    """Pass the phase that is due, by its evidence. Must be run by a person.

    Where only a note is missing, the reason is the note. With --override the phase is passed
    without what is missing, and the decision (OVERRIDE) names that for ever.
    """
    by = require_person("phase next", environment())
    with changing(project) as opened:
        passed = pass_phase(opened, by=by, reason=reason, person=True, override=override)
        due = due_phase(opened.ledger, opened.plan())
    document = {
        "phase": passed.name,
        "by": by,
        "override": bool(override and passed.missing),
        "missing": list(passed.missing),
        "due": None if due is None else due.name,
    }
    lacked = f", without {', '.join(passed.missing)}" if passed.missing else ""
    emit(document, f"{passed.name}: passed{lacked}", _next(due, gates=True), as_json=as_json)


@command.command("reopen")
@click.argument("phase")
@_reason
@project_option
@json_option
def reopen(phase: str, reason: str, project: Path, as_json: bool) -> None:
    """Open PHASE, and all that follow it, again. Must be run by a person."""
    by = require_person("phase reopen", environment())
    with changing(project) as opened:
        reopen_phase(opened, phase, by=by, reason=reason, agent=False)
        due = due_phase(opened.ledger, opened.plan())
    document = {"phase": phase, "by": by, "due": None if due is None else due.name}
    emit(document, f"{phase}: open again", _next(due, gates=True), as_json=as_json)


def _plain(view: PhaseView) -> dict[str, Any]:
    passed = view.passed
    return {
        "phase": view.name,
        "role": view.phase.role,
        "evidence": dict(view.evidence),
        "missing": list(view.missing),
        "passed": None
        if passed is None
        else {
            "by": passed.by,
            "at": view.passed_at,
            "decision": passed.decision,
            "override": passed.override,
            "missing": list(passed.missing),
        },
        "reopened_at": view.since or None,
    }


def _row(view: PhaseView, due: PhaseView | None, *, gates: bool) -> list[str]:
    held = "; ".join(f"{name}: {one_line(words, _SHOWN)}" for name, words in view.evidence.items())
    lacks = f"lacks {', '.join(view.missing)}" if view.missing else ""
    return [
        view.name,
        view.phase.role or "experiments",
        _status(view, due) if gates else "shown only",
        "; ".join(filter(None, (held, lacks))),
    ]


def _status(view: PhaseView, due: PhaseView | None) -> str:
    passed = view.passed
    if passed is None:
        return "due" if due is not None and view.name == due.name else "later"
    if passed.override:
        return f"OVERRIDE by {passed.by} ({passed.decision}), without {', '.join(passed.missing)}"
    return f"passed by {passed.by} ({passed.decision})"


def _next(due: PhaseView | None, *, gates: bool) -> str:
    if not gates:
        return "phases are shown only; `gates: {phases: true}` in the plan makes each a gate"
    if due is None:
        return "all phases are passed"
    if not due.missing:
        return f"next: {due.name} has its evidence; `harness phase next --reason TEXT` passes it"
    return f"next: {due.name} lacks " + "; ".join(EVIDENCE[name] for name in due.missing)
