"""What is wrong with a scenario, told before anything is played."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from harness.artifacts.front_matter import FrontMatter
from harness.contract.phases import PHASES
from harness.contract.roles import MOST_REMINDERS, ROLE_BY_NAME, ROLES, TOOL_PREFIX, Role
from harness.driver.scenario_end import NOT_DONE, key_of_step
from harness.driver.tools.table import TOOLS, owed_tools, tool_of
from harness.errors import UsageError
from harness.ledger.project import Project
from harness.loop.load_state import load_state
from harness.model_gateway.scenario import (
    REFERENCE,
    Scenario,
    ScenarioSession,
    ScenarioToolCall,
    ScenarioTurn,
    read_document,
    scenario_in,
)
from harness.model_gateway.wire import SessionKey

_CLAUDE_CODE: dict[str, tuple[str, ...]] = {
    "Bash": ("command",),
    "Edit": ("file_path", "old_string", "new_string"),
    "Glob": ("pattern",),
    "Grep": ("pattern",),
    "Read": ("file_path",),
    "WebFetch": ("url", "prompt"),
    "WebSearch": ("query",),
    "Write": ("file_path", "content"),
}
"""Claude Code's own tools that roles have, and what each cannot do without."""
_PLAYED = tuple(role.name for role in ROLES if role.step is not None)
_OF_PHASES = frozenset(phase.role for phase in PHASES)
_OF_BOTH = frozenset({"research-scout"})
"""Work on a phase, and on an experiment."""
NO_EXPERIMENT = "0"
"""The experiment of a session that works on a phase."""
_OPENS, _JUDGES, _STARTS = "model-builder", "oracle", "start_run"


