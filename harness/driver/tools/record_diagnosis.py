from dataclasses import asdict, dataclass
from typing import ClassVar

from harness.artifacts.next_ideas import CONFIDENCE
from harness.decisions import diagnoses
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool, argument
from harness.gates.alarms import undiagnosed_runs


@dataclass(frozen=True, kw_only=True)
class AlarmRows:
    """An alarm as `run_status` gives it may be passed on whole."""

    MAY_HOLD_MORE: ClassVar[bool] = True

    code: str
    rows: list[int] = argument(minItems=1)
    run: str = argument("Of another run that has the same cause.", default="")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    change: str
    alarm: str = argument("The code of the alarm that it answers.")
    confidence: str = argument(enum=list(CONFIDENCE))


@dataclass(frozen=True, kw_only=True)
class RecordDiagnosisArguments(ExperimentArguments):
    run: str = argument("E.g. run-01.")
    what_happened: str = argument("In order, with row numbers.")
    mechanism: str = argument("The cause, and what speaks against other causes.")
    alarms: list[AlarmRows] = argument(
        "Every open alarm of the run, and those of other runs that the same cause explains."
    )
    candidates: list[Candidate] = argument(
        "What to try next, each a hypothesis that a run can refute."
    )


@agent_tool(
    "Write the part of diagnosis.md about one run, and add what to try to next.md. The rows"
    " that you name are quoted as they were logged.",
    due="The diagnosis was not recorded. Call record_diagnosis for the run that you were given.",
    answers=(
        "experiment",
        "written",
        "runs_left",
    ),
)
async def record_diagnosis(context: ToolContext, arguments: RecordDiagnosisArguments) -> Answer:
    experiment = context.experiment(arguments.experiment)
    path = diagnoses.record_diagnosis(
        context.project,
        experiment.id,
        run=arguments.run,
        what_happened=arguments.what_happened,
        mechanism=arguments.mechanism,
        alarms=[asdict(alarm) for alarm in arguments.alarms],
        candidates=[asdict(candidate) for candidate in arguments.candidates],
        by=context.by,
    )
    context.on_change()
    left = undiagnosed_runs(context.project, experiment.id)
    return {"experiment": experiment.id, "written": str(path), "runs_left": left}
