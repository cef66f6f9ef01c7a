"""What moves an experiment: open it, record its result, decide."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.artifacts.content import write_below
from harness.artifacts.experiment_files import render_hypothesis, render_result
from harness.artifacts.trees import this_tree
from harness.contract.roles import ROLE_BY_NAME
from harness.domain.plain_text import inline, one_line, plain
from harness.domain.records import Experiment
from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    Verdict,
    require_experiment_transition,
    require_open_experiment,
)
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.facts import ApprovedPlan, Decision, HandOff, HandOffWritten
from harness.ledger.project import Project
from harness.traces.secrets import without_secrets

AGENTS = frozenset(ROLE_BY_NAME)
PERSONS = frozenset(
    {
        DecisionKind.APPROVE,
        DecisionKind.REJECT,
        DecisionKind.OVERRIDE,
        DecisionKind.PROMOTE,
        DecisionKind.ROLLBACK,
        DecisionKind.LOWER,
        DecisionKind.MODE,
    }
)
"""What only a person decides."""
MOVES = {
    DecisionKind.KEEP: ExperimentStatus.KEPT,
    DecisionKind.DISCARD: ExperimentStatus.DISCARDED,
    DecisionKind.CANCEL: ExperimentStatus.DISCARDED,
    DecisionKind.ROLLBACK: ExperimentStatus.DISCARDED,
    DecisionKind.ITERATE: ExperimentStatus.OPEN,
}
"""The status that a decision gives its experiment; the other kinds leave it."""
CONFIDENCE = ("high", "medium", "low")
_LONGEST = 500


def open_experiment(
    project: Project,
    *,
    hypothesis: str,
    rationale: str,
    parent: str | None,
    by: str,
    session: str | None = None,
    seeds: int | None = None,
    parallel: int | None = 1,
) -> Experiment:
    """Open the next experiment, with its folder and hypothesis.md.

    The same hypothesis and parent again give the same experiment while it is open and has no run:
    a session that was cut may ask again. `seeds`: of a baseline, how many it has. `parallel`: how
    many of this tree may be open at once; None: any number.

    Raises RefusedError (experiment_undecided, budget_spent,
    no_plan), NotFoundError for an unknown parent, UsageError for a hypothesis that is empty, too
    long or a placeholder.
    """
    line = _one_line(hypothesis)
    _require_text("rationale", rationale)
    approved = project.plan()
    if parent is not None:
        project.ledger.experiment(parent)
    repeated = _same_again(project, line, parent, seeds)
    if repeated is None:

        def reserve(identifier: str) -> bool:
            # Inside the transaction: nobody opens one meanwhile.
            require_room(project, approved, parallel)
            return _make_folder(project.layout.experiment(identifier))

        repeated = project.ledger.open_experiment(
            hypothesis=line,
            parent=parent,
            by=by,
            session=session,
            reserve=reserve,
            tree=this_tree(project.layout),
            seeds=seeds,
        )
    ensure_hypothesis(project, repeated, rationale)
    return repeated


def ensure_hypothesis(project: Project, experiment: Experiment, rationale: str) -> None:
    """Write hypothesis.md when it is missing: the experiment is a fact before it has files, and a
    kill may fall in between."""
    path = project.layout.experiment(experiment.id, "hypothesis")
    if not path.exists():
        text = render_hypothesis(
            experiment=experiment.id,
            parent=experiment.parent,
            hypothesis=experiment.hypothesis,
            rationale=rationale,
        )
        write_file(project, path, text)


def record_result(
    project: Project,
    experiment: str,
    *,
    claims: Mapping[str, str | float],
    summary: str,
    shortfalls: Sequence[str],
    by: str,
) -> Path:
    """Write result.md; until the experiment is decided it may be written again.

    Raises NotFoundError, RefusedError for a decided experiment, UsageError for a claim that is no
    plain number.
    """
    require_open(project, experiment, "result")
    _require_text("summary", summary)
    text = render_result(
        experiment=experiment, claims=claims, summary=summary, shortfalls=shortfalls, by=by
    )
    path = project.layout.experiment(experiment, "result")
    write_file(project, path, text)
    return path


def write_file(project: Project, path: Path, text: str) -> None:
    """One of an experiment's. Raises RefusedError (session_over) for a tool whose session ended."""
    project.ledger.require_session()
    write_below(project.layout.root, path, text)


