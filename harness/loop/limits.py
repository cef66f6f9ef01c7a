"""What the plan lets a loop do, and what a person set since its approval."""

from harness.domain.statuses import Direction
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.loop.state import LoopLimits
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
