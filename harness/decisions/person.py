"""A person's decisions about an experiment; agents cannot reach them."""

from harness.decisions.experiments import decide
from harness.domain.records import Experiment
from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    GateName,
    Split,
    Verdict,
)
from harness.errors import RefusedError, UsageError
from harness.evaluation.scores import recorded_evaluations
from harness.gates.check import standing
from harness.ledger.facts import Decision, RecordedVerdict
from harness.ledger.project import Project
from harness.plans.approved import plan_of


def approve(
    project: Project, experiment: str, *, by: str, reason: str, override: bool = False
) -> list[Decision]:
    """APPROVE and KEEP on a standing PASS of both gates; with `override` OVERRIDE and KEEP.

    Raises RefusedError, and records nothing, when it is kept (already_kept) and, without
    `override`, when it is discarded (already_discarded), another tree's (other_tree), or a PASS is
    missing or stale (validation_not_passed, held_out_not_passed); NotFoundError, UsageError
    (no_reason).
    """
    _require_reason(reason)
    record = project.ledger.experiment(experiment)
    if override:
        _require_not_kept(project, record)
        first, verdict = DecisionKind.OVERRIDE, _newest(project, record.id)
    else:
        record = require_undecided(project, experiment)
        first, verdict = DecisionKind.APPROVE, _passed(project, record)
    return [
        _record(project, record.id, kind, by, reason, verdict)
        for kind in (first, DecisionKind.KEEP)
    ]


def require_undecided(project: Project, experiment: str) -> Experiment:
    """Raises RefusedError (already_kept, already_discarded, other_tree)."""
    record = project.ledger.experiment(experiment)
    _require_not_kept(project, record)
    if record.status is ExperimentStatus.DISCARDED:
        raise _already(
            project,
            record,
            DecisionKind.DISCARD,
            f"Go on from it with `harness experiment new --parent {record.id} --hypothesis TEXT`;"
            " to keep it all the same: `harness gate approve --override`.",
        )
    return project.require_here(record.id)


def _require_not_kept(project: Project, record: Experiment) -> None:
    if record.status is ExperimentStatus.KEPT:
        raise _already(project, record, DecisionKind.KEEP, _done(record))


def reject(project: Project, experiment: str, *, by: str, reason: str) -> list[Decision]:
    """REJECT and DISCARD. Raises RefusedError (already_discarded), and records nothing, when it is
    discarded; NotFoundError, UsageError (no_reason)."""
    _require_reason(reason)
    record = project.ledger.experiment(experiment)
    if record.status is ExperimentStatus.DISCARDED:
        raise _already(project, record, DecisionKind.DISCARD, _done(record))
    verdict = _newest(project, record.id)
    kinds = (DecisionKind.REJECT, DecisionKind.DISCARD)
    return [_record(project, record.id, kind, by, reason, verdict) for kind in kinds]


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise UsageError(
            "The reason is empty; the decision log shows it.",
            hint="Say in a sentence why: --reason TEXT.",
            code="no_reason",
        )


def _done(record: Experiment) -> str:
    return f"Nothing more to do; `harness decisions {record.id}` shows why it was decided so."


def _already(project: Project, record: Experiment, kind: DecisionKind, hint: str) -> RefusedError:
    decided = [
        decision for decision in project.ledger.decisions(record.id) if decision.kind is kind
    ]
    by = f" ({decided[-1].id} by {decided[-1].by})" if decided else ""
    return RefusedError(
        f"{record.id} is {record.status} already{by}.", hint=hint, code=f"already_{record.status}"
    )


def _newest(project: Project, experiment: str) -> RecordedVerdict | None:
    verdicts = project.ledger.verdicts(experiment)
    return verdicts[-1] if verdicts else None


def _passed(project: Project, record: Experiment) -> RecordedVerdict:
    """The standing PASS on held-out. Raises RefusedError for the first gate without one."""
    newest = {gate: project.ledger.latest_verdict(record.id, gate) for gate in GateName}
    for gate, verdict in newest.items():
        worth = None if verdict is None else standing(project, verdict)
        if worth is not Verdict.PASS:
            raise _not_passed(project, record, gate, worth)
    held_out = newest[GateName.HELD_OUT]
    assert held_out is not None  # else it was refused
    return held_out


def _not_passed(
    project: Project, record: Experiment, gate: GateName, worth: Verdict | None
) -> RefusedError:
    why = "it has no verdict yet" if worth is None else f"its latest verdict is {worth}"
    ask = f"`harness gate check {record.id} --gate {gate.value.replace('_', '-')}`"
    if gate is GateName.HELD_OUT and not recorded_evaluations(
        project, record.id, plan_of(project, record), Split.HELD_OUT
    ):
        ask = f"`harness evaluate {record.id} --split held-out`, then {ask}"
    return RefusedError(
        f"{record.id} cannot be approved: on {gate.value.replace('_', '-')} {why}; expected PASS.",
        hint=f"Run {ask}; to keep it all the same, add --override.",
        code=f"{gate}_not_passed",
    )


def _record(
    project: Project,
    experiment: str,
    kind: DecisionKind,
    by: str,
    reason: str,
    verdict: RecordedVerdict | None,
) -> Decision:
    return decide(
        project,
        kind=kind,
        experiment=experiment,
        by=by,
        context=(
            f"the {verdict.gate.replace('_', '-')} gate said {verdict.verdict}"
            if verdict
            else "no gate was asked"
        ),
        choice=f"{kind} {experiment}",
        alternatives="",
        reason=reason,
        confidence="high",
        verdict=verdict.id if verdict else None,
    )
