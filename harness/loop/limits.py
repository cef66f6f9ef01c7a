"""What the plan lets a loop do, and what a person set since its approval."""

from harness.domain.statuses import Direction
from harness.ledger.facts import ApprovedPlan
from harness.ledger.phases import are_gates, due_phase, phase_views
from harness.ledger.project import Project
from harness.loop.state import LoopLimits, PhaseState
from harness.plans.parse import Plan


def limits_of(project: Project, approved: ApprovedPlan, plan: Plan) -> LoopLimits:
    mode, _ = project.ledger.gate_mode(approved)
    return LoopLimits(
        seeds=plan.oracle.seeds,
        experiments=plan.budget.experiments,
        total_minutes=plan.budget.total_minutes,
        usd=plan.budget.usd,
        tokens=plan.budget.tokens,
        stop_tier=plan.loop.stop_tier,
        patience=plan.loop.patience,
        mode=mode,
        search=plan.loop.search,
        maximize=plan.oracle.direction is Direction.MAXIMIZE,
        references=bool(plan.references),
    )


def phase_of(project: Project, approved: ApprovedPlan) -> PhaseState | None:
    """The phase that is due, where the plan makes phases gates."""
    view = due_phase(project.ledger, approved)
    if view is None:
        return None
    return PhaseState(name=view.name, role=view.phase.role, missing=view.missing)


def trained_since(project: Project, approved: ApprovedPlan) -> str:
    """When the phase of experiments was opened again last; "" where it never was."""
    if not are_gates(approved):
        return ""
    views = phase_views(project.ledger, approved)
    return next((view.since for view in views if view.phase.role is None), "")
