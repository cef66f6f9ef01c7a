from dataclasses import dataclass

from harness.driver.run_news import RunNews, last_metrics
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import (
    LONGEST_WAIT_S,
    Answer,
    ExperimentArguments,
    agent_tool,
    argument,
)
from harness.gates.alarms import as_news, open_by_run
from harness.plans.approved import objective_of

REPORTED = (
    "experiment",
    "state",
    "seeds_wanted",
    "runs",
    "alarms",
    "findings",
)


@dataclass(frozen=True, kw_only=True)
class RunStatusArguments(ExperimentArguments):
    wait_seconds: float = argument(default=0, minimum=0, maximum=LONGEST_WAIT_S)


@agent_tool(
    "The state of the experiment's runs, with findings. With wait_seconds it waits until they"
    " have ended, an alarm is raised or the time has passed.",
    reads=True,
    answers=REPORTED,
)
async def run_status(context: ToolContext, arguments: RunStatusArguments) -> Answer:
    experiment = context.experiment(arguments.experiment)
    ledger = context.project.ledger
    news = RunNews(context.project, experiment.id, context.tell, alarms=False)
    raised = len(ledger.alarms(experiment.id))

    def ended() -> bool:
        news.look()
        # A new alarm ends the wait too, so that the caller learns of it at once.
        return not context.is_running(experiment.id) or len(ledger.alarms(experiment.id)) > raised

    await context.wait_until(ended, min(arguments.wait_seconds, LONGEST_WAIT_S))
    context.on_change()
    return report(context, experiment.id)


def report(context: ToolContext, experiment: str) -> Answer:
    """The state of the experiment's runs, with open alarms and findings."""
    project = context.project
    runs, layout = project.ledger.runs(experiment), project.layout
    running = context.is_running(experiment)
    return {
        "experiment": experiment,
        "state": "running" if running else "ended" if runs else "not started",
        "seeds_wanted": objective_of(project.plan()).seeds,
        "runs": [
            {
                "run": run.id,
                "seed": run.seed,
                "status": run.status,
                "reason": run.reason,
                "seconds": run.seconds,
                "last_row": last_metrics(project, run),
                "stderr": layout.relative(layout.run(run.experiment, run.id, "stderr")),
            }
            for run in runs
        ],
        "alarms": [
            {
                "run": run,
                "code": alarm.code,
                "rows": [point.row for point in alarm.evidence] or [alarm.row],
                "message": as_news(f"{experiment}/{run}", alarm),
            }
            for run, alarms in open_by_run(project, experiment).items()
            for alarm in alarms
        ],
        "findings": [finding.plain() for run in runs for finding in run.findings],
    }
