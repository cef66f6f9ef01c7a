from dataclasses import dataclass

from harness.decisions import experiments
from harness.decisions.claimed import claim_notes
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool, argument


@dataclass(frozen=True, kw_only=True)
class RecordResultArguments(ExperimentArguments):
    claims: dict[str, float | str] = argument(default={})
    summary: str = argument()
    shortfalls: list[str] = argument(default=[])


@agent_tool(
    "Write result.md. The only claims are the recomputed numbers; the checklist shows the first"
    " shortfall.",
    due=("The result was not recorded. Call record_result, without claims if there is no score."),
    answers=(
        "experiment",
        "written",
        "findings",
    ),
)
async def record_result(context: ToolContext, arguments: RecordResultArguments) -> Answer:
    experiment = context.experiment(arguments.experiment)
    path = experiments.record_result(
        context.project,
        experiment.id,
        claims=arguments.claims,
        summary=arguments.summary,
        shortfalls=arguments.shortfalls,
        by=context.by,
    )
    findings = claim_notes(context.project, experiment.id, arguments.claims)
    return {
        "experiment": experiment.id,
        "written": str(path),
        "findings": [finding.plain() for finding in findings],
    }
