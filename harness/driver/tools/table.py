"""The table of the agents' tools, as both servers offer them: in-process for the driver's
sessions, stdio for interactive use.

A tool is the function of its name in the module of its name. Its roles stand in the contract; none
of them is a command of the human.
"""

import contextlib
import importlib
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from harness.contract.roles import Role
from harness.domain.plain_text import plain_value
from harness.driver.own_thread import in_own_thread
from harness.driver.tool_context import ToolContext
from harness.driver.tool_server import Handler, OfferedTool
from harness.driver.tools.definition import AgentTool
from harness.errors import HarnessError
from harness.files import strict

EXPERIMENT_TOOLS = (
    "open_experiment",
    "start_run",
    "run_status",
    "evaluation_report",
    "record_result",
    "record_diagnosis",
    "record_methods",
    "record_phase",
    "hand_off",
)
PROGRAM_TOOLS = (
    "specify_training",
    "run_training",
    "training_status",
    "training_lineage",
    "evaluate_model",
    "export_preferences",
)
"""Of training programs. Promoting, rejecting, rolling back and importing are a person's and have no
tool."""
_TAG = re.compile(r"<(?=[A-Za-z/!?|])")
_OF_PHASES = "record_phase"
TOOLS = (*EXPERIMENT_TOOLS, *PROGRAM_TOOLS)


def tool_of(name: str) -> AgentTool[Any]:
    """The tool `name`. Raises KeyError when it is not in the table."""
    if name not in TOOLS:
        raise KeyError(name)
    # Imported when it is offered: a session of the loop needs no module of training programs.
    tool: AgentTool[Any] = getattr(importlib.import_module(f"harness.driver.tools.{name}"), name)
    return tool


def owed_tools(role: Role, *, of_phase: bool) -> list[str]:
    """Names of the role's tools of which its session is reminded, in its work on a phase or not."""
    names = [name for name in role.mcp_tools if tool_of(name).due]
    return [name for name in names if (name == _OF_PHASES) is of_phase]


def session_tools(context: ToolContext) -> list[OfferedTool]:
    """The tools of the context's role, by the contract; each call in a thread of its own."""
    tools = [
        offered(tool_of(name), lambda: contextlib.nullcontext(context))
        for name in context.role.mcp_tools
    ]
    return [replace(tool, handler=_apart(tool.handler)) for tool in tools]


def _apart(handler: Handler) -> Handler:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        return await in_own_thread(handler, arguments)

    return handle


def offered(
    tool: AgentTool[Any], at_context: Callable[[], AbstractContextManager[ToolContext]]
) -> OfferedTool:
    """`tool` as a server offers it. `at_context` opens the context of one call."""

    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with at_context() as context, context.pulse.working(tool.name):
                answer = await tool.call(context, arguments)
                context.done.add(tool.name)
        except HarnessError as error:
            problem = {"code": error.code, "message": error.message, "hint": error.hint}
            return {**_content({"error": problem}), "is_error": True}
        return _content(answer)

    return OfferedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        reads=tool.reads,
        handler=handle,
    )


def _content(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer as JSON: what others said stays inside its string, and looks like no tag."""
    value = plain_value(strict(answer))
    text = _TAG.sub("\\\\u003c", json.dumps(value, ensure_ascii=False, allow_nan=False))
    return {"content": [{"type": "text", "text": text}]}