def require_open(project: Project, experiment: str, what: str) -> None:
    """Raises RefusedError when the experiment is decided: its `what` must stay; or when it is
    another tree's (other_tree)."""
    status = project.require_here(experiment).status
    require_open_experiment(experiment, status, f"its {what} stands")


def decide(
    project: Project,
    *,
    kind: DecisionKind | str,
    experiment: str | None,
    by: str,
    context: str,
    choice: str,
    alternatives: str,
    reason: str,
    confidence: str,
    verdict: str | None = None,
    supersedes: str | None = None,
) -> Decision:
    """Record a decision and give the experiment the status that follows.

    After a kill in between, the same call finishes it without a second decision. Raises
    RefusedError when an agent takes a person's decision, or for a KEEP without a PASS or an
    OVERRIDE; TransitionError when the status forbids the move; NotFoundError for an unknown
    experiment or verdict; UsageError for another confidence. Nothing is recorded then.
    """
    what = DecisionKind(kind)
    _require_allowed(project, what, experiment, by, confidence, verdict)
    after = _next_status(project, what, experiment)
    earlier = _unfinished(project, what, experiment, by, verdict, reason) if after else None
    # The fact first, then the move: after a kill in between, `_unfinished` finds the fact.
    decision = earlier or project.ledger.record_decision(
        kind=what.value,
        experiment=experiment,
        by=by,
        context=context,
        choice=choice,
        alternatives=alternatives,
        reason=reason,
        confidence=confidence,
        verdict=verdict,
        supersedes=supersedes,
    )
    if experiment is not None and after is not None:
        project.ledger.move_experiment(experiment, after, f"{decision.id}: {decision.kind}")
    return decision


def _next_status(
    project: Project, kind: DecisionKind, experiment: str | None
) -> ExperimentStatus | None:
    """The experiment's new status; None when it has it, or the kind moves nothing."""
    after = MOVES.get(kind)
    if experiment is None or after is None:
        return None
    before = project.ledger.experiment(experiment).status
    if before is after:
        return None
    require_experiment_transition(experiment, before, after)
    return after


def _require_text(name: str, value: object) -> None:
    """Arguments of agents' tools come as any JSON."""
    if not isinstance(value, str):
        raise UsageError(
            f"{name} is {value!r:.60}; expected text.", hint=f"Pass {name} as one string."
        )


def _one_line(hypothesis: str) -> str:
    _require_text("hypothesis", hypothesis)
    line = one_line(hypothesis)
    if not line or len(line) > _LONGEST or line.upper().startswith(("TODO", "TBD")):
        shown = line if len(line) <= 40 else line[:37] + "..."
        raise UsageError(
            f"The hypothesis is {shown!r} ({len(line)} characters); expected 1 to {_LONGEST} that"
            " say what is tried.",
            hint=(
                "Say in one line what is changed and what it should do; details belong in the"
                " rationale."
            ),
        )
    return line


def _same_again(
    project: Project, line: str, parent: str | None, seeds: int | None
) -> Experiment | None:
    for experiment in project.undecided():
        same = line in (experiment.hypothesis, inline(experiment.hypothesis))  # as it was told
        same = same and experiment.status is ExperimentStatus.OPEN
        same = same and (experiment.parent, experiment.seeds) == (parent, seeds)
        if same and not project.ledger.runs(experiment.id):
            project.layout.experiment(experiment.id).mkdir(parents=True, exist_ok=True)
            return experiment
    return None


def undecided_experiment(project: Project) -> Experiment | None:
    """The one of this tree that is neither kept nor discarded."""
    undecided = project.undecided()
    return undecided[-1] if undecided else None


