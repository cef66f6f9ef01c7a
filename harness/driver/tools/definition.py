"""What an agent's tool is: name, typed arguments, JSON schema, method, and when it is due."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.driver.tool_context import ToolContext

LONGEST_WAIT_S = 600.0
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}

Arguments = TypeVar("Arguments")
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AgentTool(Generic[Arguments]):
    name: str
    description: str
    """What it does and answers; models and docs/tools.md read it."""
    arguments: type[Arguments]
    """A frozen dataclass whose fields are declared with `argument`."""
    method: Callable[[ToolContext, Arguments], Awaitable[Answer]]
    due: str = ""
    """The reminder for a role that ends its turn without a call; empty if the tool is optional."""
    reads: bool = False
    """Whether it changes nothing but the harness's own pages; Claude Code then does not ask the
    person for it in plan mode."""
    answers: tuple[str, ...] = ()
    """The fields of its answer: what a scenario may refer to. Empty: not declared."""

    @property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.arguments)

    async def call(self, context: ToolContext, arguments: Mapping[str, Any]) -> Answer:
        """Run it with the JSON `arguments`, which the schema allows."""
        return await self.method(context, _read(self.arguments, arguments))


def agent_tool(
    description: str,
    *,
    due: str = "",
    reads: bool = False,
    answers: tuple[str, ...] = (),
) -> Callable[[Callable[[ToolContext, Arguments], Awaitable[Answer]]], AgentTool[Arguments]]:
    """Make a function the tool of its name; the type of its parameter `arguments` declares them."""

    def made(
        method: Callable[[ToolContext, Arguments], Awaitable[Answer]],
    ) -> AgentTool[Arguments]:
        return AgentTool(
            name=method.__name__,
            description=description,
            arguments=get_type_hints(method)["arguments"],
            method=method,
            due=due,
            reads=reads,
            answers=answers,
        )

    return made


def argument(description: str = "", *, default: Any = MISSING, **schema: Any) -> Any:
    """A field of a tool's arguments; `schema` adds to the JSON schema made from its type."""
    if description:
        schema["description"] = description
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=schema)
    return field(default=default, metadata=schema)


@dataclass(frozen=True, kw_only=True)
class ExperimentArguments:
    experiment: str | None = argument("Leave it out for the current experiment.", default=None)


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type. `T | None` may be left out; it may not be null."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {
            "type": "object",
            "properties": {
                field.name: {**schema_of(hints[field.name]), **field.metadata}
                for field in fields(kind)
            },
            "required": [field.name for field in fields(kind) if _is_required(field)],
            **({} if getattr(kind, "MAY_HOLD_MORE", False) else {"additionalProperties": False}),
        }
    if kind in JSON_TYPES:
        return {"type": JSON_TYPES[kind]}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"type": "string", "enum": [member.value for member in kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if origin in (Union, UnionType):
        options = [schema_of(option) for option in inner if option is not NoneType]
        return options[0] if len(options) == 1 else {"anyOf": options}
    raise TypeError(f"A tool's argument has the type {kind!r}, which has no JSON schema.")


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _read(kind: Any, value: Any) -> Any:
    """`value` as the type `kind`: objects become dataclasses, words become enum members."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        known = {field.name for field in fields(kind)}
        return kind(**{name: _read(hints[name], value[name]) for name in known & set(value)})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    if get_origin(kind) is list:
        return [_read(get_args(kind)[0], part) for part in value]
    if get_origin(kind) in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not NoneType]
        return _read(options[0], value) if len(options) == 1 else value
    return value
