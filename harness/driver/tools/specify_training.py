from dataclasses import dataclass

from harness.domain.statuses import SandboxKind
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.posttrain.program import TrainingProgram
from harness.posttrain.specification import Request
from harness.posttrain.vocabulary import HYPERPARAMETERS, Backend, HardwareTier, Mode, Profile
from harness.sandbox.select import choose

WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}


@dataclass(frozen=True, kw_only=True)
class SpecifyTrainingArguments:
    backend: Backend
    mode: Mode
    profile: Profile
    model: str = argument("An id of the registry.")
    dataset: str = argument("JSON lines, relative to the project.")
    benchmark: str = argument("Held-out JSON lines.")
    evaluator: str | list[str] | None = argument(
        "A name, or the words of your command.", default=None, anyOf=[{"type": "string"}, WORDS]
    )
    tier: HardwareTier | None = argument(default=None)
    trainer: list[str] | None = argument(
        "For the backend command: the words of your command.", default=None, minItems=1
    )
    seed: int | None = argument(default=None, minimum=0)
    dtype: str | None = argument(default=None)
    hyperparameters: dict[str, float] | None = argument(
        default=None,
        properties={name: {"type": "number"} for name in HYPERPARAMETERS},
        additionalProperties=False,
    )
    minutes: float | None = argument(default=None)
    tokens: int | None = argument(default=None)
    composition: str | None = argument(
        "For the backend composed: its channels, a TOML file.", default=None
    )


@agent_tool(
    "Record the specification of a training program, after checking every bound. Answers its"
    " experiment."
)
async def specify_training(context: ToolContext, arguments: SpecifyTrainingArguments) -> Answer:
    # What was left out gets the request's own default.
    passed = {name: value for name, value in vars(arguments).items() if value is not None}
    request = Request(command=passed.pop("trainer", None), **passed)
    sandbox = choose(SandboxKind.NONE, required=False)
    program = TrainingProgram(context.project, sandbox=sandbox).create(request, by=context.by)
    return {
        "experiment": program.experiment,
        "specification": program.spec,
        "warnings": list(program.warnings),
        "next": "Call run_training.",
    }
