from dataclasses import dataclass

from harness.contract.phases import PHASE_BY_NAME
from harness.decisions import phases
from harness.domain.statuses import GateMode
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.errors import RefusedError
from harness.ledger.facts import LONGEST_NOTE


@dataclass(frozen=True, kw_only=True)
class RecordPhaseArguments:
    found: str = argument(f"What you found, at most {LONGEST_NOTE} characters.")
    sources: list[str] = argument("What you read: file and place, or address.", default=[])
    reopen: str | None = argument(
        "An earlier phase that has to be done again; `found` says why.",
        default=None,
        enum=list(PHASE_BY_NAME),
    )


@agent_tool(
    "Record what was found in the phase that is due, or open an earlier one again.",
    due="Nothing was recorded for this phase. Call record_phase, or say what is in the way.",
    answers=("phase", "missing", "reopened"),
)
async def record_phase(context: ToolContext, arguments: RecordPhaseArguments) -> Answer:
    project = context.project
    if arguments.reopen is not None:
        mode, _ = project.ledger.gate_mode(project.plan())
        if mode is GateMode.SUPERVISED:
            raise RefusedError(
                "In supervised mode a person opens a phase again.",
                hint="Record what you found without `reopen`, and say there what should be.",
                code="human_verb",
            )
        phases.reopen_phase(
            project, arguments.reopen, by=context.by, reason=arguments.found, agent=True
        )
        view = phases.require_due(project)
        return {"phase": view.name, "missing": list(view.missing), "reopened": arguments.reopen}
    view = phases.note_phase(
        project,
        text=arguments.found,
        sources=arguments.sources,
        by=context.by,
        session=context.session or None,
    )
    return {"phase": view.name, "missing": list(view.missing), "reopened": None}
