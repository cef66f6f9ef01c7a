from dataclasses import dataclass

from harness.driver.supervisors import Supervisor, is_going
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.driver.tools.training_status import program_status
from harness.errors import UsageError
from harness.ledger.project import Project
from harness.posttrain.training_judgement import program_spec

REGISTER_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class RunTrainingArguments:
    experiment: str
    resume: bool = argument("Continue the stopped run from its last checkpoint.", default=False)


@agent_tool(
    "Start the trainer under the harness, once. Answers at once; training_status reports how it"
    " ends."
)
async def run_training(context: ToolContext, arguments: RunTrainingArguments) -> Answer:
    project, experiment = context.project, arguments.experiment
    program_spec(project, experiment)
    if not is_going(project, experiment):
        before = _attempts(project, experiment)
        supervisor = Supervisor.start(
            project,
            experiment,
            None,
            sandbox=context.sandbox,
            session=None,
            verb=("posttrain", "run", *(("--resume",) if arguments.resume else ())),
        )
        await context.wait_until(
            lambda: supervisor.ended() or _attempts(project, experiment) > before,
            REGISTER_SECONDS,
        )
        problem = supervisor.problem() if _attempts(project, experiment) == before else None
        if problem is not None:
            raise UsageError(problem["message"], hint=problem["hint"], code=problem["code"])
    return {
        **program_status(project, experiment),
        "next": "Call training_status with wait_seconds until no run is running.",
    }


def _attempts(project: Project, experiment: str) -> int:
    """How often a run of the program was started or resumed."""
    runs = project.ledger.runs(experiment)
    return len(runs) + sum(run.attempt for run in runs)
