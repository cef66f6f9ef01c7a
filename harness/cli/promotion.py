"""`harness posttrain approve|observe|promote|reject|rollback|serve-path`: what models are judged
by, and which one is served."""

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller, require_person
from harness.cli.reading import reading
from harness.errors import UsageError
from harness.plans.changes import require_seen
from harness.posttrain.benchmark_approval import (
    DELTA,
    QUALITY,
    ROWS,
    Bar,
    approve_benchmark,
    shown,
)
from harness.posttrain.promotion import Promotion, promote, reject_model, rollback, serve_path
from harness.posttrain.promotion_checks import OUTCOMES, observe
from harness.posttrain.vocabulary import Profile

REASON = click.option("--reason", required=True, help="Why; recorded in the decision log.")
PROFILE = click.option(
    "--profile",
    type=click.Choice(list(map(str, Profile))),
    default=Profile.READER.value,
    show_default=True,
)


@click.command("approve")
@click.option("--benchmark", required=True, help="Held-out rows, JSON lines.")
@click.option(
    "--evaluator",
    default="preference",
    show_default=True,
    help="A name, or a command as a JSON list.",
)
@click.option(
    "--seeds",
    default="1,2,3",
    show_default=True,
    help="A PASS needs a model of each.",
)
@click.option("--delta", type=float, default=DELTA.default, show_default=True)
@click.option("--quality", type=float, default=QUALITY.default, show_default=True)
@click.option("--rows", type=int, default=ROWS.default, show_default=True)
@click.option(
    "--changes",
    metavar="DIGEST",
    default=None,
    help="Of the changes that were shown: confirms these and no others.",
)
@project_option
@json_option
def approve_command(
    benchmark: str,
    evaluator: str,
    seeds: str,
    changes: str | None,
    project: Path,
    as_json: bool,
    **thresholds: float,
) -> None:
    """Freeze what models are judged by: benchmark, evaluator, thresholds, seeds.

    --delta is the least gain over the baseline, --quality the least score, --rows the fewest rows.
    The rows, and the code that a command runs in, are kept in the vault. What differs from the last
    approval of the benchmark is shown, and confirmed by --changes. Must be run by a person.
    """
    by = require_person("posttrain approve", environment())
    bar = Bar(
        benchmark=benchmark,
        evaluator=as_words("--evaluator", evaluator) if evaluator.startswith("[") else evaluator,
        seeds=_seeds(seeds),
        **thresholds,
    )
    with changing(project, new_config=True) as opened:
        words = ["harness", "posttrain", "approve", "--benchmark", benchmark]
        words += ["--evaluator", evaluator, "--seeds", seeds]
        words += [
            text for name, value in thresholds.items() for text in (f"--{name}", f"{value:g}")
        ]
        line = shlex.join(words)
        approved = approve_benchmark(
            opened, bar, by=by, on_changes=lambda found: require_seen(found, changes, line)
        )
    rows, sha256 = approved.benchmark["rows"], approved.benchmark["sha256"]
    emit(
        asdict(approved),
        f"approved {approved.benchmark['path']}: {rows} rows ({sha256[:12]}), scored by"
        f" {shown(approved.evaluator)}; seeds {', '.join(map(str, approved.seeds))}",
        as_json=as_json,
    )


@click.command("observe")
@click.argument("model")
@click.option("--outcome", required=True, type=click.Choice(OUTCOMES))
@click.option("--note", default="")
@project_option
@json_option
def observe_command(model: str, outcome: str, note: str, project: Path, as_json: bool) -> None:
    """Record the outcome of one answer of MODEL in shadow mode."""
    with changing(project) as opened:
        fact = observe(opened, model, outcome, by=caller(environment()), note=note)
    emit(
        {"model": fact.model, "outcome": fact.outcome},
        f"{fact.model[:12]}  {outcome}",
        as_json=as_json,
    )


@click.command("promote")
@click.argument("model")
@REASON
@project_option
@json_option
def promote_command(model: str, reason: str, project: Path, as_json: bool) -> None:
    """Promote MODEL one step if every check passes; exit 1 and list the failed checks if not.

    Must be run by a person.
    """
    by = require_person("posttrain promote", environment())
    with changing(project) as opened:
        promotion = promote(opened, model, by=by, reason=reason)
    _print_promotion(promotion, as_json=as_json)


@click.command("reject")
@click.argument("model")
@REASON
@project_option
@json_option
def reject_command(model: str, reason: str, project: Path, as_json: bool) -> None:
    """Never serve MODEL, even if it is served now. Must be run by a person."""
    by = require_person("posttrain reject", environment())
    with changing(project) as opened:
        decision = reject_model(opened, model, by=by, reason=reason)
    emit(
        {"decision": decision.id, "kind": decision.kind},
        f"{decision.id}  {decision.kind} by {decision.by}",
        as_json=as_json,
    )


@click.command("rollback")
@click.option(
    "--to",
    default=None,
    help="A model that was served before; default: the previous one.",
)
@REASON
@PROFILE
@project_option
@json_option
def rollback_command(
    to: str | None, reason: str, profile: str, project: Path, as_json: bool
) -> None:
    """Serve an earlier good model again. Must be run by a person."""
    by = require_person("posttrain rollback", environment())
    with changing(project) as opened:
        serving = rollback(opened, profile, by=by, reason=reason, to=to)
    document = {
        "profile": serving.profile,
        "model": serving.model,
        "before": serving.before,
        "decision": serving.decision,
    }
    emit(document, f"{serving.profile}: {(serving.model or '')[:12]} is served", as_json=as_json)


@click.command("serve-path")
@PROFILE
@project_option
@json_option
def serve_path_command(profile: str, project: Path, as_json: bool) -> None:
    """Print the path of the deployed model after checking its bytes; an error if there is none."""
    with reading(project) as opened:
        path = serve_path(opened, profile)
    emit({"profile": profile, "path": str(path)}, str(path), as_json=as_json)


VERBS = (
    approve_command,
    observe_command,
    promote_command,
    reject_command,
    rollback_command,
    serve_path_command,
)


def as_words(option: str, text: str) -> list[str]:
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if (
        not isinstance(words, list)
        or not words
        or not all(isinstance(word, str) for word in words)
    ):
        raise UsageError(
            f"{option} is {text!r}; expected a JSON list of words.",
            hint='E.g. \'["python", "train.py"]\'.',
        )
    return words


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"--seeds is {text!r}; expected whole numbers.", hint="E.g. `--seeds 1,2,3`."
        ) from error


def _print_promotion(promotion: Promotion, *, as_json: bool) -> None:
    checks = [
        {
            "constraint": check.constraint,
            "actual": check.actual,
            "threshold": check.threshold,
            "passed": check.passed,
        }
        for check in promotion.checks
    ]
    document = {
        "model": promotion.model,
        "before": promotion.before,
        "after": promotion.after,
        "moved": promotion.moved,
        "checks": checks,
    }
    lines = [
        f"{promotion.model[:12]}  {promotion.before} -> {promotion.after}"
        if promotion.moved
        else f"{promotion.model[:12]} stays {promotion.before}"
    ]
    lines += [
        f"  {'ok' if one.passed else 'NO'}  {one.constraint}: {one.actual} ({one.threshold})"
        for one in promotion.checks
    ]
    emit(document, *lines, as_json=as_json)
    sys.exit(0 if promotion.moved else 1)
