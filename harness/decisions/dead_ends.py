"""What was tried before: told before it is trained, and recorded with what was done about it."""

import re

from harness.decisions.experiments import decide
from harness.domain.findings import Finding
from harness.domain.plain_text import one_line, plain
from harness.domain.records import Experiment
from harness.domain.statuses import DecisionKind
from harness.ledger.project import Project

_LOOKED_AT = 100
"""Decisions back, for one that was recorded before."""


def tried_before(project: Project, experiment: Experiment) -> list[Finding]:
    """A note of the newest earlier experiment with the same idea: the same words, in whatever
    order, case and punctuation."""
    words = _words(experiment.hypothesis)
    same = [
        one
        for one in project.ledger.experiments()
        if one.number < experiment.number and _words(one.hypothesis) == words
    ]
    if not same:
        return []
    last = max(same, key=lambda one: one.number)
    decided = project.ledger.decisions(last.id)[-1:]
    why = f": {one_line(decided[0].reason)}" if decided else ""
    return [
        Finding(
            "idea_tried_before",
            f"The same idea was tried as {last.id}, which is {last.status}{why}.",
            f"`harness experiment show {last.id}` says how it went; each try is counted.",
            {"experiment": last.id},
        )
    ]


def dead_end(
    project: Project, found: Finding, *, experiment: str, by: str, choice: str, reason: str
) -> None:
    """Record once what was done about an idea or a training that was tried before."""
    earlier = found.data["experiment"]
    context = f"{experiment} would repeat {earlier} ({found.code})."
    for one in project.ledger.decisions(newest=_LOOKED_AT):
        same = (one.kind, one.context, one.choice) == (DecisionKind.DEAD_END, context, choice)
        if same and one.reason == plain(reason):
            return
    decide(
        project,
        kind=DecisionKind.DEAD_END,
        experiment=None,
        by=by,
        context=context,
        choice=choice,
        alternatives="Change what the hypothesis is about; build on another experiment.",
        reason=reason,
        confidence="medium",
    )


def _words(text: str) -> list[str]:
    return sorted(re.findall(r"\w+", text.casefold()))
