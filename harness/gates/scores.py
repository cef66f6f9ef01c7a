"""Checks of the numbers: recomputed for every seed, isolated, good enough, not overclaimed."""

from collections.abc import Iterator

from harness.artifacts.experiment_files import agrees, precise_enough
from harness.domain.findings import Finding
from harness.domain.grade import Caller, Link, grade_of
from harness.domain.statuses import Direction, RunStatus, Tier, spoken
from harness.evaluation.carry_over import (
    MOST_GAP,
    MOST_SHIFT,
    NOT_CONFIRMED,
    OVERFITTED,
    TOO_GOOD,
)
from harness.evaluation.ladder import Answer
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding


def evaluations(evidence: GateEvidence) -> Iterator[Finding]:
    """One evaluation a run, of its final checkpoint; equal findings of several seeds are one."""
    wrong: dict[str, list[tuple[Finding, int]]] = {}
    unseen: list[str] = []
    by_run = {of_run.run: of_run for of_run in evidence.evaluations}
    on = spoken(evidence.gate)
    for of_run in evidence.runs:
        evaluation = by_run.get(of_run.run.id)
        final = of_run.final
        if evaluation is None or (
            final is not None and evaluation.checkpoint != final.checkpoint.id
        ):
            if evidence.way_out and of_run.run.status is RunStatus.COMPLETED:
                unseen.append(of_run.name)
                continue
            why = ": it did not complete" if of_run.run.status is not RunStatus.COMPLETED else ""
            yield finding(
                "evaluation_missing",
                f"{of_run.name} (seed {of_run.run.seed}) has no recomputed evaluation on"
                f" {on}{why}.",
                f"Run `harness evaluate {evidence.experiment.id} --split {on}`.",
                run=of_run.name,
            )
            continue
        if of_run.evaluation.sha256 is None or of_run.evaluation.problems:
            yield from of_run.evaluation.problems or (
                finding(
                    "evaluation_missing",
                    f"{of_run.evaluation.path} is not there.",
                    artifact="evaluation",
                ),
            )
        found = evaluation.findings
        for one in found:
            wrong.setdefault(f"[{one.code}] {one.message} {one.hint}", []).append(
                (one, evaluation.seed)
            )
        if not evaluation.scored and not found:
            yield finding(
                "evaluation_failed", f"The evaluation of {of_run.name} on {on} gave no score."
            )
    if unseen:
        yield finding(
            "bits_spent",
            f"{', '.join(unseen)} cannot be evaluated on {on}: what may be told of its labels is"
            " spent.",
            evidence.way_out,
            runs=unseen,
        )
    for same in wrong.values():
        yield _of_seeds(*same)
    yield from _told(evidence)


def _told(evidence: GateEvidence) -> Iterator[Finding]:
    """A look at labels that nobody may read has its answer."""
    released = evidence.released
    if released is None:
        sealed = any(one.sealed is not None for one in evidence.evaluations)
        if sealed:
            yield finding(
                "evaluation_missing",
                f"{evidence.experiment.id} was evaluated on {spoken(evidence.gate)}, and what it"
                " came to was not told.",
                evidence.way_out,
            )
    elif released["answer"] == Answer.FAILED:
        code = released["codes"][0]
        yield finding(
            code,
            f"On {spoken(evidence.gate)}: {code.replace('_', ' ')}. Details are for people, because"
            " they could carry labels.",
            f"A person looks with `harness experiment show {evidence.experiment.id} --exact`.",
        )


def _of_seeds(first: tuple[Finding, int], *others: tuple[Finding, int]) -> Finding:
    finding, seed = first
    if not others:
        return finding
    seeds = [seed, *(number for _, number in others)]
    text = f"For the seeds {', '.join(map(str, seeds))}: {finding.message}"
    return Finding(finding.code, text, finding.hint, {**finding.data, "seeds": seeds})


def libraries(evidence: GateEvidence) -> Iterator[Finding]:
    """What predict imported is what it was when it was scored."""
    yield from evidence.libraries


def claims(evidence: GateEvidence) -> Iterator[Finding]:
    """Each claim in result.md is the recomputed number, as far as it is told, within half a unit of
    its last digit, and is precise enough to mean something."""
    metric = evidence.objective.metric
    mean = None if evidence.score is None else evidence.score["mean"]
    for name, claim in evidence.claims.items():
        if name != metric or mean is None:
            why = f"only {metric} is recomputed"
            if name == metric:
                why = f"{metric} was not {'recomputed' if evidence.score is None else 'told'}"
            yield finding(
                "claim_unsupported",
                f"result.md claims {name} = {claim.text}, but no recomputed evaluation supports it:"
                f" {why}.",
                metric=name,
                claimed=claim.text,
            )
        elif not agrees(claim, mean):
            yield finding(
                "claim_disagrees",
                f"result.md claims {name} = {claim.text}; recomputed: {mean:.6g}.",
                metric=name,
                claimed=claim.text,
                recomputed=mean,
            )
        elif not precise_enough(claim, mean):
            yield finding(
                "claim_too_coarse",
                f"result.md claims {name} = {claim.text}; recomputed: {mean:.6g}. Half a unit of"
                " the claim's last digit is more than a tenth of the number: nearly anything would"
                " agree.",
                metric=name,
                claimed=claim.text,
                recomputed=mean,
            )


