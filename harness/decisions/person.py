"""What a person decides about an experiment; agents have no way here."""

from harness.decisions.experiments import decide
from harness.domain.records import Experiment
from harness.domain.statuses import DecisionKind, ExperimentStatus, GateName, Split, Verdict
from harness.errors import RefusedError, UsageError
from harness.evaluation.scores import counted_evaluations
from harness.gates.check import standing
from harness.ledger.facts import Decision, RecordedVerdict
from harness.ledger.project import Project
from harness.plans.approved import plan_of


def approve(
    project: Project, experiment: str, *, by: str, reason: str, override: bool = False
) -> list[Decision]:
    """APPROVE and KEEP on a PASS of both gates that stands; with `override` OVERRIDE and KEEP
    whatever they said.

    Raises RefusedError, and nothing is recorded, when it is kept already (already_kept) and, while
    `override` is off, when it is discarded (already_discarded) or a PASS is missing or stale
    (validation_not_passed, held_out_not_passed); NotFoundError for an unknown id, UsageError
    (no_reason) without a reason.
    """
    _require_reason(reason)
    record = project.ledger.experiment(experiment)
    if record.status is ExperimentStatus.KEPT:
        raise _already(project, record, DecisionKind.KEEP, _done(record))
    if override:
        first, verdict = DecisionKind.OVERRIDE, _newest(project, record.id)
    elif record.status is ExperimentStatus.DISCARDED:
        raise _already(
            project,
            record,
            DecisionKind.DISCARD,
            f"Go on from it with `harness experiment new --parent {record.id} --hypothesis TEXT`; to"
            " keep it all the same, add --override.",
        )
    else:
        first, verdict = DecisionKind.APPROVE, _passed(project, record)
    return [
        _record(project, record.id, kind, by, reason, verdict)
        for kind in (first, DecisionKind.KEEP)
    ]


def reject(project: Project, experiment: str, *, by: str, reason: str) -> list[Decision]:
    """REJECT and DISCARD. Raises RefusedError (already_discarded), and nothing is recorded, when
    it is discarded already, NotFoundError for an unknown id, UsageError (no_reason) without a
    reason."""
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
            "The reason is empty; it stands in the decision log for whoever asks why.",
            hint="Say in a sentence why: --reason TEXT.",
            code="no_reason",
        )


def _done(found: Experiment) -> str:
    return f"Nothing more to do; `harness decisions {found.id}` shows why it was decided so."


def _already(project: Project, found: Experiment, kind: DecisionKind, hint: str) -> RefusedError:
    decided = [decision for decision in project.ledger.decisions(found.id) if decision.kind is kind]
    by = f" ({decided[-1].id} by {decided[-1].by})" if decided else ""
    return RefusedError(
        f"{found.id} is {found.status} already{by}.", hint=hint, code=f"already_{found.status}"
    )


def _newest(project: Project, experiment: str) -> RecordedVerdict | None:
    verdicts = project.ledger.verdicts(experiment)
    return verdicts[-1] if verdicts else None


def _passed(project: Project, found: Experiment) -> RecordedVerdict:
    """The PASS on held-out that stands; it rests on one on validation. Raises RefusedError for the
    first missing."""
    newest = {gate: project.ledger.latest_verdict(found.id, gate) for gate in GateName}
    for gate, verdict in newest.items():
        worth = None if verdict is None else standing(project, verdict)
        if worth is not Verdict.PASS:
            raise _not_passed(project, found, gate, worth)
    held_out = newest[GateName.HELD_OUT]
    assert held_out is not None  # else it was refused
    return held_out


def _not_passed(
    project: Project, found: Experiment, gate: GateName, worth: Verdict | None
) -> RefusedError:
    said = "it has no verdict yet" if worth is None else f"its latest verdict is {worth}"
    ask = f"`harness gate check {found.id} --gate {gate.value.replace('_', '-')}`"
    if gate is GateName.HELD_OUT and not counted_evaluations(
        project, found.id, plan_of(project, found), Split.HELD_OUT
    ):
        ask = f"`harness evaluate {found.id} --split held-out`, then {ask}"
    return RefusedError(
        f"{found.id} cannot be approved: on {gate.value.replace('_', '-')} {said}; expected PASS.",
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
