"""What a session is told from memory beside its briefing: ranked for its role, its experiment and
what its step is about."""

import re
from collections.abc import Iterable

from harness.contract.profiles import BRIEFING_CHARACTERS
from harness.domain.findings import as_markdown
from harness.driver.messages import read_briefing
from harness.ledger.project import Project
from harness.loop.steps import Build
from harness.projections.recall import Kind, kin_of, memories, recall, section

_NAME = re.compile(r"(?<![\w-])[dp]-\d{4,}")
_TOLD = (Kind.DECISION, Kind.PRIOR)
"""Kinds that a briefing tells with their words."""
LEAST = 2000
"""Characters of a briefing, however long the findings are."""
ROOM = 1500
"""Characters of the section; the briefing gives them up where it is long."""


def briefing_for(
    project: Project,
    step: Build,
    role: str,
    hypothesis: str | None,
    most: int = BRIEFING_CHARACTERS,
) -> str:
    """The briefing with what is remembered of the step's idea and findings, in at most `most`
    characters together with the findings, which are told beside it."""
    most = max(LEAST, most - len(as_markdown(step.findings)))
    about = [
        hypothesis or "",
        *(idea.text for idea in step.candidates[:1]),
        *(f"{finding.code} {finding.message}" for finding in step.findings[:3]),
    ]
    if not any(about):
        about = [project.plan().content["objective"]]
    whole = not step.findings
    briefing = read_briefing(project.layout, most, verdict=whole)
    found = remembered(project, role, step.experiment or step.parent, about, beside=briefing)
    if not found or not briefing:
        return briefing or found
    shorter = read_briefing(project.layout, most - len(found) - 2, verdict=whole)
    return f"{shorter}\n\n{found}"


def remembered(
    project: Project,
    role: str,
    experiment: str | None,
    about: Iterable[str],
    *,
    beside: str = "",
) -> str:
    """ "## From memory" with a line for each of the nearest; "" where nothing is. What `beside`
    tells of decisions, priors and hand-offs, and the experiment itself, are left out."""
    ledger = project.ledger
    told = set(_NAME.findall(beside))
    known = [
        one
        for one in memories(ledger, project.layout)
        if (one.kind not in _TOLD or one.id not in told)
        and (one.kind is not Kind.HAND_OFF or one.at not in beside)
        and (one.kind is not Kind.EXPERIMENT or one.id != experiment)
    ]
    kin = kin_of(ledger, experiment)
    found = recall(known, " ".join(about), role=role, kin=kin, limit=8)
    return section(found, ROOM)
