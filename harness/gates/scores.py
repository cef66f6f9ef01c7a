"""Checks of the numbers: recomputed for every seed, in the sandbox that the plan asks for, good
enough, and not overclaimed."""

from collections.abc import Iterator

from harness.artifacts.experiment_files import agrees, precise_enough
from harness.domain.findings import Finding
from harness.domain.statuses import Direction, RunStatus, SandboxKind, Tier, spoken
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding


def evaluations(evidence: GateEvidence) -> Iterator[Finding]:
    """One evaluation a run, of its final checkpoint; what went wrong stands here in its own words,
    once for all."""
    wrong: dict[str, list[tuple[Finding, int]]] = {}
    by_run = {item.run: item for item in evidence.evaluations}
    on = spoken(evidence.gate)
    for item in evidence.runs:
        evaluation = by_run.get(item.run.id)
        final = item.final
        if evaluation is None or (
            final is not None and evaluation.checkpoint != final.checkpoint.id
        ):
            why = ": it did not complete" if item.run.status is not RunStatus.COMPLETED else ""
            yield finding(
                "evaluation_missing",
                f"{item.name} (seed {item.run.seed}) has no recomputed evaluation on {on}{why}.",
                f"Run `harness evaluate {evidence.experiment.id} --split {on}`.",
                run=item.name,
            )
            continue
        if item.evaluation.sha256 is None or item.evaluation.problems:
            yield from item.evaluation.problems or (
                finding(
                    "evaluation_missing",
                    f"{item.evaluation.path} is not there.",
                    artifact="evaluation",
                ),
            )
        found = [Finding.from_plain(plain) for plain in evaluation.findings]
        for one in found:
            wrong.setdefault(f"[{one.code}] {one.message} {one.hint}", []).append(
                (one, evaluation.seed)
            )
        if evaluation.value is None and not found:
            yield finding(
                "evaluation_failed", f"The evaluation of {item.name} on {on} gave no score."
            )
    for same in wrong.values():
        yield _of_seeds(*same)


def _of_seeds(first: tuple[Finding, int], *others: tuple[Finding, int]) -> Finding:
    found, seed = first
    if not others:
        return found
    seeds = [seed, *(number for _, number in others)]
    told = f"For the seeds {', '.join(map(str, seeds))}: {found.message}"
    return Finding(found.code, told, found.hint, {**found.data, "seeds": seeds})


def claims(evidence: GateEvidence) -> Iterator[Finding]:
    """Each number in result.md is the recomputed one, within half a unit of its last digit, and
    that digit is fine enough to say something."""
    metric = evidence.objective.metric
    for name, claim in evidence.claims.items():
        if name != metric or evidence.score is None:
            why = (
                f"only {metric} is recomputed" if name != metric else f"{metric} was not recomputed"
            )
            yield finding(
                "claim_unsupported",
                f"result.md claims {name} = {claim.text}, but no recomputed evaluation supports it:"
                f" {why}.",
                metric=name,
                claimed=claim.text,
            )
        elif not agrees(claim, evidence.score["mean"]):
            yield finding(
                "claim_disagrees",
                f"result.md claims {name} = {claim.text}; recomputed:"
                f" {evidence.score['mean']:.6g}.",
                metric=name,
                claimed=claim.text,
                recomputed=evidence.score["mean"],
            )
        elif not precise_enough(claim, evidence.score["mean"]):
            yield finding(
                "claim_too_coarse",
                f"result.md claims {name} = {claim.text}; recomputed: {evidence.score['mean']:.6g}."
                " Half a unit of the claim's last digit is more than a tenth of the number: nearly"
                " anything would agree.",
                metric=name,
                claimed=claim.text,
                recomputed=evidence.score["mean"],
            )


def prose(evidence: GateEvidence) -> Iterator[Finding]:
    """What the body of result.md says in numbers is what the harness recomputed."""
    yield from evidence.prose


def isolation(evidence: GateEvidence) -> Iterator[Finding]:
    """With `sandbox: required` training and evaluation ran in a sandbox."""
    if not evidence.isolation_required:
        return
    trained = [
        f"training of {item.name}" for item in evidence.runs if item.run.sandbox == SandboxKind.NONE
    ]
    scored = [
        f"evaluation of {item.run}"
        for item in evidence.evaluations
        if item.sandbox == SandboxKind.NONE
    ]
    for what in (*trained, *scored):
        yield finding(
            "isolation_absent",
            f"The plan says `sandbox: required`, but the {what} was not isolated.",
        )


def reached_tier(evidence: GateEvidence) -> Tier | None:
    """The most ambitious tier that the score reaches; None below all, or while a seed has no
    score."""
    if evidence.score is None or not _all_seeds(evidence):
        return None
    return evidence.objective.tier(evidence.score["mean"])


def tier(evidence: GateEvidence) -> Iterator[Finding]:
    """The score over all seeds reaches the plan's least tier, in the plan's direction."""
    objective = evidence.objective
    least = next((name for name in Tier if name in objective.tiers), None)
    if least is None or evidence.score is None or not _all_seeds(evidence):
        return
    mean, threshold = evidence.score["mean"], objective.tiers[least]
    if not objective.reaches(mean, threshold):
        sign = ">=" if objective.direction is Direction.MAXIMIZE else "<="
        yield finding(
            "below_tier",
            f"{objective.metric} on {spoken(evidence.gate)} is {mean:.6g}; "
            f"the tier {least} needs {sign} {threshold:g}.",
            metric=objective.metric,
            score=mean,
            threshold=threshold,
            tier=least,
        )


def _all_seeds(evidence: GateEvidence) -> bool:
    """A mean over a part of the seeds is not the experiment's score."""
    scored = {item.seed for item in evidence.evaluations if item.value is not None}
    wanted = {item.run.seed for item in evidence.runs}
    return wanted <= scored and len(scored) >= evidence.objective.seeds
