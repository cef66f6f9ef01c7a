"""Lessons that enforce themselves: from a failure to a candidate, to a rule, and out again."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.decisions.rules_found import rule_found
from harness.errors import RefusedError
from harness.ledger.facts import FalseRefusalTold, Prior, PriorMoved, PriorStatus
from harness.ledger.project import Project
from harness.projections.post_mortems import PostMortem, post_mortems, recurrences

BY = "harness"
MOST_REFUSALS = 2
"""From so many refusals of what was right a rule is retired by itself."""


def note_candidates(project: Project, experiment: str) -> list[Prior]:
    """Record a candidate for each failure of the experiment that has a rule; none that there is,
    whatever became of it. A candidate enforces nothing."""
    ledger = project.ledger
    known = {(one.answers, one.enforces) for one in ledger.priors()}
    made = []
    for failed in post_mortems(ledger, [experiment]):
        rule = rule_found(project, failed)
        if rule is None or (failed.code, rule.words) in known:
            continue
        known.add((failed.code, rule.words))
        made.append(
            ledger.record_prior(
                lesson=f"{failed.code} ({failed.cause}) in {experiment}",
                evidence=failed.line,
                rule=f"Enforce: {rule.words}",
                check=None,
                by=BY,
                enforces=rule.words,
                answers=failed.code,
            )
        )
    return made


def candidate_line(prior: Prior) -> str:
    return (
        f"candidate {prior.id}: {prior.enforces} (a person: `harness priors activate {prior.id}`)"
    )


def all_post_mortems(project: Project) -> list[PostMortem]:
    ledger = project.ledger
    return post_mortems(ledger, [one.id for one in ledger.experiments()])


def activate(project: Project, prior: str, *, by: str, reason: str) -> Prior:
    """From here on hooks and gates hold its rule. Raises NotFoundError, RefusedError."""
    found = project.ledger.prior(prior)
    if found.enforces is None:
        raise RefusedError(
            f"{prior} has no rule as data, so there is nothing to activate.",
            hint="`harness priors add --enforce RULE` records one that has.",
            code="prior_without_rule",
        )
    return _move(project, found, PriorStatus.ACTIVE, by=by, reason=reason)


def retire(project: Project, prior: str, *, by: str, reason: str) -> Prior:
    """Its rule holds no more. Raises NotFoundError, RefusedError."""
    return _move(project, project.ledger.prior(prior), PriorStatus.RETIRED, by=by, reason=reason)


def refused(project: Project, prior: str, *, by: str, reason: str) -> Prior:
    """Note that it refused what was right; at the second time it is retired. Raises NotFoundError,
    RefusedError."""
    project.ledger.append(FalseRefusalTold(prior=prior, by=by, reason=reason))
    found = project.ledger.prior(prior)
    if len(found.refusals) < MOST_REFUSALS:
        return found
    why = f"It refused what was right {len(found.refusals)} times, the last: {reason}"
    return _move(project, found, PriorStatus.RETIRED, by=BY, reason=why[:1000])


def _move(project: Project, prior: Prior, to: PriorStatus, *, by: str, reason: str) -> Prior:
    again = recurrences(prior, all_post_mortems(project))
    project.ledger.append(
        PriorMoved(prior=prior.id, status=to, by=by, reason=reason, recurrences=len(again))
    )
    return project.ledger.prior(prior.id)


def history(project: Project, priors: list[Prior]) -> Iterator[Mapping[str, Any]]:
    """What happened to each since it was active: {id, recurrences, refusals}."""
    known = all_post_mortems(project) if any(one.answers for one in priors) else []
    for prior in priors:
        again = recurrences(prior, known)
        yield {"id": prior.id, "recurrences": len(again), "refusals": len(prior.refusals)}
