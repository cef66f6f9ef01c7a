"""What a person decides about an experiment; agents have no way here."""

from harness.audit.check import standing
from harness.domain.records import Decision
from harness.domain.statuses import DecisionKind, Verdict
from harness.errors import RefusedError
from harness.project.context import Project
from harness.project.experiments import decide


def approve(project: Project, experiment: str, *, by: str, reason: str, override: bool = False) -> list[Decision]:
    """APPROVE and KEEP on a verdict PASS; with `override` OVERRIDE and KEEP whatever the verdict.

    Raises RefusedError when the latest verdict is not PASS, or is stale, and `override` is off, NotFoundError for an
    unknown id.
    """
    found = project.ledger.experiment(experiment)
    verdicts = project.ledger.verdicts(found.id)
    latest = verdicts[-1] if verdicts else None
    stands = None if latest is None or override else standing(project, latest)
    if not override and stands is not Verdict.PASS:
        said = "it has no verdict yet" if stands is None else f"its latest verdict is {stands}"
        raise RefusedError(
            f"{found.id} cannot be approved: {said}; expected PASS.",
            mend=f"Run `harness gate check {found.id}`; to keep it all the same, add --override.",
        )
    first = DecisionKind.OVERRIDE if override else DecisionKind.APPROVE
    return [_record(project, found.id, kind, by, reason) for kind in (first, DecisionKind.KEEP)]


def reject(project: Project, experiment: str, *, by: str, reason: str) -> list[Decision]:
    """REJECT and DISCARD. Raises NotFoundError for an unknown id."""
    found = project.ledger.experiment(experiment)
    return [_record(project, found.id, kind, by, reason) for kind in (DecisionKind.REJECT, DecisionKind.DISCARD)]


def _record(project: Project, experiment: str, kind: DecisionKind, by: str, reason: str) -> Decision:
    verdicts = project.ledger.verdicts(experiment)
    latest = verdicts[-1] if verdicts else None
    return decide(
        project,
        kind=kind,
        experiment=experiment,
        by=by,
        context=f"the {latest.gate} gate said {latest.verdict}" if latest else "no gate was asked",
        choice=f"{kind} {experiment}",
        alternatives="",
        reason=reason,
        confidence="high",
        verdict=latest.id if latest else None,
    )
