from harness.artifacts.experiment_files import claim_of
from harness.domain.statuses import Split
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool
from harness.errors import NotFoundError
from harness.evaluation.released import released_score
from harness.evaluation.scores import recorded_evaluations
from harness.plans.approved import objective_of

_FIELDS = (
    "experiment",
    "metric",
    "split",
    "mean",
    "spread",
    "n_seeds",
    "values",
    "interval",
    "baseline",
    "not_isolated",
    "released",
    "evidence",
    "claim",
    "tiers",
    "findings",
)


@agent_tool(
    "The score that the harness recomputed on validation: mean, spread, one value for each"
    " seed, interval, and the number to claim. On hidden labels it is what was told: a number on a"
    " grid, or that it is not better.",
    reads=True,
    answers=_FIELDS,
)
async def evaluation_report(context: ToolContext, arguments: ExperimentArguments) -> Answer:
    experiment, project = context.experiment(arguments.experiment), context.project
    evaluations = recorded_evaluations(project, experiment.id, project.plan(), Split.VALIDATION)
    score = released_score(project, experiment.id, project.plan(), Split.VALIDATION)
    if score is None:
        raise NotFoundError(
            f"{experiment.id} has no recomputed score on validation.",
            hint="Record the result without claims, and name the missing score as a shortfall.",
            code="no_score",
        )
    return {
        "experiment": experiment.id,
        **score,
        "claim": None if score["mean"] is None else claim_of(score["mean"]),
        "tiers": {str(tier): value for tier, value in objective_of(project.plan()).tiers.items()},
        "findings": [
            finding.plain() for evaluation in evaluations for finding in evaluation.findings
        ],
    }
