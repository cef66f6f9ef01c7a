"""The gates: the checks of each, and the verdict of their findings, recorded when it is a new one.

Validation: the experiment kept its contract, and its recomputed score reaches the plan's tier.
Held-out: that PASS still stands, and the score reaches the tier on rows that nobody trained for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.domain.findings import Finding
from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus, GateName, Split, Verdict
from harness.errors import RefusedError
from harness.evaluation.comparison import released_comparison
from harness.evaluation.outcome import more_bits
from harness.evaluation.release import beside_older, has_room, release
from harness.evaluation.released import bits_limit
from harness.evaluation.scores import recorded_evaluations
from harness.gates import alarms, artifacts, scores
from harness.gates.collect import changed, collect
from harness.gates.evidence import GateEvidence, GateOutcome
from harness.gates.findings import finding, outcome_of
from harness.guard.control_files import CHANGED
from harness.ledger.facts import ApprovedPlan, RecordedVerdict, TamperingNoticed
from harness.ledger.project import Project
from harness.plans.approved import plan_of, secret
from harness.plans.judge import require_judge

_NOTICED = {
    "plan_changed",
    "scorer_changed",
    "split_changed",
    "metrics_changed",
    "status_changed",
    "checkpoint_changed",
    CHANGED,
}
_EXPERIMENT = re.compile(r"\bEXP\b")
Check = Callable[[GateEvidence], Iterable[Finding]]


def check_gate(
    project: Project,
    experiment: str,
    gate: GateName | None = None,
    *,
    transcripts: Sequence[Path] = (),
) -> RecordedVerdict:
    """The verdict of `gate`, by default `due_gate`, on the experiment as it is now.

    It is recorded only when evidence or outcome differ from the last one's, and the experiment
    becomes judged. For a decided one nothing is recorded, and the answer has no id. `transcripts`:
    folders to look in for the session that changed a control file. Raises NotFoundError for an
    unknown experiment and RefusedError without a plan, with another judge (judge_changed), or for
    one of another tree (other_tree).
    """
    record = project.ledger.experiment(experiment)
    if record.status not in CLOSED_EXPERIMENTS:
        project.require_here(experiment)
        require_judge(project)
    asked = gate if gate is not None else due_gate(project, record.id)
    approved = plan_of(project, record)
    if record.status not in CLOSED_EXPERIMENTS:
        # A reference that changed since the look makes another answer of it.
        for split in Split:
            release(project, record.id, approved, split)
    with project.ledger.snapshot():
        evidence = collect(project, record.id, asked, transcripts)
        comparison = released_comparison(project, record, approved)
        spent = _bits_spent(project, record, approved, Split(asked.value))
        older = _beside_older(project, record, approved, Split(asked.value))
    evidence = replace(evidence, comparison=comparison, way_out=spent, beside_older=older)
    outcome = judge(evidence)
    # A decided experiment's verdict is history, and a clone has neither checkpoints nor vault: what
    # it lacks must not be recorded.
    if record.status in CLOSED_EXPERIMENTS:
        return _shown(evidence, outcome)
    _notice(project, outcome.findings)
    verdict = _same(project, evidence, outcome)
    if verdict is None:
        verdict = project.ledger.record_verdict(**_fields(evidence, outcome))
    if record.status is not ExperimentStatus.JUDGED and not _running(evidence):
        project.ledger.move_experiment(
            record.id, ExperimentStatus.JUDGED, f"{verdict.id}: {asked} {verdict.verdict}"
        )
    return verdict


def _bits_spent(
    project: Project, record: Experiment, approved: ApprovedPlan, split: Split
) -> str | None:
    """What leads on when the plan's bits do not reach for a look."""
    if not secret(approved, split.value) or has_room(project, record.id, approved, split):
        return None
    return more_bits(approved.path, bits_limit(approved), record.id)


def _beside_older(
    project: Project, record: Experiment, approved: ApprovedPlan, split: Split
) -> str | None:
    """What leads on when the bits do not reach for a reference that changed."""
    if record.status in CLOSED_EXPERIMENTS:
        return None  # history: nothing is compared again
    if not beside_older(project, record.id, approved, split):
        return None
    return more_bits(approved.path, bits_limit(approved), record.id)


