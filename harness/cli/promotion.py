"""`harness posttrain observe|promote|reject|rollback|serve-path`: a model's way to be served, and
what is served."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller, require_person
from harness.ledger.project import open_project
from harness.posttrain.promotion import Promotion, promote, reject_model
from harness.posttrain.serving import rollback, serve_path
from harness.posttrain.shadow import OUTCOMES, observe
from harness.posttrain.vocabulary import Profile

REASON = click.option("--reason", required=True, help="Why; it stands in the decision log.")
PROFILE = click.option(
    "--profile",
    type=click.Choice([item.value for item in Profile]),
    default=Profile.READER.value,
    show_default=True,
)


@click.command("observe")
@click.argument("model")
@click.option("--outcome", required=True, type=click.Choice(OUTCOMES))
@click.option("--note", default="")
@project_option
@json_option
def observe_command(model: str, outcome: str, note: str, project: Path, as_json: bool) -> None:
    """Record one answer of a MODEL in shadow: what became of it."""
    with changing(project) as opened:
        fact = observe(opened, model, outcome, by=caller(environment()), note=note)
    emit(
        {"model": fact.model, "outcome": fact.outcome},
        as_json=as_json,
        text=lambda: f"{fact.model[:12]}  {outcome}",
    )


@click.command("promote")
@click.argument("model")
@REASON
@project_option
@json_option
def promote_command(model: str, reason: str, project: Path, as_json: bool) -> None:
    """Take MODEL's next step when every check holds; exit 1 names those that do not. A person's
    verb."""
    by = require_person("posttrain promote", environment())
    with changing(project) as opened:
        made = promote(opened, model, by=by, reason=reason)
    _promotion(made, as_json=as_json)


@click.command("reject")
@click.argument("model")
@REASON
@project_option
@json_option
def reject_command(model: str, reason: str, project: Path, as_json: bool) -> None:
    """Never serve MODEL, also not when it is served now. A person's verb."""
    by = require_person("posttrain reject", environment())
    with changing(project) as opened:
        made = reject_model(opened, model, by=by, reason=reason)
    emit(
        {"decision": made.id, "kind": made.kind},
        as_json=as_json,
        text=lambda: f"{made.id}  {made.kind} by {made.by}",
    )


@click.command("rollback")
@click.option(
    "--to",
    default=None,
    help="A model that was served before; default: the one before the present.",
)
@REASON
@PROFILE
@project_option
@json_option
def rollback_command(
    to: str | None, reason: str, profile: str, project: Path, as_json: bool
) -> None:
    """Serve an earlier good model again. A person's verb."""
    by = require_person("posttrain rollback", environment())
    with changing(project) as opened:
        made = rollback(opened, profile, by=by, reason=reason, to=to)
    document = {
        "profile": made.profile,
        "model": made.model,
        "before": made.before,
        "decision": made.decision,
    }
    emit(
        document,
        as_json=as_json,
        text=lambda: f"{made.profile}: {(made.model or '')[:12]} is served",
    )


@click.command("serve-path")
@PROFILE
@project_option
@json_option
def serve_path_command(profile: str, project: Path, as_json: bool) -> None:
    """Where the deployed model lies, its bytes checked. An error says that none is."""
    with open_project(project, environment(), read_only=True) as opened:
        path = serve_path(opened, profile)
    emit({"profile": profile, "path": str(path)}, as_json=as_json, text=lambda: str(path))


VERBS = (observe_command, promote_command, reject_command, rollback_command, serve_path_command)


def _promotion(made: Promotion, *, as_json: bool) -> None:
    checks = [
        {
            "constraint": item.constraint,
            "actual": item.actual,
            "threshold": item.threshold,
            "passed": item.passed,
        }
        for item in made.checks
    ]
    document = {
        "model": made.model,
        "before": made.before,
        "after": made.after,
        "moved": made.moved,
        "checks": checks,
    }
    lines = [
        f"{made.model[:12]}  {made.before} -> {made.after}"
        if made.moved
        else f"{made.model[:12]} stays {made.before}"
    ]
    lines += [
        f"  {'ok' if item.passed else 'NO'}  {item.constraint}: {item.actual} ({item.threshold})"
        for item in made.checks
    ]
    emit(document, as_json=as_json, text=lambda: "\n".join(lines))
    sys.exit(0 if made.moved else 1)
