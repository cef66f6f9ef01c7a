"""Where the work stands, in the few words that hooks show a
person: plan, best score, next step.

Of a score only what pages for everybody show of validation;
never one of held-out.
"""

from harness.contract.artifacts import INNER_PLAN
from harness.domain.plain_text import one_line
from harness.domain.records import Experiment
from harness.domain.statuses import (
    ExperimentStatus,
    GateName,
    HooksMode,
    RunStatus,
    Split,
    Verdict,
)
from harness.gates.alarms import undiagnosed_runs
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.projections.scores import shown_score
from harness.projections.state_page import Overview, best_figure, read_overview

_LONGEST = 40


def standing(project: Project, current: Experiment | None) -> dict[str, str]:
    """{plan, best, next, command} of the working tree whose
    open experiment is `current`: `next` in a word or two,
    `command` that does it; a text is empty where there is
    nothing to say."""
    ledger = project.ledger
    overview = read_overview(ledger)
    word, command = _next(project, overview, current)
    plan = overview.plan
    return {
        "plan": "" if plan is None else f"{one_line(plan.name, _LONGEST)} v{plan.version}",
        "best": best_figure(ledger, overview),
        "next": word,
        "command": command,
    }


def _next(project: Project, overview: Overview, current: Experiment | None) -> tuple[str, str]:
    if project.ledger.facts_wait():
        return "import this clone's facts", "harness ledger import"
    if overview.plan is None:
        return _without_plan(project)
    if current is None:
        return "open an experiment", "harness experiment new --hypothesis TEXT"
    if any(run.experiment == current.id for run in overview.open_runs):
        return "wait for the training", f"harness watch {current.id}"
    if undiagnosed_runs(project, current.id):
        return "explain the alarm", f"harness watch {current.id} --once"
    if current.status is ExperimentStatus.JUDGED:
        return _after_verdict(project, current)
    runs = project.ledger.runs(current.id)
    done = {run.seed for run in runs if run.status is RunStatus.COMPLETED}
    if len(done) < plan_of(project, current).content["oracle"]["seeds"]:
        return "train", f"harness train {current.id}"
    if shown_score(project.ledger.summary(current.id), Split.VALIDATION) is None:
        return "evaluate", f"harness evaluate {current.id}"
    return "ask the gate", f"harness gate check {current.id}"


def _without_plan(project: Project) -> tuple[str, str]:
    """The check leads on from the form as from a plan that is ready. What the file says is not
    looked at: the snapshot is of the ledger, and stands while a plan is written."""
    inner = project.settings.hooks is HooksMode.PLUGIN
    return "write a plan", "harness plan check" + (f" {INNER_PLAN}" if inner else "")


def _after_verdict(project: Project, current: Experiment) -> tuple[str, str]:
    """As `harness gate check` says it."""
    verdict, check = project.ledger.latest_verdict(current.id), f"harness gate check {current.id}"
    if verdict is None or verdict.verdict is not Verdict.PASS:
        return "mend what the gate found", check
    # `keep` looks at held-out and asks its gate, where that was not done.
    if verdict.gate == GateName.VALIDATION and (verdict.comparison or {}).get("better") is False:
        return "decide", f"harness gate reject {current.id} --reason TEXT"
    return "decide", f"harness keep {current.id}"
