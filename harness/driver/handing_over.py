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
from harness.judge.handing import SUMMARISED
from harness.ledger.facts import BY_HARNESS, HandOff
from harness.ledger.project import Project
from harness.loop.load_state import own_sessions
from harness.projections.memory_pages import excerpt
from harness.traces.transcripts import session_files

_AGAIN = "Its step begins again in a fresh session: look at what stands there, then go on from it."
_DONE = "Its work is recorded."
_LOOKED_AT = 200
"""The newest hand-offs, among which a step's are looked for."""
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
    """Of a session that has ended: nothing to hand over where it did its work, or never began."""
    owed = _owed(project, session, _doings(project, session))
    finished = outcome is SessionEnding.FINISHED
    if outcome is SessionEnding.VOID or (finished and not owed):
        return None
    why = "ended without its work" if finished else f"was ended ({outcome}): {detail}"
    return _written(project, session, why, experiment, ended=True, always=finished)


def summarised(project: Project, session: str) -> HandOff | None:
    return _written(project, session, SUMMARISED)


def _written(
    project: Project,
    session: str,
    why: str,
    experiment: str | None = None,
    *,
    ended: bool = False,
    always: bool = False,
) -> HandOff | None:
    fact = project.ledger.session(session)

    def due(found: Doings) -> str:
        owed = _owed(project, session, found)
        return f"{' '.join(owed) or _DONE} {_AGAIN if ended else ''}".strip()

    return hand_over(
        project,
        session,
        _transcripts(project, session),
        why=why.rstrip("."),
        due=due,
        # One that was refused, or killed before its first call, has nothing to tell.
        worth=lambda found: always or found.called,
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
    """`prompt` of the step with the key `step`, with what the sessions before it in this step left
    since the step was last done, unless its briefing tells that already in whole."""
    shown: list[str] = []
    for one in _left(project, step):
        lines = excerpt(one, hand_off_name(one.at, one.hash), ROOM)
        if "\n".join(lines) not in prompt:
            shown += ["", *lines]
    if not shown:
        return prompt
    return "\n".join([prompt, "", "## What the session before you left", *shown])


def _left(project: Project, step: str) -> list[HandOff]:
    """The hand-offs of the newest session of the step that left one; where that only looked, also
    those of the newest that did more. What it noted itself stands before what its transcript
    tells."""
    stem, plan = _stem(step), project.ledger.plan()
    notes = project.ledger.hand_offs(newest=_LOOKED_AT)
    shown: list[HandOff] = []
    for session in reversed(own_sessions(project, plan) if plan else []):
        if _stem(session.step) != stem:
            continue
        found = _doings(project, session.id)
        finished = session.outcome == SessionEnding.FINISHED.value
        if finished and not _owed(project, session.id, found):
            break
        own = [one for one in notes if one.session == session.id]
        told = [one for one in own if one.by == BY_HARNESS]
        noted = [one for one in own if one.by != BY_HARNESS]
        if own and (found.changed or not shown):
            shown += [*noted[-1:], *told[-1:]]
        if shown and found.changed:
            break
    return shown


def _stem(step: str) -> str:
    """The key without the attempt."""
    return step.rpartition("-")[0]
