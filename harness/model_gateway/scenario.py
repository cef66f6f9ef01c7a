"""Scenario files: what a scripted model says, session by session and turn by turn."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness.artifacts.front_matter import FrontMatter, read_yaml
from harness.errors import UsageError

_TOOL_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Strict):
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


class Turn(_Strict):
    text: str = ""
    tools: tuple[Tool, ...] = ()
    expect: tuple[str, ...] = ()
    """Words that must stand in what the request brings new: the prompt or the tool results."""

    @field_validator("expect", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> "Turn":
        if not self.text and not self.tools:
            raise ValueError("expected text, tools or both")
        return self


class Session(_Strict):
    role: str = Field(min_length=1)
    experiment: str = "1"
    attempt: str = "1"
    turns: tuple[Turn, ...] = Field(min_length=1)

    @field_validator("experiment", "attempt", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _ids_once(self) -> "Session":
        ids = Counter(tool.id for turn in self.turns for tool in turn.tools if tool.id is not None)
        if twice := [name for name, count in ids.items() if count > 1]:
            raise ValueError(f"the tool id {twice[0]!r} is used twice in this session")
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        return self.role, self.experiment, self.attempt


class Scenario(_Strict):
    sessions: tuple[Session, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sessions_once(self) -> "Scenario":
        keys = Counter(session.key for session in self.sessions)
        if twice := [key for key, count in keys.items() if count > 1]:
            role, experiment, attempt = twice[0]
            raise ValueError(
                f"two sessions for role {role}, experiment {experiment}, attempt {attempt}"
            )
        return self

    def session(self, role: str, experiment: str, attempt: str) -> Session | None:
        return next(
            (item for item in self.sessions if item.key == (role, experiment, attempt)), None
        )


def read_scenario(path: Path) -> Scenario:
    """Read a scenario. Raises UsageError that lists every problem with line, field and what was
    expected."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The scenario {path} cannot be read: {error}.",
            hint="Give the path of a YAML file.",
            code="scenario_invalid",
        ) from error
    return parse_scenario(text, where=str(path))


def parse_scenario(text: str, *, where: str) -> Scenario:
    document = read_yaml(text, where=where)
    try:
        return Scenario.model_validate(document.data)
    except ValidationError as error:
        problems = "\n".join(_problem(document, where, item) for item in error.errors())
        raise UsageError(
            problems, hint="Correct these lines; docs has the form.", code="scenario_invalid"
        ) from error


def _problem(document: FrontMatter, where: str, item: Any) -> str:
    path = tuple(item["loc"])
    name = ".".join(str(part) for part in path) or "scenario"
    if item["type"] == "missing":
        what = "missing; it is required"
    elif item["type"] == "extra_forbidden":
        what = "unknown key"
    else:
        what = f"found {item['input']!r:.80}; {item['msg'].removeprefix('Value error, ')}"
    return f"{where}:{document.line_of(*path)}: {name}: {what}."
