"""What moves a project from phase to phase: a note, a passing, an opening again."""

from collections.abc import Sequence

from harness.contract.phases import EVIDENCE, NOTE
from harness.decisions.experiments import decide
from harness.domain.plain_text import plain
from harness.domain.statuses import DecisionKind
from harness.errors import RefusedError, UsageError
from harness.ledger.facts import PhaseNoted, PhasePassed, PhaseReopened
from harness.ledger.phases import PhaseView, are_gates, due_phase, phase_views
from harness.ledger.project import Project
from harness.traces.secrets import without_secrets

MOST_BY_AGENTS = 2
"""Times that agents may open a phase again under one plan; a person may as often as they like."""
_LOOKED_AT = 100
_SHOWN = 300


def require_due(project: Project) -> PhaseView:
    """The phase that is due. Raises RefusedError (phases_shown_only, phases_passed, no_plan)."""
    plan = project.plan()
    if not are_gates(plan):
        raise RefusedError(
            f"The plan {plan.name} has no phases as gates: `harness phase` only shows them.",
            hint="A person may approve it with `gates: {phases: true}`.",
            code="phases_shown_only",
        )
    view = due_phase(project.ledger, plan)
    if view is None:
        raise RefusedError(
            f"All phases of {plan.name} are passed.",
            hint="`harness phase reopen PHASE --reason TEXT` opens one again.",
            code="phases_passed",
        )
    return view


def note_phase(
    project: Project, *, text: str, sources: Sequence[str], by: str, session: str | None
) -> PhaseView:
    """Record what was found in the phase that is due. Raises RefusedError as `require_due`,
    UsageError for a text that is empty or too long."""
    view = require_due(project)
    if view.phase.role is None:
        raise RefusedError(
            f"The phase {view.name} is done by experiments, not by a note.",
            hint="Open an experiment.",
            code="phase_not_noted",
        )
    project.ledger.append(
        PhaseNoted(
            plan=project.plan().name,
            phase=view.name,
            by=by,
            session=session,
            text=without_secrets(plain(text)).strip(),
            sources=[plain(one).strip() for one in sources if one.strip()],
        )
    )
    return require_due(project)


def pass_phase(
    project: Project, *, by: str, reason: str, person: bool = False, override: bool = False
) -> PhaseView:
    """Pass the phase that is due, by its evidence; a person's reason is its note where there is
    none; `override`: without what is missing, which the passing names for ever.

    Raises RefusedError (phase_lacks_evidence, and as `require_due`), UsageError (no_reason).
    """
    if not reason.strip():
        raise UsageError("The reason is empty.", hint="Say why: --reason TEXT.", code="no_reason")
    view = require_due(project)
    if person and view.phase.role is not None and NOTE in view.missing and not override:
        view = note_phase(project, text=reason, sources=(), by=by, session=None)
    if view.missing and not override:
        raise RefusedError(
            f"The phase {view.name} lacks {_words(view.missing)}.",
            hint="Bring it about; or a person goes on all the same: `harness phase next --override"
            " --reason TEXT`.",
            code="phase_lacks_evidence",
        )
    over = override and bool(view.missing)
    lacked = f" Without {_words(view.missing)}." if over else ""
    decision = _decision(
        project,
        DecisionKind.OVERRIDE if over else DecisionKind.PHASE,
        by=by,
        context=f"Phase {view.name} of plan {project.plan().name}{_round(view)}.",
        choice=f"It is passed.{lacked}",
        reason=reason,
    )
    project.ledger.append(
        PhasePassed(
            plan=project.plan().name,
            phase=view.name,
            by=by,
            decision=decision,
            evidence={name: words[:_SHOWN] for name, words in view.evidence.items()},
            missing=view.missing if over else (),
            override=over,
        )
    )
    return view


def reopen_phase(project: Project, phase: str, *, by: str, reason: str, agent: bool) -> None:
    """Open an earlier phase, and all that follow it, again.

    Raises RefusedError (phase_not_passed, phase_reopened_too_often, phases_shown_only), UsageError
    for an unknown phase or an empty reason.
    """
    if not reason.strip():
        raise UsageError("The reason is empty.", hint="Say why: --reason TEXT.", code="no_reason")
    plan = project.plan()
    if not are_gates(plan):
        require_due(project)
    views = {view.name: view for view in phase_views(project.ledger, plan)}
    if phase not in views:
        raise UsageError(
            f"The plan {plan.name} has no phase {phase!r}; expected one of {', '.join(views)}.",
            hint="`harness phase` shows them.",
        )
    if views[phase].passed is None:
        raise RefusedError(
            f"The phase {phase} is not passed: it is still open.",
            hint="`harness phase` shows where the project is.",
            code="phase_not_passed",
        )
    before = [one for one, _ in project.ledger.phases_reopened(plan.name) if one.agent]
    if agent and len(before) >= MOST_BY_AGENTS:
        raise RefusedError(
            f"Agents opened phases of {plan.name} again {len(before)} times already.",
            hint="Say in your note why; a person runs `harness phase reopen`.",
            code="phase_reopened_too_often",
        )
    decision = _decision(
        project,
        DecisionKind.PHASE,
        by=by,
        context=f"Phase {phase} of plan {plan.name}, passed at {views[phase].passed_at}.",
        choice="It is opened again, and what follows it.",
        reason=reason,
    )
    project.ledger.append(
        PhaseReopened(plan=plan.name, phase=phase, by=by, decision=decision, agent=agent)
    )


def _words(missing: Sequence[str]) -> str:
    return "; ".join(f"{name} ({EVIDENCE[name]})" for name in missing)


def _round(view: PhaseView) -> str:
    return f", opened again at {view.since}" if view.since else ""


def _decision(
    project: Project, kind: DecisionKind, *, by: str, context: str, choice: str, reason: str
) -> str:
    """Its id; the same one where a kill came before the phase was moved."""
    for one in project.ledger.decisions(newest=_LOOKED_AT):
        if (one.kind, one.context, one.reason) == (kind, plain(context), plain(reason)):
            return one.id
    return decide(
        project,
        kind=kind,
        experiment=None,
        by=by,
        context=context,
        choice=choice,
        alternatives="Leave the project where it is.",
        reason=reason,
        confidence="high",
    ).id
