"""Where the work stands, in few words: plan, best score and the
one next step, which hooks, pages and commands all take from here.

Of a score only what pages for everybody show of validation;
never one of held-out.
"""

from harness.artifacts.trees import place_of
from harness.contract.artifacts import INNER_PLAN
from harness.domain.late import Late, dataclass
from harness.domain.plain_text import one_line
from harness.domain.records import Experiment
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    ExperimentStatus,
    GateName,
    HooksMode,
    RunStatus,
    Split,
    Verdict,
)
from harness.evaluation.outcome import OF_PREDICT
from harness.evaluation.scores import (
    counted_runs,
    recorded_evaluations,
)
from harness.gates.alarms import undiagnosed_runs
from harness.ledger.facts import ApprovedPlan, RecordedVerdict
from harness.ledger.project import Project
from harness.projections.state_page import (
    best_figure,
    read_overview,
    tree_words,
)

_LONGEST = 40
GO_ON = "harness try --continue"
"""Does what is due after something was mended, and no more."""


@dataclass(frozen=True)
class NextStep(Late):
    words: str
    """What to do, e.g. "explain the alarm"."""
    command: str
    """The line that does it, or leads on."""
    by_person: bool = False
    """Whether only a person may."""

    @property
    def text(self) -> str:
        """E.g. "explain the alarm: `harness watch exp-0001
        --once`"; a command that says it all stands alone."""
        if self.command.startswith(f"harness {self.words} "):
            return f"`{self.command}`"
        who = " (by a person)" if self.by_person else ""
        return f"{self.words}: `{self.command}`{who}"

    @property
    def line(self) -> str:
        """As commands end with it."""
        return f"next: {self.text}"


def next_step(project: Project, experiment: str | None = None) -> NextStep:
    """What is due for `experiment`, by default for the newest
    undecided one of this working tree."""
    if experiment is not None:
        return _of(project, project.ledger.experiment(experiment))
    undecided = project.undecided()
    return _of(project, undecided[-1] if undecided else None)


def next_steps(project: Project) -> str:
    """For the pages: this tree's next step, then that of each
    other tree with an undecided experiment."""
    lines = [next_step(project).text]
    for other in read_overview(project.ledger).in_work:
        place = place_of(project.layout, other.tree.id) if other.tree else None
        if place is not None and not project.is_here(other):
            lines.append(f"in {tree_words(other)}: {_of(project.at(place), other).text}")
    return "; ".join(lines)


def standing(project: Project, current: Experiment | None) -> dict[str, str]:
    """{plan, best, next, command, text} of the working tree
    whose open experiment is `current`: `next` in a word or
    two, `command` that does it, `text` both; a text is empty
    where there is nothing to say."""
    ledger = project.ledger
    overview = read_overview(ledger)
    step = _of(project, current)
    plan = overview.plan
    return {
        "plan": "" if plan is None else f"{one_line(plan.name, _LONGEST)} v{plan.version}",
        "best": best_figure(ledger, overview),
        "next": step.words,
        "command": step.command,
        "text": step.text.replace("`", ""),
    }


def _of(project: Project, current: Experiment | None) -> NextStep:
    ledger = project.ledger
    if ledger.facts_wait():
        return NextStep("import this clone's facts", "harness ledger import")
    if ledger.plan() is None:
        return _without_plan(project)
    if current is None or current.status in CLOSED_EXPERIMENTS:
        return NextStep("try an idea", 'harness try "IDEA"')
    name = current.id
    if any(run.experiment == name for run in ledger.open_runs()):
        return NextStep("wait for the training", f"harness watch {name}")
    if undiagnosed_runs(project, name):
        return NextStep("explain the alarm", f"harness watch {name} --once")
    versions = [plan for plan in ledger.plans() if plan.name == current.plan]
    if not versions:  # nothing says how to judge it
        return _rejected("decide", name)
    approved, verdict = versions[-1], ledger.latest_verdict(name)
    if current.status is ExperimentStatus.JUDGED and verdict is not None:
        return _after_verdict(project, verdict)
    return _before_verdict(project, approved, name)


def _without_plan(project: Project) -> NextStep:
    """The check leads on from the form as from a plan that is ready. What the file says is not
    looked at: the snapshot is of the ledger, and stands while a plan is written."""
    inner = project.settings.hooks is HooksMode.PLUGIN
    return NextStep("write a plan", "harness plan check" + (f" {INNER_PLAN}" if inner else ""))


def _before_verdict(project: Project, approved: ApprovedPlan, name: str) -> NextStep:
    runs = counted_runs(project.ledger.runs(name))
    done = {run.id for run in runs if run.status is RunStatus.COMPLETED}
    asked = project.ledger.experiment(name).seeds or 0
    if len(done) < max(asked, approved.content["oracle"]["seeds"]):
        if any(run.status is RunStatus.FAILED for run in runs):
            return NextStep("mend the training", go_on(project, name))
        return NextStep("train", f"harness train {name}")
    if _unscored(project, approved, name):
        return _to_evaluate(project, approved, name)
    if not project.layout.experiment(name, "result").is_file():
        command = f"harness experiment result {name} --summary TEXT"
        return NextStep("write the result", command)
    return NextStep("ask the gate", f"harness gate check {name}")


def _to_evaluate(project: Project, approved: ApprovedPlan, name: str) -> NextStep:
    """Predict runs by the code that is registered with a run: mended, it is registered anew."""
    made = recorded_evaluations(project, name, approved, Split.VALIDATION)
    codes = [found.code for one in made if not one.scored for found in one.findings]
    if any(code.startswith(OF_PREDICT) for code in codes):
        return NextStep("mend predict", go_on(project, name))
    return NextStep("evaluate", f"harness evaluate {name}")


def _unscored(project: Project, approved: ApprovedPlan, name: str) -> bool:
    """Whether a completed run that left a checkpoint has no
    value on validation."""
    made = recorded_evaluations(project, name, approved, Split.VALIDATION)
    scored = {one.run for one in made if one.scored}
    finals = {point.run for point in project.ledger.checkpoints(name) if point.final}
    runs = counted_runs(project.ledger.runs(name))
    done = {run.id for run in runs if run.status is RunStatus.COMPLETED}
    return bool((done & finals) - scored)


def _rejected(words: str, name: str) -> NextStep:
    return NextStep(words, f"harness gate reject {name} --reason TEXT", by_person=True)


def go_on(project: Project, name: str) -> str:
    return GO_ON if len(project.undecided()) < 2 else f"harness try {name} --continue"


def _after_verdict(project: Project, verdict: RecordedVerdict) -> NextStep:
    name = verdict.experiment
    if any(found.code == "below_tier" for found in verdict.findings):
        return _rejected("try another hypothesis", name)
    if verdict.verdict is not Verdict.PASS:
        return NextStep("mend what the gate found", go_on(project, name))
    if verdict.gate == GateName.VALIDATION and (verdict.comparison or {}).get("better") is False:
        return _rejected("decide", name)
    # It looks at held-out and asks its gate, where that was not done.
    return NextStep("decide", f"harness keep {name}", by_person=True)