def due_gate(project: Project, experiment: str) -> GateName:
    """Validation, until held-out was evaluated under the plan in force."""
    approved = plan_of(project, project.ledger.experiment(experiment))
    on_held_out = recorded_evaluations(project, experiment, approved, Split.HELD_OUT)
    return GateName.HELD_OUT if on_held_out else GateName.VALIDATION


def require_validation_passed(project: Project, experiment: str) -> None:
    """Raises RefusedError (validation_not_passed) unless a PASS on validation stands: every look at
    held-out rows wears them out."""
    newest = project.ledger.latest_verdict(experiment, GateName.VALIDATION)
    standing_now = "none yet" if newest is None else standing(project, newest).value
    if standing_now != Verdict.PASS:
        raise RefusedError(
            f"{experiment} cannot be evaluated on held-out: its validation verdict is"
            f" {standing_now}; expected PASS.",
            hint=f"Run `harness gate check {experiment} --gate validation`.",
            code="validation_not_passed",
        )


def standing(project: Project, verdict: RecordedVerdict) -> Verdict:
    """The verdict, or STALE when something that it read has changed; what another tree's verdict
    read is there, so here it stands as it was recorded."""
    if not project.is_here(project.ledger.experiment(verdict.experiment)):
        return verdict.verdict
    return Verdict.STALE if changed(project, verdict) else verdict.verdict


def _running(evidence: GateEvidence) -> bool:
    return any(of_run.run.ended_at is None for of_run in evidence.runs)


def _fields(evidence: GateEvidence, outcome: GateOutcome) -> dict[str, Any]:
    return {
        "experiment": evidence.experiment.id,
        "gate": evidence.gate.value,
        "verdict": outcome.verdict.value,
        "findings": outcome.findings,
        "evidence": dict(evidence.hashes),
        "score": None if outcome.score is None else dict(outcome.score),
        "tier": None if outcome.tier is None else outcome.tier.value,
        "comparison": None if outcome.comparison is None else dict(outcome.comparison),
        "shortfall": evidence.shortfall,
        "notes": [f"{run.name}: {note}" for run in evidence.runs for note in run.notes],
        "next_planned": evidence.next_planned,
    }


def _shown(evidence: GateEvidence, outcome: GateOutcome) -> RecordedVerdict:
    fields = _fields(evidence, outcome)
    plain = ("experiment", "gate", "evidence", "score", "comparison", "shortfall", "next_planned")
    return RecordedVerdict(
        verdict_id="",
        at="",
        verdict=outcome.verdict,
        tier=outcome.tier,
        findings=outcome.findings,
        notes=tuple(fields["notes"]),
        **{name: fields[name] for name in plain},
    )


def _same(
    project: Project, evidence: GateEvidence, outcome: GateOutcome
) -> RecordedVerdict | None:
    """The last verdict of this gate, when it read and says the same."""
    last = project.ledger.latest_verdict(evidence.experiment.id, evidence.gate)
    if (
        last is None
        or last.evidence != dict(evidence.hashes)
        or (last.verdict, last.tier) != (outcome.verdict, outcome.tier)
    ):
        return None
    before = [_identity(finding) for finding in last.findings]
    return last if before == [_identity(finding) for finding in outcome.findings] else None


def _identity(finding: Finding) -> tuple[str, Any]:
    """A finding without its words."""
    # The sessions named beside a changed control file depend on the transcripts at hand.
    return finding.code, finding.data.get("path") if finding.code == CHANGED else dict(
        finding.data
    )


def _notice(project: Project, findings: tuple[Finding, ...]) -> None:
    """Record once what is no longer as it was frozen or hashed."""
    known = {
        (fact.what, fact.path, fact.expected, fact.actual) for fact in project.ledger.tampering()
    }
    for noticed in findings:
        data = noticed.data
        key = (noticed.code, data.get("path"), data.get("expected"), data.get("actual"))
        if (
            noticed.code not in _NOTICED
            or not all(isinstance(part, str) for part in key)
            or key in known
        ):
            continue
        what, path, expected, actual = (str(part) for part in key)
        project.ledger.append(
            TamperingNoticed(what=what, path=path, expected=expected, actual=actual)
        )
        known.add((what, path, expected, actual))


