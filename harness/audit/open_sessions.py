"""Plain Claude Code sessions, in no sandbox, that worked while an experiment was open: seen once,
recorded for good.

Such a session has the rights of its user: it can change what a person's command runs, start a
process that clears its environment, and take its traces away. So the first command that changes
something after the session began records what it sees, and every later score of the experiment
says `session not isolated`.

The first trace is the session's own start: its SessionStart hook has it recorded in the ledger
before the session does anything (`session_began`, with the process of the CLI). It lowers what was
open then, what is opened while that process lives, and what is opened later by a process that may
come from it: one that is on no terminal and began after it (`process.may_come_from`). Further
traces are the command's own environment and parents, the receipts of hooks (`harness claude` notes
its own from outside the sandbox, with the sandbox's name), and transcripts in the folder that
Claude Code names after the project. Not seen is a session that was started with hooks switched off
and left no transcript, and what one that has ended does through a terminal that it opened itself. A
session of `harness claude` that is resumed plainly is seen by its hooks only.
"""

import functools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from harness.artifacts.jsonl import parse_line
from harness.audit.activity import transcript_home
from harness.audit.claude_process import claude_above
from harness.clock import parse_iso
from harness.domain.grade import CallerKind
from harness.domain.statuses import CLOSED_EXPERIMENTS, ExperimentStatus
from harness.ledger.facts import SessionBegan, SessionSeen
from harness.ledger.project import Project
from harness.process import identity, is_same_alive, may_come_from

SESSION = "CLAUDE_CODE_SESSION_ID"
"""Claude Code sets it for every process that a session starts."""
COMMAND, RECEIPT, TRANSCRIPT = "command", "receipt", "transcript"
BEGAN, ALIVE, DETACHED = "began", "alive", "detached"
UNNAMED = "unnamed"
Begun = tuple[str, float, Callable[[], str | None]]
"""A session whose start is in the ledger, when it was, and its trace in this process."""
_OPEN = [status for status in ExperimentStatus if status not in CLOSED_EXPERIMENTS]


def note_beginning(project: Project, session: str) -> None:
    """Record that a plain session began, once for each process of it."""
    cli = next(claude_above(), None)
    process = {} if cli is None else identity(cli.pid)
    began = SessionBegan(session=session, process=process)
    if all(known != began for known, _ in project.ledger.sessions_began()):
        project.ledger.append(began)


def see_sessions(project: Project, environment: Mapping[str, str]) -> None:
    """Record for each undecided experiment the plain sessions since it was opened, each once."""
    begun = _begun(project)
    for experiment in project.ledger.experiments(statuses=_OPEN):
        known = project.ledger.sessions_seen(experiment.id)
        since = parse_iso(experiment.opened_at).timestamp()
        for session, trace in _seen(project, environment, since, known, begun):
            if session not in known:
                known.add(session)
                project.ledger.append(
                    SessionSeen(experiment=experiment.id, session=session, trace=trace)
                )


def _seen(
    project: Project,
    environment: Mapping[str, str],
    since: float,
    known: Collection[str],
    begun: Sequence[Begun],
) -> Iterator[tuple[str, str]]:
    known = frozenset(known)
    if project.caller.kind is CallerKind.OPEN:
        yield environment.get(SESSION) or UNNAMED, COMMAND
    for session, at, left in begun:
        trace = BEGAN if at >= since else None
        if session not in known and (trace := trace or left()):
            yield session, trace
    noted: set[str] = set()
    for path in _written_since(project.layout.shared("receipts"), since):
        noted.add(path.stem)
        if path.stem not in known and _is_plain(project, path, since):
            yield path.stem, RECEIPT
    confined = {environment.get(SESSION)} if project.caller.isolated else set()
    named = re.sub(r"[^A-Za-z0-9]", "-", str(project.layout.root))
    for path in _written_since(transcript_home(environment) / named, since):
        if path.stem not in noted | known | confined:
            yield path.stem, TRANSCRIPT


def _begun(project: Project) -> list[Begun]:
    begun: list[Begun] = []
    for fact, at in project.ledger.sessions_began():
        time = parse_iso(at).timestamp()
        # Looked at once for all experiments: it asks the system for each parent of this process.
        left = functools.cache(functools.partial(_left, project, fact, time))
        begun.append((fact.session, time, left))
    return begun


def _left(project: Project, began: SessionBegan, at: float) -> str | None:
    """Whether it is alive still, or has ended and is perhaps the origin of this very process."""
    if is_same_alive(began.process):
        return ALIVE
    by_person = project.caller.kind is CallerKind.PERSON
    return DETACHED if by_person and may_come_from(began.process, at) else None


def _written_since(folder: Path, since: float) -> Iterator[Path]:
    """JSON lines in `folder` that were written after `since`."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                # The inode's time of change, which no program can set.
                if entry.name.endswith(".jsonl") and (
                    entry.stat(follow_symlinks=False).st_ctime >= since
                ):
                    yield Path(entry.path)
    except OSError:
        return


def _is_plain(project: Project, path: Path, since: float) -> bool:
    """Whether a session left a receipt after `since` in no sandbox; the loop's sessions have a fact
    of their own."""
    if project.ledger.session(path.stem) is not None:
        return False
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return True
    rows = [row for line in lines for row in parse_line(line, lambda row: "session" in row).rows]
    return any("sandbox" not in row and _after(row.get("time"), since) for row in rows)


def _after(time: object, since: float) -> bool:
    try:
        return not isinstance(time, str) or parse_iso(time).timestamp() >= since
    except ValueError:
        return True
