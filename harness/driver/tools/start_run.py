import shlex
from dataclasses import dataclass

from harness.decisions.dead_ends import dead_end
from harness.domain.findings import Finding
from harness.domain.statuses import require_open_experiment
from harness.driver.supervisors import Supervisor
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, ExperimentArguments, agent_tool, argument
from harness.driver.tools.run_status import REPORTED, report
from harness.errors import RefusedError, UsageError
from harness.runs.before_start import configuration_tried_before, would_repeat

REGISTER_SECONDS = 60.0
STARTS = 3
ALONE = "Call run_status with wait_seconds until its state is ended."
BESIDE = (
    "Call run_status once, with wait_seconds 60. If it failed, fix the cause and start it again;"
    " else end your session: the harness follows its training, and others train beside it."
)


@dataclass(frozen=True, kw_only=True)
class StartRunArguments(ExperimentArguments):
    command: str | None = argument("Leave it out for the plan's training entry.", default=None)
    take_from: str | None = argument(
        "For a change of predict alone: nothing is trained, the kept checkpoints of these"
        " experiments are taken, e.g. exp-0001, or exp-0001,exp-0002 for an ensemble.",
        default=None,
    )
    again: str | None = argument(
        "Why the same training is run once more, when start_run said that it was done before.",
        default=None,
    )


@agent_tool(
    "Start training under the harness: one run for each seed, with the code as it is now."
    " Answers at once; seeds that completed with this code are not repeated.",
    due=(
        "No run was started. Call start_run, or say in your last message why this experiment cannot"
        " run."
    ),
    answers=(*REPORTED, "tried_before", "next"),
)
async def start_run(context: ToolContext, arguments: StartRunArguments) -> Answer:
    experiment = context.experiment(arguments.experiment)
    require_open_experiment(experiment.id, experiment.status)
    before = _run_ids(context, experiment.id)
    if not context.is_running(experiment.id):
        _require_new(context, experiment.id, arguments)
        await _start(context, experiment.id, arguments, before)
        context.on_change()
    answer = report(context, experiment.id)
    problem = context.supervisor.problem() if context.supervisor is not None else None
    if problem is not None and _run_ids(context, experiment.id) <= before:
        raise UsageError(problem["message"], hint=problem["hint"], code=problem["code"])
    told = " ".join(one.message for one in _tried_before(context, experiment.id))
    return {**answer, "tried_before": told, "next": BESIDE if context.parallel > 1 else ALONE}


def _require_new(context: ToolContext, experiment: str, arguments: StartRunArguments) -> None:
    """A dead end is told before it is run; both, and what follows, are decisions. Raises
    RefusedError (configuration_tried_before)."""
    if arguments.take_from:
        return
    words = shlex.split(arguments.command) if arguments.command else None
    found = would_repeat(context.project, experiment, words)
    if not found:
        return
    again = (arguments.again or "").strip()
    dead_end(
        context.project,
        found[0],
        experiment=experiment,
        by=context.by,
        choice="Train it all the same." if again else "Not started: it was told first.",
        reason=again or found[0].message,
    )
    if not again:
        raise RefusedError(
            found[0].message,
            hint=f"{found[0].hint} Or say in `again` why it is worth its minutes.",
            code=found[0].code,
        )


def _tried_before(context: ToolContext, experiment: str) -> list[Finding]:
    """Of the code and the configuration of its newest run."""
    runs = context.project.ledger.runs(experiment)
    if not runs or runs[-1].taken_from:
        return []
    newest = runs[-1]
    return configuration_tried_before(
        context.project,
        experiment,
        code=newest.code,
        argv=newest.argv,
        config=newest.config,
        data=newest.data,
    )


async def _start(
    context: ToolContext, experiment: str, arguments: StartRunArguments, before: set[str]
) -> None:
    """Start a supervisor and wait until it has registered a run or ended without one."""
    words = shlex.split(arguments.command) if arguments.command else None
    taken = [f"--from={arguments.take_from}"] if arguments.take_from else []

    def registered() -> bool:
        return not _run_ids(context, experiment) <= before

    def registered_or_ended() -> bool:
        return registered() or context.supervisor is None or context.supervisor.ended()

    for _ in range(STARTS):
        # On the context before the wait: the loop follows its runs even if this call is cut.
        context.supervisor = Supervisor.start(
            context.project,
            experiment,
            words,
            sandbox=context.sandbox,
            session=context.session or None,
            verb=("train", *taken),
            slots=context.parallel,
        )
        await context.wait_until(registered_or_ended, REGISTER_SECONDS)
        # Killed before it registered a run: nothing was begun, so it is safe to start again.
        if registered() or not context.supervisor.killed():
            return


def _run_ids(context: ToolContext, experiment: str) -> set[str]:
    return {run.id for run in context.project.ledger.runs(experiment)}
