"""What was told of a score, for everybody: pages, tables, tools, gates.

Of a split whose labels are readable that is the score itself; of a sealed one it is the answer of
the last look, see `evaluation.release`.
"""

from dataclasses import replace
from typing import Any

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Split, Tier
from harness.evaluation.ladder import Answer, possible_tiers, value_of
from harness.evaluation.outcome import told_words
from harness.evaluation.scores import recorded_evaluations, summarise
from harness.evaluation.tries import identities
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import ApprovedPlan, RecordedVerdict, Release
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret


def bits_limit(approved: ApprovedPlan) -> float:
    return float(approved.content["oracle"]["bits"])


def bits_told(project: Project, approved: ApprovedPlan) -> float:
    return project.ledger.bits_told(approved.name)


def latest_release(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> Release | None:
    """What was told last about the split in this comparison. Its tier is by the plan's
    tiers as they are now. None where these changed and the number does not say it, and where it was
    coarse and the plan has more bits since: then it is told again."""
    # Not the last of all: who goes back to an earlier comparison is told nothing twice.
    told = project.ledger.releases(experiment, split)
    of_this = [one for one in told if one.plan_version == approved.comparison]
    if not of_this:
        return None
    last, now = of_this[-1], plan_then(approved)
    then = now if last.plan is None else last.plan
    if last.coarse and now["bits"] > then["bits"]:
        return None
    if now["tiers"] == then["tiers"] or last.answer == Answer.FAILED:
        return last
    possible = _possible(last, objective_of(approved))
    return replace(last, tier=possible[0]) if len(possible) == 1 else None


def plan_then(approved: ApprovedPlan) -> dict[str, Any]:
    """What of a plan an answer rests on, beside its comparison."""
    tiers = {tier.value: least for tier, least in objective_of(approved).tiers.items()}
    return {"tiers": tiers, "bits": bits_limit(approved)}


def _possible(told: Release, objective: Objective) -> list[Tier | None]:
    """The tiers that a score can have of which no more is known than was told."""
    if told.cell is None or told.bound is not None:
        return possible_tiers(objective, None, None)
    low, high = (
        value_of(cell, told.step, objective.direction) for cell in (told.cell, told.cell + 1)
    )
    return possible_tiers(objective, low, high)


def tier_now(project: Project, verdict: RecordedVerdict) -> Tier | None:
    """The tier of a verdict's score by the plan's tiers as they are now; as recorded where another
    comparison has begun since."""
    name = project.ledger.experiment(verdict.experiment).plan
    versions = [plan for plan in project.ledger.plans() if plan.name == name]
    then = [plan.comparison for plan in versions if plan.at <= verdict.at]
    score = verdict.score
    if score is None or then[-1:] != [versions[-1].comparison]:
        return verdict.tier
    objective = objective_of(versions[-1])
    if "released" in score:
        told = latest_release(project, verdict.experiment, versions[-1], Split(verdict.gate))
        return verdict.tier if told is None else told.tier
    return objective.tier(score["mean"]) if score["n_seeds"] >= objective.seeds else None


def released_score(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> dict[str, Any] | None:
    """The score as everybody may see it, with the keys of `Score.shown`. Of a sealed split it is
    what was told: `mean` on the grid or None, nothing over seeds, and `released`."""
    if not secret(approved, split.value):
        score = summarise(recorded_evaluations(project, experiment, approved, split))
        return None if score is None else score.shown()
    told = latest_release(project, experiment, approved, split)
    if told is None:
        return None
    return {
        "metric": told.metric,
        "split": split.value,
        "mean": told.mean,
        "spread": None,
        "n_seeds": told.n_seeds,
        "values": [],
        "interval": None,
        "baseline": None,
        "not_isolated": list(told.not_isolated),
        "released": {
            "words": told_words(
                answer=told.answer,
                mean=told.mean,
                bound=told.bound,
                best=told.best,
                step=told.step,
                coarse=told.coarse,
            ),
            "coarse": told.coarse,
            "or_more": _or_more(told, approved),
            "answer": told.answer,
            "bound": told.bound,
            "best": told.best,
            "step": told.step,
            "tier": told.tier,
            "better": told.better,
            "codes": list(told.codes),
            "bits": told.bits,
        },
        "evidence": told.grade.words,
    }


def _or_more(told: Release, approved: ApprovedPlan) -> bool:
    """Whether the tier may be a higher one: the score lies beyond the number that was told."""
    objective = objective_of(approved)
    upwards = objective.direction is Direction.MAXIMIZE
    beyond = told.bound == ("at least" if upwards else "at most")
    above = [tier for tier in Tier if tier in objective.tiers]
    return beyond and above[-1:] != [told.tier]


def told_now(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> bool:
    """Whether what was told last is about the evaluations that count now."""
    last = latest_release(project, experiment, approved, split)
    own = digest(identities(recorded_evaluations(project, experiment, approved, split)))
    return last is not None and last.of_own == own


def digest(value: object) -> str:
    return sha256_bytes(canonical_json(value))[:32]
