"""What was told of a score, for everybody: pages, tables, tools, gates.

Of a split whose labels are readable that is the score itself; of a sealed one it is the answer of
the last look, see `evaluation.release`.
"""

from typing import Any

from harness.domain.statuses import Direction, Split, Tier
from harness.evaluation.outcome import told_words
from harness.evaluation.scores import recorded_evaluations, summarise
from harness.evaluation.tries import identities
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import ApprovedPlan, Release
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret


def bits_limit(approved: ApprovedPlan) -> float:
    return float(approved.content["oracle"]["bits"])


def bits_told(project: Project, approved: ApprovedPlan) -> float:
    return project.ledger.bits_told(approved.name)


def latest_release(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> Release | None:
    """What was told last about the split, under this version of the plan."""
    told = project.ledger.releases(experiment, split)
    return told[-1] if told and told[-1].plan_version == approved.version else None


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