def prose(evidence: GateEvidence) -> Iterator[Finding]:
    """Numbers in the body of result.md are the recomputed ones."""
    yield from evidence.prose


_LACKS = {
    Link.TRAINING: "was trained without a sandbox",
    Link.PREDICT: "was predicted without a sandbox",
    Link.SESSION: "was trained or evaluated where an unsandboxed session could change what runs",
}
_AGAIN = (
    "Open a new experiment, and train and evaluate it in the loop (`harness run`), in `harness"
    " claude`, or in your own terminal while no plain `claude` is open in the project."
)


def isolation(evidence: GateEvidence) -> Iterator[Finding]:
    """With `sandbox: required` training and predict ran in a sandbox, and no unsandboxed session
    had a hand in them."""
    if not evidence.isolation_required:
        return
    predicted = {one.run: one for one in evidence.evaluations}
    for run in (of_run.run for of_run in evidence.runs):
        one = predicted.get(run.id)
        callers = [run.caller] if one is None else [run.caller, one.caller]
        grade = grade_of(
            [Caller.read(caller) for caller in callers],
            [run.sandbox],
            [] if one is None else [one.sandbox],
        )
        # Landlock is a sandbox, so it is enough here; what it leaves open the score says.
        for link in (one for one in grade.not_isolated if one is not Link.LOCAL_SOCKETS):
            yield finding(
                "isolation_absent",
                f"The plan says `sandbox: required`, but {run.id} {_LACKS[link]}.",
                _AGAIN if link is Link.SESSION else None,
                run=run.id,
                link=link.value,
            )


def reached_tier(evidence: GateEvidence) -> Tier | None:
    """The highest tier that the score reaches; None below all, or while a seed has no score."""
    if evidence.score is None or not _all_seeds(evidence):
        return None
    if evidence.released is not None:
        told = evidence.released["tier"]
        return None if told is None else Tier(told)
    return evidence.objective.tier(evidence.score["mean"])


def tier(evidence: GateEvidence) -> Iterator[Finding]:
    """The score over all seeds reaches the plan's lowest tier."""
    objective = evidence.objective
    least = next((name for name in Tier if name in objective.tiers), None)
    if least is None or evidence.score is None or not _all_seeds(evidence):
        return
    if evidence.released is not None and evidence.released["answer"] == Answer.FAILED:
        return
    mean, threshold = evidence.score["mean"], objective.tiers[least]
    if reached_tier(evidence) is not None:
        return
    if evidence.released is not None and evidence.released.get("or_more"):
        yield finding(
            "bits_spent",
            f"Whether {objective.metric} on {spoken(evidence.gate)} reaches the {least} tier was"
            f" not told: few bits are left, and the score lies beyond {mean:.6g}.",
            evidence.way_out,
        )
        return
    sign = ">=" if objective.direction is Direction.MAXIMIZE else "<="
    on = f"{objective.metric} on {spoken(evidence.gate)}"
    # A number on a grid can be at the threshold and the score below it: the tier is told exactly.
    told = f"{on} is {mean:.6g}, needs" if evidence.released is None else f"{on} is not"
    score = {"score": mean} if evidence.released is None else {}
    yield finding(
        "below_tier",
        f"Below the {least} tier: {told} {sign} {threshold:g}.",
        metric=objective.metric,
        **score,
        threshold=threshold,
        tier=least,
    )


def _all_seeds(evidence: GateEvidence) -> bool:
    """A mean over a part of the seeds is not the experiment's score."""
    scored = {of_run.seed for of_run in evidence.evaluations if of_run.scored}
    wanted = {of_run.run.seed for of_run in evidence.runs}
    return wanted <= scored and len(scored) >= evidence.objective.seeds


MOST_SHARED = 0.05
"""Of a split's rows: fewer copies in the training rows are reported at approval and block nothing.
In CIFAR-10 3.3% and in CIFAR-100 10% of the test images have duplicates in training (Barz and
Denzler 2020): docs/statistics.md."""
USUAL = 2.0
"""Data of few distinct rows repeats by itself: the split may share up to this multiple of the share
of training rows with a twin in training."""


def contamination(evidence: GateEvidence) -> Iterator[Finding]:
    """At approval the training rows held no more of the split, exactly or nearly, than such data
    repeats by itself."""
    shared = evidence.in_train
    if shared is None:
        return
    which, exact = (
        spoken(evidence.gate),
        (shared["share"], shared["repeats"], shared.get("expected")),
    )
    if _too_many(*exact):
        yield _contaminated(
            f"{shared['rows']:g} rows of {which} ({exact[0]:.1%}) have a training row's inputs",
            exact,
        )
        return
    near = (shared.get("near", 0.0), shared.get("near_repeats", 0.0), shared.get("near_expected"))
    if _too_many(*near):
        yield _contaminated(
            f"{near[0]:.1%} of the rows of {which} have the inputs of a training row, or nearly",
            near,
        )


