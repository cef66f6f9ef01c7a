from dataclasses import asdict, dataclass

from harness.artifacts.next_ideas import CONFIDENCE
from harness.decisions import diagnoses
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool, argument


@dataclass(frozen=True, kw_only=True)
class Method:
    name: str
    track: str = argument("E.g. optimization, sequence, time series, tabular, image.")
    source: str = argument("The file, and where in it.")
    conditions: str = argument("The conditions under which its number was measured.")
    hypothesis: str = argument("What a run of this project would show.")
    alarm: str = argument("The code of the alarm that it answers.")
    confidence: str = argument(enum=list(CONFIDENCE))


@dataclass(frozen=True, kw_only=True)
class RecordMethodsArguments(ExperimentArguments):
    methods: list[Method]


@agent_tool(
    "Write methods.md: published methods that answer the diagnosis. Each is added to next.md as"
    " a candidate.",
    due=(
        "No method was recorded. Call record_methods, or say in your last message what is missing."
    ),
    answers=(
        "experiment",
        "written",
    ),
)
async def record_methods(context: ToolContext, arguments: RecordMethodsArguments) -> Answer:
    experiment = context.experiment(arguments.experiment)
    path = diagnoses.record_methods(
        context.project,
        experiment.id,
        methods=[asdict(method) for method in arguments.methods],
        by=context.by,
    )
    return {"experiment": experiment.id, "written": str(path)}
