"""`--sandbox` where agents' code runs: less isolation than works here is a person's decision."""

from collections.abc import Callable
from typing import Any

import click

from harness.cli.output import environment, sandbox_for, sandbox_option
from harness.cli.person import require_person, stdin_is_terminal
from harness.decisions.experiments import decide
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import DecisionKind, SandboxKind
from harness.errors import UsageError
from harness.judge.identity import verify
from harness.ledger.project import Project
from harness.sandbox.select import stronger


def isolation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--sandbox` and `--reason`, for `isolation`."""
    return sandbox_option(
        click.option(
            "--reason",
            default="",
            help="Why --sandbox isolates less than works here; recorded as a decision.",
        )(function)
    )


def isolation(
    project: Project,
    sandbox: str,
    reason: str,
    *,
    verb: str,
    experiment: str | None = None,
    required: bool = False,
) -> Sandbox:
    """The sandbox that `--sandbox` names; one that isolates less than works here is recorded as a
    person's LOWER, also from a script without a terminal.

    What a person started before, the loop or the tool server, hands its choice to its children.
    Where nothing stronger works, nothing is lowered. Raises SandboxError as `sandbox_for`,
    RefusedError (human_verb) below an agent, UsageError (no_reason).
    """
    chosen = sandbox_for(sandbox, required=required)
    better = None if sandbox == "auto" else stronger(chosen.kind)
    if better is None or verify(environment(), project.settings.state) is not None:
        return chosen
    words = f"{verb} --sandbox {chosen.kind}"
    by = require_person(f"{words} --reason TEXT", environment(), needs_terminal=False)
    if not reason.strip():
        raise UsageError(
            f"The sandbox {better} works here, and {_lacking(chosen.kind)}; the decision log says"
            " why.",
            hint=f"Leave --sandbox out, or say why: `harness {words} --reason TEXT`.",
            code="no_reason",
        )
    where = "in a terminal" if stdin_is_terminal() else "without a terminal"
    decide(
        project,
        kind=DecisionKind.LOWER,
        experiment=experiment,
        by=by,
        context=f"`harness {verb}` {where}; the sandbox {better} works here",
        choice=f"--sandbox {chosen.kind}",
        alternatives=f"--sandbox {better}",
        reason=reason.strip(),
        confidence="high",
    )
    return chosen


def _lacking(kind: SandboxKind) -> str:
    return f"{kind} isolates nothing" if kind is SandboxKind.NONE else f"{kind} isolates less"