def _too_many(share: float, repeats: float, expected: float | None) -> bool:
    if share <= MOST_SHARED:
        return False
    # The second bound is by the split's own twins: copies added to the training rows raise
    # `repeats`, but not `expected`.
    return share > USUAL * repeats or (expected is not None and share > MOST_SHARED + expected)


def _contaminated(what: str, figures: tuple[float, float, float | None]) -> Finding:
    share, repeats, expected = figures
    limit = (
        f"at most {MOST_SHARED:.0%} may, or {USUAL:g} times the {repeats:.1%} that repeat in"
        " training"
    )
    if expected is not None:
        limit += f", where the split's own twins explain {expected:.1%} at most"
    return finding(
        "split_contaminated", f"{what}; {limit}.", share=share, repeats=repeats, expected=expected
    )


def generalisation(evidence: GateEvidence) -> Iterator[Finding]:
    """Held-out is not far below validation: a score found by trying on validation does not carry
    over."""
    if OVERFITTED in _codes(evidence):
        yield finding(
            OVERFITTED,
            f"{evidence.objective.metric} is worse on held-out than on validation by more than"
            f" {MOST_GAP:g} standard errors.",
        )


def plausible(evidence: GateEvidence) -> Iterator[Finding]:
    """Held-out is not far above validation: who has seen its labels, in whatever form, answers
    better there than anywhere else."""
    if TOO_GOOD in _codes(evidence):
        yield finding(
            TOO_GOOD,
            f"{evidence.objective.metric} is better on held-out than on validation by more than"
            f" {MOST_GAP:g} standard errors and {MOST_SHIFT:.0%} of the gain over the trivial"
            " predictor: chance does not explain that.",
        )


def confirmed(evidence: GateEvidence) -> Iterator[Finding]:
    """An improvement on validation is not a loss on held-out, by which nothing was chosen."""
    if NOT_CONFIRMED in _codes(evidence):
        parent = (evidence.comparison or {}).get("against")
        yield finding(
            NOT_CONFIRMED,
            f"{evidence.experiment.id} is better than {parent} on validation and worse on"
            " held-out.",
            parent=parent,
        )


def _codes(evidence: GateEvidence) -> list[str]:
    return [] if evidence.released is None else evidence.released["codes"]


def reference_seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """The reference has as many scored seeds; the trivial predictor needs none."""
    comparison = evidence.comparison or {}
    own, other = comparison.get("seeds", (0, None))
    if other is None or other >= own:
        return
    parent = comparison["against"]
    yield finding(
        "reference_seeds_fewer",
        f"{evidence.experiment.id} has {own} scored seeds on validation, {parent}, which it is"
        f" compared with, has {other}.",
        f"Run `harness evaluate {parent}` if its seeds are trained; else open an experiment that"
        f" repeats {parent} with the plan's seeds, and one with that as its parent.",
        parent=parent,
        seeds=own,
        parent_seeds=other,
    )


def reference(evidence: GateEvidence) -> Iterator[Finding]:
    """What the comparison's reference is, where it is not the parent; what has no score to be
    one."""
    comparison = evidence.comparison or {}
    own, against = evidence.experiment.id, comparison.get("against")
    parent = comparison.get("parent")
    if parent is not None and not parent["scored"]:
        name = parent["against"]
        yield finding(
            "parent_not_scored",
            f"{own}'s parent {name} has no score on validation, so nothing is compared with it:"
            f" {own} is compared with {against}.",
            f"If {name} is to be the reference: run `harness evaluate {name}`, then ask again.",
            parent=name,
        )
    elif parent is not None:
        yield finding(
            "parent_not_reference",
            f"{own} is compared with {against}, which its parent {parent['against']} is no better"
            " than.",
            parent=parent["against"],
            against=against,
        )
    for name in comparison.get("kept_not_scored", ()):
        yield finding(
            "kept_not_scored",
            f"{name} is kept and has no score since version {comparison['plan_version']} of the"
            f" plan, which began this comparison: {own} is not compared with it.",
            f"Run `harness evaluate {name}`, then ask again.",
            experiment=name,
        )


def older_reference(evidence: GateEvidence) -> Iterator[Finding]:
    """What was told of a comparison on hidden labels is about the reference as it is now."""
    against = (evidence.comparison or {}).get("against")
    if evidence.beside_older is None or against is None:
        return
    yield finding(
        "reference_older",
        f"{evidence.experiment.id} was compared with {against} on {spoken(evidence.gate)} before"
        f" {against} changed, and the bits that are left do not reach for comparing again: what"
        " was told stands.",
        evidence.beside_older,
        against=against,
    )
