"""A scenario from sessions that happened: those of the loop, or a transcript of Claude Code.

What belongs to the machine and the day becomes a reference: another clone has other paths and other
ids.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.artifacts.trees import own_trees
from harness.contract.roles import TOOL_PREFIX
from harness.driver.environment import session_folders
from harness.driver.scenario_end import key_of_step
from harness.errors import NotFoundError, UsageError
from harness.ledger.facts.session import Session
from harness.ledger.project import Project
from harness.model_gateway.scenario import as_yaml, recorded_turn, tool_name
from harness.model_gateway.wire import SessionKey
from harness.traces.events import Answer, ToolResult, TracedSession
from harness.traces.transcripts import AGENT_TOOLS, read_session, session_files

_OPEN = f"{TOOL_PREFIX}open_experiment"
_REFERRED = ("folder", "project", "experiment")
"""Fields of its answer, the longest path first."""
_HEAD = """\
# Recorded from sessions that happened; `harness scenario check FILE` says whether it can be played.
# Replay it with `harness run --scenario FILE`.
"""
Turns = dict[int, dict[str, Any]]


def of_loop(project: Project) -> str:
    """The newest session of each step that the loop of this tree did. Raises NotFoundError."""
    turns: dict[SessionKey, Turns] = {}
    for session in _done(project):
        own = _turns(_traced(project, session), project)
        turns[key_of_step(session.step)] = _of_its_own(own, session.experiment)
    if not turns:
        raise NotFoundError(
            "No session of a loop ended in this working tree: there is nothing to record.",
            hint="Name a transcript: `harness scenario record FILE --from TRANSCRIPT`.",
            code="no_session",
        )
    return as_yaml(turns, head=_HEAD)


def of_transcript(project: Project, path: Path, key: SessionKey) -> str:
    """The main thread of one transcript, as the session `key`. Raises NotFoundError, UsageError."""
    turns = _turns(read_session(path), project)
    if not turns:
        raise UsageError(
            f"{path} holds no answer of a model.",
            hint="Name a transcript of Claude Code, <session>.jsonl.",
            code="no_session",
        )
    return as_yaml({key: turns}, head=_HEAD)


def _done(project: Project) -> Iterator[Session]:
    """Those of this tree since its plan was first approved: each plan counts from 1."""
    name = project.plan().name
    first = min(plan.at for plan in project.ledger.plans() if plan.name == name)
    trees = own_trees(project.layout)
    for session in project.ledger.sessions():
        recent = session.started_at >= first and session.tree in trees
        if recent and session.outcome == "finished":
            yield session


def _of_its_own(turns: Turns, experiment: str | None) -> Turns:
    """Without the id of the session's experiment, which its tools take by themselves."""
    for turn in turns.values():
        for tool in turn.get("tools", ()):
            ours = tool["name"].startswith(TOOL_PREFIX)
            if ours and experiment and tool["input"].get("experiment") == experiment:
                del tool["input"]["experiment"]
    return turns


def _traced(project: Project, session: Session) -> TracedSession:
    folder = session_folders(project.layout, session.id).config
    files = list(session_files(folder)) if folder.is_dir() else []
    if not files:
        raise NotFoundError(
            f"The transcript of {session.id} is not at {folder}.",
            hint="Record on the machine that led the session.",
            code="no_transcript",
        )
    return read_session(files[-1])


def _turns(traced: TracedSession, project: Project) -> Turns:
    """Its answers in order, with what earlier results say as references to them."""
    turns: Turns = {}
    names: dict[str, tuple[str, str]] = {}
    known: dict[str, str] = {str(project.layout.root): ""}
    for event in traced.events:
        if event.agent is not None:
            continue
        if isinstance(event, ToolResult) and event.call in names:
            known |= _said(*names[event.call], event.text)
        if not isinstance(event, Answer):
            continue
        uses = [block for block in event.blocks if block.get("type") == "tool_use"]
        _require_no_agent(uses)
        number = len(turns)
        turn = recorded_turn(number, event.blocks)
        for place, use in enumerate(uses):
            names[str(use["id"])] = tool_name(number, place), str(use["name"])
        turns[number] = _referring(turn, known)
    return turns


def _require_no_agent(uses: list[dict[str, Any]]) -> None:
    if any(use.get("name") in AGENT_TOOLS for use in uses):
        raise UsageError(
            "The session starts a subagent, and a scenario cannot hold one.",
            hint="Record a session without the Agent tool.",
            code="subagent",
        )


def _said(identifier: str, tool: str, text: str) -> dict[str, str]:
    """Text that a later turn may repeat -> the reference that stands for it."""
    if tool != _OPEN:
        return {}
    answer: dict[str, Any] = {}
    for line in (text, *text.splitlines()):
        try:
            answer = json.loads(line)
            break
        except ValueError:
            continue
    if not isinstance(answer, dict):
        return {}
    return {
        answer[name]: f"${{{identifier}.{name}}}"
        for name in _REFERRED
        if isinstance(answer.get(name), str)
    }


def _referring(value: Any, known: Mapping[str, str]) -> Any:
    """`value` with references in the place of known text; a path of the project, where nothing says
    more, is written from its root."""
    if isinstance(value, dict):
        return {key: _referring(part, known) for key, part in value.items()}
    if isinstance(value, list):
        return [_referring(part, known) for part in value]
    if not isinstance(value, str):
        return value
    for text in sorted(known, key=len, reverse=True):
        found, instead = (text, known[text]) if known[text] else (f"{text}/", "")
        value = value.replace(found, instead)
    return value
