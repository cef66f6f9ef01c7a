from dataclasses import dataclass

from harness.decisions.experiments import write_hand_off
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool, argument
from harness.ledger.facts import LONGEST_HAND_OFF


@dataclass(frozen=True, kw_only=True)
class HandOffArguments(ExperimentArguments):
    text: str = argument(f"At most {LONGEST_HAND_OFF} characters.")


@agent_tool(
    "Tell the next session what it needs to know and cannot read elsewhere: what you tried, saw"
    " and left undone. Its briefing shows it as your claim.",
    answers=(
        "experiment",
        "at",
        "page",
    ),
)
async def hand_off(context: ToolContext, arguments: HandOffArguments) -> Answer:
    # A hand-off may be about no experiment, so the current one is not required.
    named = arguments.experiment
    experiment = context.experiment(named).id if named else context.current
    written = write_hand_off(
        context.project,
        text=arguments.text,
        by=context.by,
        session=context.session or None,
        experiment=experiment,
    )
    context.on_change()
    layout = context.project.layout
    return {
        "experiment": written.experiment,
        "at": written.at,
        "page": layout.relative(layout.hand_off(written.at, written.hash)),
    }
