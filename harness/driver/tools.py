"""The tools through which agents act, one table for both servers: in-process for the driver's
sessions, stdio for interactive use. Each answers one JSON object; none of them is a human verb."""

import contextlib
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

from claude_agent_sdk import SdkMcpTool

from harness.artifacts.next_ideas import CONFIDENCE
from harness.domain.facts import LONGEST_HAND_OFF
from harness.driver.program_context import LONGEST_WAIT_S
from harness.driver.program_tools import PROGRAM_TOOLS
from harness.driver.tool_context import ToolContext
from harness.errors import HarnessError
from harness.files import strict

_EXPERIMENT_ID = {
    "type": "string",
    "description": "Leave it out for the experiment that is worked on.",
}
_ALARM = {"type": "string", "description": "The code of the alarm that it answers."}
_CONFIDENCE = {"type": "string", "enum": list(CONFIDENCE)}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SPECS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "open_experiment": (
        (
            "Open an experiment, one at a time: one hypothesis that its result can refute. Answers"
            " its id and the files that you write for it."
        ),
        {
            "hypothesis": {"type": "string", "description": "One line."},
            "rationale": {"type": "string", "description": "Why it should hold."},
        },
        ["hypothesis", "rationale"],
    ),
    "start_run": (
        (
            "Start training under the harness: one run a seed, of the code as it is now. Answers at"
            " once; seeds that completed with this code are not repeated."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "command": {
                "type": "string",
                "description": "Leave it out for the plan's training entry.",
            },
        },
        [],
    ),
    "run_status": (
        (
            "How the experiment's runs stand, with findings; waits until they ended or wait_seconds"
            " passed."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "wait_seconds": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S},
        },
        [],
    ),
    "evaluation_report": (
        (
            "What the harness recomputed on validation: mean, spread, one value a seed, interval,"
            " and the number to claim."
        ),
        {"experiment_id": _EXPERIMENT_ID},
        [],
    ),
    "record_result": (
        (
            "Write result.md. Claims are the recomputed numbers and no others; the checklist shows"
            " the first shortfall."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "claims": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
            "summary": {"type": "string"},
            "shortfalls": {"type": "array", "items": {"type": "string"}},
        },
        ["summary"],
    ),
    "record_diagnosis": (
        (
            "Write the part of diagnosis.md that is about one run, and add what to try to next.md."
            " The rows that you name are quoted as they were logged."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "run": {"type": "string", "description": "E.g. run-01."},
            "what_happened": {"type": "string", "description": "In order, with row numbers."},
            "mechanism": {
                "type": "string",
                "description": "What caused it, and what speaks against other causes.",
            },
            "alarms": {
                "type": "array",
                "description": "Every open alarm of the run.",
                "items": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string"},
                        "rows": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                    },
                    "required": ["code", "rows"],
                },
            },
            "candidates": {
                "type": "array",
                "description": "What to try next, each a hypothesis that a run can refute.",
                "items": _object(change={"type": "string"}, alarm=_ALARM, confidence=_CONFIDENCE),
            },
        },
        ["run", "what_happened", "mechanism", "alarms", "candidates"],
    ),
    "record_methods": (
        (
            "Write methods.md: published methods that answer the diagnosis. Each is added to"
            " next.md as a candidate."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "methods": {
                "type": "array",
                "items": _object(
                    name={"type": "string"},
                    track={
                        "type": "string",
                        "description": "E.g. optimization, sequence, time series, tabular, image.",
                    },
                    source={"type": "string", "description": "The file, and where in it."},
                    conditions={
                        "type": "string",
                        "description": "Under which its number was measured.",
                    },
                    hypothesis={
                        "type": "string",
                        "description": "What a run of this project would show.",
                    },
                    alarm=_ALARM,
                    confidence=_CONFIDENCE,
                ),
            },
        },
        ["methods"],
    ),
    "hand_off": (
        (
            "Tell the next session what it has to know and cannot read elsewhere: what you tried,"
            " saw and left undone. Its briefing shows it as your claim."
        ),
        {
            "experiment_id": _EXPERIMENT_ID,
            "text": {"type": "string", "description": f"At most {LONGEST_HAND_OFF} characters."},
        },
        ["text"],
    ),
    **PROGRAM_TOOLS,
}
TOOLS = tuple(_SPECS)


def session_tools(context: ToolContext) -> list[SdkMcpTool[Any]]:
    """The tools of the context's role, by the contract. Raises KeyError for a tool that is not in
    the table."""
    return [tool(name, lambda: contextlib.nullcontext(context)) for name in context.role.mcp_tools]


def tool(
    name: str, at_context: Callable[[], AbstractContextManager[ToolContext]]
) -> SdkMcpTool[Any]:
    """The tool `name` of the table; `at_context` gives the context of one call, and is left when
    the call is answered."""
    description, properties, required = _SPECS[name]

    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with at_context() as context, context.pulse.working():
                method: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = getattr(
                    context, name
                )
                answer = await method(arguments)
                context.done.add(name)
        except HarnessError as error:
            said = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
            return {"content": [{"type": "text", "text": _text(said)}], "is_error": True}
        return {"content": [{"type": "text", "text": _text(answer)}]}

    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return SdkMcpTool(name=name, description=description, input_schema=schema, handler=handle)


def _text(value: dict[str, Any]) -> str:
    return json.dumps(strict(value), ensure_ascii=False, allow_nan=False)