def frozen(evidence: GateEvidence) -> Iterator[Finding]:
    """Plan, scorer and splits are as approved, control files as accepted, records untouched."""
    yield from evidence.frozen_changes
    yield from evidence.approved_since
    yield from evidence.tampering
    yield from evidence.control_changes


def taught(evidence: GateEvidence) -> Iterator[Finding]:
    """What active priors ask for holds."""
    yield from evidence.taught


def ignored_seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """No two seeds gave the same weights."""
    yield from evidence.ignored_seeds


def validated(evidence: GateEvidence) -> Iterator[Finding]:
    """The newest validation verdict is PASS, and nothing that it read has changed."""
    reference = evidence.validation
    if reference is None or reference.verdict is None:
        yield finding(
            "validation_not_passed", f"{evidence.experiment.id} has no verdict on validation."
        )
        return
    if reference.verdict.verdict is not Verdict.PASS:
        yield finding(
            "validation_not_passed",
            f"{evidence.experiment.id} is {reference.verdict.verdict} on validation"
            f" ({reference.verdict.id}).",
        )
    if reference.changed:
        yield finding(
            "validation_stale",
            f"Changed since {reference.verdict.id}: {', '.join(reference.changed)}.",
            changed=list(reference.changed),
        )


VALIDATION: tuple[Check, ...] = (
    artifacts.bypass,
    frozen,
    artifacts.seeds,
    artifacts.supervisor_findings,
    artifacts.files,
    artifacts.configuration,
    taught,
    artifacts.run_files,
    artifacts.row_times,
    artifacts.checkpoints,
    artifacts.cadence,
    artifacts.launches,
    alarms.undiagnosed,
    ignored_seeds,
    scores.evaluations,
    scores.libraries,
    scores.isolation,
    scores.contamination,
    scores.reference_seeds,
    scores.reference,
    scores.older_reference,
    scores.claims,
    scores.prose,
    scores.tier,
)

HELD_OUT: tuple[Check, ...] = (
    validated,
    frozen,
    artifacts.seeds,
    artifacts.checkpoints,
    artifacts.launches,
    ignored_seeds,
    scores.evaluations,
    scores.libraries,
    scores.isolation,
    scores.contamination,
    scores.reference_seeds,
    scores.generalisation,
    scores.plausible,
    scores.confirmed,
    scores.older_reference,
    scores.tier,
)

GATES: dict[GateName, tuple[Check, ...]] = {
    GateName.VALIDATION: VALIDATION,
    GateName.HELD_OUT: HELD_OUT,
}
# Held-out does not check claims and artifacts again: the validation verdict read them, and it must
# not be stale.


def judge(evidence: GateEvidence) -> GateOutcome:
    """Run every check of the evidence's gate, so that the outcome lists all that is wrong."""
    return conclude(evidence, GATES[evidence.gate])


def conclude(evidence: GateEvidence, checks: Sequence[Check]) -> GateOutcome:
    """The verdict of `checks`: FAIL before INCONCLUSIVE before PASS."""
    findings = tuple(
        _named(finding, evidence.experiment.id) for check in checks for finding in check(evidence)
    )
    outcomes = {outcome_of(finding) for finding in findings}
    verdict = next(
        (outcome for outcome in (Verdict.FAIL, Verdict.INCONCLUSIVE) if outcome in outcomes),
        Verdict.PASS,
    )
    return GateOutcome(
        verdict=verdict,
        findings=findings,
        score=evidence.score,
        tier=scores.reached_tier(evidence),
        comparison=evidence.comparison,
    )


def _named(finding: Finding, experiment: str) -> Finding:
    """The finding with a hint that can be typed as it is."""
    return replace(finding, hint=_EXPERIMENT.sub(experiment, finding.hint))
