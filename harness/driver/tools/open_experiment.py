from dataclasses import dataclass

from harness.decisions import experiments
from harness.decisions.dead_ends import dead_end, tried_before
from harness.domain.records import Experiment
from harness.driver.tool_context import ToolContext
from harness.driver.tools.definition import Answer, agent_tool, argument
from harness.errors import RefusedError
from harness.plans.approved import data_told


@dataclass(frozen=True, kw_only=True)
class OpenExperimentArguments:
    hypothesis: str = argument("One line.")
    rationale: str = argument("Why it should hold.")


@agent_tool(
    "Open an experiment with one hypothesis that its result can refute; only one can be open."
    " Answers its id and the files that you write for it.",
    answers=(
        "experiment",
        "status",
        "parent",
        "project",
        "data",
        "folder",
        "write",
        "tried_before",
    ),
)
async def open_experiment(context: ToolContext, arguments: OpenExperimentArguments) -> Answer:
    experiment = _own_experiment(context, arguments) or experiments.open_experiment(
        context.project,
        hypothesis=arguments.hypothesis,
        rationale=arguments.rationale,
        parent=context.parent,
        by=context.by,
        session=context.session or None,
        parallel=context.parallel,
    )
    context.current = experiment.id
    context.on_change()
    before = tried_before(context.project, experiment)
    for found in before:
        dead_end(
            context.project,
            found,
            experiment=experiment.id,
            by=context.by,
            choice="Told before anything is trained.",
            reason=found.message,
        )
    layout, plan = context.project.layout, context.project.ledger.plan()
    return {
        "experiment": experiment.id,
        "status": experiment.status,
        "parent": experiment.parent,
        "project": str(layout.root),
        "tried_before": " ".join(found.message for found in before),
        "data": "" if plan is None else data_told(plan),
        "folder": str(layout.experiment(experiment.id)),
        "write": [
            str(layout.experiment(experiment.id, artifact.name)) for artifact in context.role.owns
        ],
    }


def _own_experiment(context: ToolContext, arguments: OpenExperimentArguments) -> Experiment | None:
    """The experiment that the session already has; its hypothesis stays."""
    if context.current is None:
        return None
    current = context.project.ledger.experiment(context.current)
    if " ".join(arguments.hypothesis.split()) != current.hypothesis:
        raise RefusedError(
            f"This session's experiment is {current.id}; its hypothesis is {current.hypothesis!r}.",
            hint=(
                "Continue with it: call start_run, or open_experiment with exactly that hypothesis."
            ),
            code="experiment_undecided",
        )
    experiments.ensure_hypothesis(context.project, current, arguments.rationale)
    return current