@dataclass(frozen=True, kw_only=True)
class Remark:
    where: str
    """FILE:LINE"""
    code: str
    message: str

    @property
    def line(self) -> str:
        return f"{self.where}: [{self.code}] {self.message}"

    def plain(self) -> dict[str, str]:
        return {"where": self.where, "code": self.code, "message": self.message}


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How far the loop of this tree is: a scenario goes on from there."""

    experiments: int = 0
    """That were opened here."""
    most: int | None = None
    """That the plan still allows, these included."""
    played: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(role, experiment) -> its highest attempt that ended."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    problems: tuple[Remark, ...]
    notes: tuple[Remark, ...] = ()
    sessions: int = 0
    turns: int = 0


def reached(project: Project) -> Reached:
    """Raises RefusedError without an approved plan."""
    state = load_state(project, supervised=lambda run: True)
    played: dict[tuple[str, str], int] = {}
    for session in state.sessions:
        if session.outcome in NOT_DONE:
            continue
        role, experiment, attempt = key_of_step(session.step)
        known = played.get((role, experiment), 0)
        played[role, experiment] = max(known, int(attempt))
    here = sum(one.here for one in state.experiments)
    others = len(state.experiments) - here + state.spent.elsewhere
    return Reached(
        experiments=here,
        most=state.limits.experiments - others,
        played=played,
    )


def check_scenario(path: Path, so_far: Reached, copy: Path | None = None) -> Checked:
    """Problems forbid it to be played; notes do not. `copy`: what is read in place of `path`."""
    try:
        document = read_document(path, copy)
        scenario = scenario_in(document)
    except UsageError as error:
        return Checked(problems=tuple(_as_remarks(error, path)))
    problems: list[Remark] = []
    notes: list[Remark] = []
    for place, session in enumerate(scenario.sessions):
        look = _SessionLook(document, place, session)
        problems += look.problems()
        notes += look.notes
    order = _Order(document, scenario, so_far)
    problems += order.problems()
    notes += order.notes()
    return Checked(
        problems=tuple(problems),
        notes=tuple(notes),
        sessions=len(scenario.sessions),
        turns=sum(len(session.turns) for session in scenario.sessions),
    )


def require_playable(path: Path, project: Project) -> None:
    """Raises UsageError (scenario_invalid) that lists all problems."""
    checked = check_scenario(path, reached(project))
    if checked.problems:
        raise unplayable(checked)


def unplayable(checked: Checked) -> UsageError:
    return UsageError(
        "\n".join(problem.line for problem in checked.problems),
        hint="Correct these lines; docs/formats.md has the form.",
        code="scenario_invalid",
    )


def _as_remarks(error: UsageError, path: Path) -> Iterator[Remark]:
    for line in error.message.splitlines():
        where, found, message = line.partition(": ")
        if not (found and where.startswith(str(path))):
            where, message = str(path), line
        yield Remark(where=where, code="form", message=message)


class _SessionLook:
    """One session, by itself."""

    def __init__(self, document: FrontMatter, place: int, session: ScenarioSession) -> None:
        self._document, self._place, self._session = document, place, session
        self.notes: list[Remark] = []

    def problems(self) -> Iterator[Remark]:
        role = ROLE_BY_NAME.get(self._session.role)
        if role is None or role.step is None:
            yield self._remark(
                "role_unknown",
                f"no step of the loop is played by {self._session.role!r}; expected one of"
                f" {', '.join(_PLAYED)}.",
                "role",
            )
            return
        known: dict[str, str] = {}
        for number, turn in enumerate(self._session.turns):
            yield from self._turn(number, turn, role, known)
            known |= {tool.id: tool.name for tool in turn.tools if tool.id is not None}
        yield from self._to_its_end(role)

    def _turn(
        self, number: int, turn: ScenarioTurn, role: Role, known: Mapping[str, str]
    ) -> Iterator[Remark]:
        at = ("turns", number)
        yield from self._references(turn.text, known, *at)
        for place, tool in enumerate(turn.tools):
            where = (*at, "tools", place)
            yield from self._references(tool.input, known, *where)
            yield from self._tool(tool, role, *where)

    def _tool(self, tool: ScenarioToolCall, role: Role, *at: str | int) -> Iterator[Remark]:
        short = tool.name.removeprefix(TOOL_PREFIX)
        ours = tool.name.startswith(TOOL_PREFIX) and short in TOOLS
        if not ours and tool.name not in _CLAUDE_CODE:
            yield self._remark(
                "tool_unknown",
                f"there is no tool {tool.name!r}; {role.name} has"
                f" {', '.join(role.allowed_tools)}.",
                *at,
            )
            return
        if tool.name not in role.allowed_tools:
            note = f"{role.name} has no tool {tool.name}: the session is told so and goes on."
            self.notes.append(self._remark("tool_of_others", note, *at))
        wrong = _misfits(short, tool.input) if ours else _lacking(tool)
        for message in wrong:
            yield self._remark("arguments", f"{tool.name}: {message}.", *at)

    def _references(
        self, value: Any, known: Mapping[str, str], *at: str | int
    ) -> Iterator[Remark]:
        for match in _found(value):
            name, first = match[2], match[3].partition(".")[0]
            if name not in known:
                told = ", ".join(sorted(known)) or "none"
                yield self._remark(
                    "reference_unknown",
                    f"{match[0]}: no earlier turn of this session calls a tool with the id"
                    f" {name!r}; known here: {told}.",
                    *at,
                )
                continue
            fields = _fields(known[name])
            if fields and first not in fields:
                yield self._remark(
                    "field_unknown",
                    f"{match[0]}: {known[name]} answers no {first!r}; expected one of"
                    f" {', '.join(fields)}.",
                    *at,
                )

    def _to_its_end(self, role: Role) -> Iterator[Remark]:
        """Whether each turn is asked for, and no further one."""
        turns, called, reminders = self._session.turns, set[str](), 0
        for number, turn in enumerate(turns):
            called |= {tool.name.removeprefix(TOOL_PREFIX) for tool in turn.tools}
            if turn.tools:
                continue
            owed = [name for name in self._owed(role) if name not in called]
            reminded = bool(owed) and reminders < MOST_REMINDERS
            last = number == len(turns) - 1
            if reminded and last:
                yield self._remark(
                    "turn_missing",
                    f"{role.name} ends here without {owed[0]}, and is reminded of it once: call it,"
                    " or add one more turn.",
                    "turns",
                    number,
                )
            if not reminded and not last:
                yield self._remark(
                    "never_reached",
                    "this turn is never asked for: the one before it calls no tool, which ends the"
                    " session.",
                    "turns",
                    number + 1,
                )
                return
            reminders += reminded
        if turns[-1].tools:
            yield self._remark(
                "turn_missing",
                "the last turn calls a tool, and its result is answered by one more turn: end with"
                " a turn of text.",
                "turns",
                len(turns) - 1,
            )

    def _owed(self, role: Role) -> list[str]:
        return owed_tools(role, of_phase=self._session.experiment == NO_EXPERIMENT)

    def _remark(self, code: str, message: str, *at: str | int) -> Remark:
        return _remark(self._document, self._place, self._session, code, message, *at)


class _Order:
    """The sessions among each other: which of them the loop asks for."""

    def __init__(self, document: FrontMatter, scenario: Scenario, so_far: Reached) -> None:
        self._document, self._scenario, self._so_far = document, scenario, so_far
        self._keys: Collection[SessionKey] = {one.key for one in scenario.sessions}

    def problems(self) -> Iterator[Remark]:
        for place, session in enumerate(self._scenario.sessions):
            if session.role not in _PLAYED:
                continue
            found = self._never(session)
            if found is not None:
                yield _remark(
                    self._document, place, session, "never_reached", f"never played: {found}."
                )
            elif session.role == _OPENS and self._unjudged(session):
                yield _remark(
                    self._document,
                    place,
                    session,
                    "role_missing",
                    f"experiment {session.experiment} is trained, and then the loop asks for an"
                    f" {_JUDGES}, of which there is no session.",
                )

    def notes(self) -> Iterator[Remark]:
        for place, session in enumerate(self._scenario.sessions):
            ended = self._so_far.played.get(session.key[:2], 0)
            if session.attempt.isdecimal() and int(session.attempt) <= ended:
                yield _remark(
                    self._document,
                    place,
                    session,
                    "played_before",
                    "the loop is past it here; a fresh clone plays it.",
                )

    def _never(self, session: ScenarioSession) -> str | None:
        """Why the loop never asks for it."""
        for name in ("experiment", "attempt"):
            value = getattr(session, name)
            least = int(name == "attempt" or session.role not in _OF_PHASES)
            if not value.isdecimal() or int(value) < least:
                return f"its {name} is {value!r}; expected a number from {least}"
        if session.role in _OF_PHASES - _OF_BOTH and session.experiment != NO_EXPERIMENT:
            return f"{session.role} works on a phase: its experiment is {NO_EXPERIMENT}"
        index, attempt = int(session.experiment), int(session.attempt)
        most = self._so_far.most
        if most is not None and index > most:
            return f"the plan allows {most} experiments (budget.experiments)"
        for number in range(self._so_far.experiments + 1, index + 1):
            if not any(key[:2] == (_OPENS, str(number)) for key in self._keys):
                return f"no session of {_OPENS} opens experiment {number}"
        ended = self._so_far.played.get((session.role, session.experiment), 0)
        for number in range(ended + 1, attempt):
            if (session.role, session.experiment, str(number)) not in self._keys:
                return f"attempt {number} comes before it, and there is no such session"
        return None

    def _unjudged(self, session: ScenarioSession) -> bool:
        starts = any(
            tool.name == f"{TOOL_PREFIX}{_STARTS}" for turn in session.turns for tool in turn.tools
        )
        return starts and not any(key[:2] == (_JUDGES, session.experiment) for key in self._keys)


def _remark(
    document: FrontMatter,
    place: int,
    session: ScenarioSession,
    code: str,
    message: str,
    *at: str | int,
) -> Remark:
    line = document.line_of("sessions", place, *at)
    return Remark(
        where=f"{document.where}:{line}",
        code=code,
        message=f"{'/'.join(session.key)}: {message}",
    )


def _found(value: Any) -> Iterator[Any]:
    """Every reference in a value, but for `$${...}`, which stands for itself."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _found(part)
    elif isinstance(value, str):
        yield from (match for match in REFERENCE.finditer(value) if not match[1])


def _fields(name: str) -> tuple[str, ...]:
    short = name.removeprefix(TOOL_PREFIX)
    return tool_of(short).answers if name.startswith(TOOL_PREFIX) and short in TOOLS else ()


def _misfits(tool: str, given: Mapping[str, Any]) -> Iterator[str]:
    """By the tool's own schema. What a reference stands for is known when it is played."""
    validator = jsonschema.Draft202012Validator(tool_of(tool).schema)
    for error in validator.iter_errors(given):
        if isinstance(error.instance, str) and REFERENCE.fullmatch(error.instance):
            continue
        where = ".".join(str(part) for part in error.absolute_path)
        yield f"{where}: {error.message}" if where else error.message


def _lacking(tool: ScenarioToolCall) -> Iterator[str]:
    for name in _CLAUDE_CODE[tool.name]:
        if name not in tool.input:
            yield f"{name!r} is a required property"
