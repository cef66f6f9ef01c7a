from dataclasses import dataclass

from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.posttrain.lineage import lineage


@dataclass(frozen=True, kw_only=True)
class TrainingLineageArguments:
    name: str = argument("exp-0007, or the beginning of a model's id.")


@agent_tool(
    "Dataset, runs, judged results, models, evaluations and promotions of one program or model.",
    reads=True,
)
async def training_lineage(context: ToolContext, arguments: TrainingLineageArguments) -> Answer:
    return lineage(context.project, arguments.name)
