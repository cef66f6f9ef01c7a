"""Scenario files: what a scripted model says, session by session and turn by turn.

They are read for the scripted gateway; `Recording` writes one from live answers.
"""

import os
import re
import threading
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from harness.artifacts.front_matter import FrontMatter, read_yaml
from harness.domain.credentials import secret_values, without_credentials
from harness.errors import GatewayError, UsageError
from harness.files import atomic_write
from harness.model_gateway.wire import RecordedRequest

REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z][A-Za-z0-9_-]*)\.([A-Za-z0-9_.-]+)\}")
"""`${id.field}` or `${id.list.0}`; `$${id.field}` stands for the text itself."""
_TOOL_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_WORD = re.compile(r"[a-z][a-z_]{2,}(?:-[a-z]+)*\Z")
_WIRE_ID = re.compile(r"toolu_[A-Za-z0-9_]+")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScenarioToolCall(_Strict):
    id: str | None = None
    """How later turns refer to the result: `${id.field}`."""
    name: str = Field(min_length=1)
    input: dict[str, Any] = Field(default_factory=dict)

    @field_validator("id")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and not _TOOL_ID.match(value):
            raise ValueError("expected a letter, then letters, digits, '_' or '-'")
        return value


class ScenarioTurn(_Strict):
    text: str = ""
    tools: tuple[ScenarioToolCall, ...] = ()
    expect: tuple[str, ...] = ()
    """Words that the new part of the request must contain: the prompt or the tool results."""

    @field_validator("expect", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> "ScenarioTurn":
        if not self.text and not self.tools:
            raise ValueError("expected text, tools or both")
        return self


class ScenarioSession(_Strict):
    role: str = Field(min_length=1)
    experiment: str = "1"
    attempt: str = "1"
    turns: tuple[ScenarioTurn, ...] = Field(min_length=1)

    @field_validator("experiment", "attempt", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _ids_once(self) -> "ScenarioSession":
        ids = Counter(tool.id for turn in self.turns for tool in turn.tools if tool.id is not None)
        if twice := [name for name, count in ids.items() if count > 1]:
            raise ValueError(f"the tool id {twice[0]!r} is used twice in this session")
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        return self.role, self.experiment, self.attempt


class Scenario(_Strict):
    sessions: tuple[ScenarioSession, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sessions_once(self) -> "Scenario":
        keys = Counter(session.key for session in self.sessions)
        if twice := [key for key, count in keys.items() if count > 1]:
            role, experiment, attempt = twice[0]
            raise ValueError(
                f"two sessions for role {role}, experiment {experiment}, attempt {attempt}"
            )
        return self

    def session(self, role: str, experiment: str, attempt: str) -> ScenarioSession | None:
        return next(
            (session for session in self.sessions if session.key == (role, experiment, attempt)),
            None,
        )


def read_scenario(path: Path) -> Scenario:
    """Read a scenario. Raises UsageError that lists every problem with its line, field and the
    expected form."""
    return scenario_in(read_document(path))


def read_document(path: Path, copy: Path | None = None) -> FrontMatter:
    """The file, or its copy, as YAML, with its lines. Raises UsageError."""
    try:
        text = (copy or path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The scenario {path} cannot be read: {error}.",
            hint="Give the path of a YAML file.",
            code="scenario_invalid",
        ) from error
    return read_yaml(text, where=str(path))


def scenario_in(document: FrontMatter) -> Scenario:
    """Raises UsageError as `read_scenario`."""
    try:
        return Scenario.model_validate(document.data)
    except ValidationError as error:
        problems = "\n".join(_problem(document, entry) for entry in error.errors())
        raise UsageError(
            problems,
            hint="Correct these lines; docs/formats.md has the form.",
            code="scenario_invalid",
        ) from error


def _problem(document: FrontMatter, entry: Any) -> str:
    path = tuple(entry["loc"])
    name = ".".join(str(part) for part in path) or "scenario"
    if entry["type"] == "missing":
        what = "missing; it is required"
    elif entry["type"] == "extra_forbidden":
        what = "unknown key"
    else:
        what = f"found {entry['input']!r:.80}; {entry['msg'].removeprefix('Value error, ')}"
    return f"{document.where}:{document.line_of(*path)}: {name}: {what}."


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes every string that YAML 1.1 or 1.2 could read as something other than a string."""


def _string(dumper: _Dumper, text: str) -> Any:
    style = None if _WORD.match(text) else "|" if "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


RECORDED = "# Recorded from a live session; replay it with `harness run PLAN --scenario FILE`.\n"


class Recording:
    """An observer for `Live`: `Live(..., observe=Recording(path))`.

    The file is replaced after every answer. It holds the model's text and the inputs of its tools,
    word for word but for credentials, and no headers, thinking or requests. A repeated turn
    replaces the earlier one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turns: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __call__(self, request: RecordedRequest, message: dict[str, Any]) -> None:
        """Raises GatewayError for a subagent's request: a scenario cannot hold one."""
        if request.subagent is not None:
            raise GatewayError(
                f"{request.where}: a subagent sent a request; a scenario cannot hold subagents.",
                hint="Record a session without the Agent tool.",
            )
        with self._lock:
            asker = request.asker
            session = self._turns.setdefault((asker.role, asker.experiment, asker.attempt), {})
            session[request.turn] = recorded_turn(request.turn, message.get("content"))
            atomic_write(self.path, as_yaml(self._turns))


def as_yaml(
    turns: dict[tuple[str, str, str], dict[int, dict[str, Any]]], head: str = RECORDED
) -> str:
    """The scenario: sessions in the order of their first answers, each up to its first missing
    turn. `head`: its first lines."""
    sessions = []
    for (role, experiment, attempt), known in turns.items():
        whole: list[dict[str, Any]] = []
        while len(whole) in known:
            whole.append(known[len(whole)])
        if whole:
            sessions.append(
                {"role": role, "experiment": experiment, "attempt": attempt, "turns": whole}
            )
    text = yaml.dump(
        {"sessions": sessions}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
    )
    return f"{head}{text}"


def recorded_turn(number: int, content: Any) -> dict[str, Any]:
    """A turn from the content blocks of a model's answer, without the credentials in it."""
    known = [block for block in content or () if isinstance(block, dict)]
    uses = [block for block in known if block.get("type") == "tool_use"]
    names = {block["id"]: tool_name(number, place) for place, block in enumerate(uses)}
    text = "\n\n".join(
        block["text"] for block in known if block.get("type") == "text" and block.get("text")
    )
    secret = secret_values(os.environ)
    turn: dict[str, Any] = {}
    if text or not uses:
        turn["text"] = _plain(text or "(no text)", names, secret)
    if uses:
        turn["tools"] = [
            {
                "id": names[use["id"]],
                "name": use["name"],
                "input": _plain(use["input"], names, secret),
            }
            for use in uses
        ]
    return turn


def tool_name(turn: int, place: int) -> str:
    """What a recorded tool call is called, from the turn's and its own place, from 0."""
    return f"turn-{turn + 1}-{place + 1}"


def _plain(value: Any, names: dict[str, str], secret: Collection[str]) -> Any:
    """Tool use ids of the service become the scenario's; text that looks like a reference stays
    text."""
    if isinstance(value, dict):
        return {key: _plain(part, names, secret) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, names, secret) for part in value]
    if not isinstance(value, str):
        return value
    words = _WIRE_ID.sub(lambda match: names.get(match[0], match[0]), value)
    return REFERENCE.sub(lambda match: "$" + match[0], without_credentials(words, secret))