def require_room(project: Project, approved: ApprovedPlan, parallel: int | None = 1) -> None:
    """Raises RefusedError (experiment_undecided, budget_spent) where none can be opened now."""
    plan, limit = approved.name, int(approved.content["budget"]["experiments"])
    undecided = project.undecided()
    if parallel is not None and len(undecided) >= parallel:
        waiting = undecided[-1]
        most = "one experiment" if parallel == 1 else f"{parallel} experiments"
        raise RefusedError(
            f"{waiting.id} is {waiting.status} and not decided; only {most} of a working"
            " tree can be open.",
            hint=(
                f"Go on with {waiting.id} (by hand: `harness try --continue`), or discard it:"
                f" `harness gate reject {waiting.id} --reason ...`."
            ),
            code="experiment_undecided",
        )
    opened = sum(project.ledger.counts(plan)["experiments"].values())
    if opened >= limit:
        raise RefusedError(
            f"The plan {plan} allows {limit} experiments and {opened} were opened.",
            hint="A person may approve the plan with a larger budget.experiments.",
            code="budget_spent",
        )


def _make_folder(folder: Path) -> bool:
    """Make `folder`; False when something is there, e.g. the folder of an earlier ledger."""
    # An empty folder is what a kill between the folder and its fact left, and is taken: the
    # ledger's write lock is held, so nobody else is between the two now.
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
    return True


def _require_allowed(
    project: Project,
    kind: DecisionKind,
    experiment: str | None,
    by: str,
    confidence: str,
    verdict: str | None,
) -> None:
    if confidence not in CONFIDENCE:
        raise UsageError(
            f"The confidence is {confidence!r}; expected {', '.join(CONFIDENCE)}.",
            hint="Use one of them.",
        )
    if kind in PERSONS and by in AGENTS:
        raise RefusedError(
            f"{by} cannot decide {kind}: that is a person's.",
            hint="Ask the person to run `harness gate`.",
            code="human_verb",
        )
    if experiment is None:
        if kind in MOVES:
            raise UsageError(f"{kind} needs the experiment that it is about.", hint="Pass its id.")
        return
    verdicts = {one.id: one for one in project.ledger.verdicts(experiment)}
    if verdict is not None and verdict not in verdicts:
        raise NotFoundError(
            f"{experiment} has no verdict {verdict!r}.",
            hint=f"`harness experiment show {experiment}` lists them.",
        )
    if kind is not DecisionKind.KEEP:
        return
    passed = verdict is not None and verdicts[verdict].verdict is Verdict.PASS
    overridden = any(
        one.kind is DecisionKind.OVERRIDE for one in project.ledger.decisions(experiment)
    )
    if not passed and not overridden:
        raise RefusedError(
            f"{experiment} cannot be kept: the decision rests on no PASS.",
            hint=f"Run `harness gate check {experiment}`; a person may override it.",
            code="keep_without_pass",
        )


def _unfinished(
    project: Project,
    kind: DecisionKind,
    experiment: str | None,
    by: str,
    verdict: str | None,
    reason: str,
) -> Decision | None:
    """The newest decision, when it is this one and its move did not happen."""
    decisions = project.ledger.decisions(experiment)
    decisions = [one for one in decisions if one.kind is not DecisionKind.LOWER]
    if not decisions:
        return None
    last = decisions[-1]
    # The reason too: a second decision of the same kind for another reason is a new one.
    # As it was recorded: facts hold plain text.
    same = (last.kind, last.by, last.verdict, last.reason) == (
        *(kind, plain(by), verdict, plain(reason)),
    )
    return last if same and not project.ledger.moved_after(last.id, experiment) else None


def write_hand_off(
    project: Project, *, text: str, by: str, session: str | None, experiment: str | None = None
) -> HandOff:
    """Record `text` for the next session's briefing, by default about the undecided experiment,
    without keys in known forms: the page of it is kept with the project.

    Raises UsageError for a text that is empty or too long, NotFoundError for an unknown experiment.
    """
    if experiment is None:
        current = undecided_experiment(project)
        experiment = current.id if current else None
    stripped = (
        without_secrets(plain(text)).strip() if isinstance(text, str) else text
    )  # of an agent's tool it is any JSON
    fact = HandOffWritten(by=by, session=session, text=stripped, experiment=experiment)
    stored = project.ledger.append(fact)
    return HandOff(**fact.body(), at=stored.at, hash=stored.hash)
