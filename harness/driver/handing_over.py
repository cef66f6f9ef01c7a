"""What a session of the loop hands over: written when it ends without its work, when its context is
summarised and when its driver was killed; told to the next session of its step."""

from collections.abc import Iterator
from pathlib import Path

from harness.artifacts.locate import hand_off_name
from harness.contract.phases import PHASE_BY_NAME
from harness.contract.roles import ROLE_BY_NAME
from harness.decisions.handing_over import Doings, doings, hand_over
from harness.driver.environment import session_folders
from harness.driver.session import SessionEnding
from harness.driver.tools.table import owed_tools, tool_of
from harness.ledger.facts import HandOff
from harness.ledger.project import Project
from harness.projections.memory_pages import excerpt
from harness.traces.transcripts import session_files

SUMMARISED = "had its context summarised"
_AGAIN = "Its step begins again in a fresh session: look at what stands there, then go on from it."
_DONE = "Its work is recorded."
_KNOWN_SESSIONS = 50
ROOM = 2000
"""Characters of a hand-off in a first message."""


def ended(
    project: Project,
    session: str,
    outcome: SessionEnding,
    detail: str,
    *,
    experiment: str | None = None,
) -> HandOff | None:
    """Of a session that has ended, as its fact says: nothing to hand over where it did its work, or
    never began."""
    owed = _owed(project, session, _doings(project, session))
    finished = outcome is SessionEnding.FINISHED
    if outcome is SessionEnding.VOID or (finished and not owed):
        return None
    why = "ended without its work" if finished else f"was ended ({outcome}): {detail}"
    return _written(project, session, why, experiment)


def summarised(project: Project, session: str) -> HandOff | None:
    return _written(project, session, SUMMARISED)


def _written(
    project: Project, session: str, why: str, experiment: str | None = None
) -> HandOff | None:
    fact = project.ledger.session(session)

    def due(found: Doings) -> str:
        owed = _owed(project, session, found)
        return f"{' '.join(owed) or _DONE} {_AGAIN if fact and fact.ended_at else ''}".strip()

    return hand_over(
        project,
        session,
        _transcripts(project, session),
        why=why.rstrip("."),
        due=due,
        experiment=experiment or (fact.experiment if fact else None),
    )


def _transcripts(project: Project, session: str) -> Iterator[Path]:
    return session_files(session_folders(project.layout, session).config)


def _doings(project: Project, session: str) -> Doings:
    return doings(_transcripts(project, session), project.layout.root)


def _owed(project: Project, session: str, found: Doings) -> list[str]:
    """What its role still has to do."""
    fact = project.ledger.session(session)
    if fact is None or fact.role not in ROLE_BY_NAME:
        return []
    of_phase = fact.step.partition("-")[0] in PHASE_BY_NAME
    names = owed_tools(ROLE_BY_NAME[fact.role], of_phase=of_phase)
    return [tool_of(name).due for name in names if name not in found.tools]


def inherited(project: Project, step: str, prompt: str) -> str:
    """`prompt` of the step with the key `step`, with what the session before it in this step left,
    unless its briefing tells that already in whole."""
    stem = _stem(step)
    before = [one.id for one in project.ledger.sessions() if _stem(one.step) == stem]
    left = [
        one
        for one in project.ledger.hand_offs(newest=_KNOWN_SESSIONS)
        if before and one.session == before[-1]
    ]
    if not left:
        return prompt
    name = hand_off_name(left[-1].at, left[-1].hash)
    lines = excerpt(left[-1], name, ROOM)
    if "\n".join(lines) in prompt:
        return prompt
    return "\n".join([prompt, "", "## What the session before you left", "", *lines])


def _stem(step: str) -> str:
    """The key without the attempt."""
    return step.rpartition("-")[0]
