from dataclasses import dataclass
from typing import Any

from harness.driver.supervisors import is_going
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import LONGEST_WAIT_S, Answer, agent_tool, argument
from harness.ledger.project import Project
from harness.posttrain.lineage import overview
from harness.posttrain.training_judgement import program_spec


@dataclass(frozen=True, kw_only=True)
class TrainingStatusArguments:
    experiment: str | None = argument("Leave it out for all programs.", default=None)
    wait_seconds: float = argument(default=0, minimum=0, maximum=LONGEST_WAIT_S)


@agent_tool(
    "Training programs with their runs, models with their states, and what is served. With"
    " experiment it waits until that program's run has ended or wait_seconds have passed.",
    reads=True,
)
async def training_status(context: ToolContext, arguments: TrainingStatusArguments) -> Answer:
    project, experiment = context.project, arguments.experiment
    if experiment is None:
        return overview(project)
    program_spec(project, experiment)
    wait = min(arguments.wait_seconds, LONGEST_WAIT_S)
    await context.wait_until(lambda: not is_going(project, experiment), wait)
    return program_status(project, experiment)


def program_status(project: Project, experiment: str) -> dict[str, Any]:
    """One program with its runs and models."""
    everything = overview(project)
    (program,) = [
        program for program in everything["programs"] if program["experiment"] == experiment
    ]
    return {
        **program,
        "models": [model for model in everything["models"] if model["experiment"] == experiment],
        "state": "running" if is_going(project, experiment) else "ended",
    }
