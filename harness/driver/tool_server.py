"""An MCP server of the agents' tools: over stdio for `claude`, in this process for the loop."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jsonschema
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from harness.contract.roles import MCP_SERVER

_DISTRIBUTION = "experiment-harness"


Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    name: str
    description: str
    input_schema: dict[str, Any]
    reads: bool
    """Whether it changes nothing."""
    handler: Handler
    """Arguments -> {content: [{type: text, text}], is_error}"""


def tool_server(tools: Sequence[OfferedTool]) -> Server[Any]:
    """What is wrong with a call is an answer that the model reads, never a fault of the
    protocol."""
    by_name = {tool.name: tool for tool in tools}
    listed = [_listed(tool) for tool in tools]

    async def on_list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def on_call_tool(_context: Any, params: Any) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            return _error(f"Tool {params.name!r} not found")
        return await _called(tool, params.arguments or {})

    return Server(
        MCP_SERVER,
        version=version(_DISTRIBUTION),
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def _listed(tool: OfferedTool) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "annotations": ToolAnnotations.model_validate({"readOnlyHint": tool.reads}),
        }
    )


async def _called(tool: OfferedTool, arguments: dict[str, Any]) -> CallToolResult:
    try:
        jsonschema.validate(instance=arguments, schema=tool.input_schema)
    except jsonschema.ValidationError as error:
        return _error(f"Input validation error: {error.message}")
    try:
        said = await tool.handler(arguments)
    except (ValueError, OSError) as error:  # e.g. a command line whose quotes do not close
        return _error(str(error))
    return CallToolResult.model_validate(
        {"content": said["content"], "isError": said.get("is_error", False)}
    )


def _error(text: str) -> CallToolResult:
    content = [TextContent(type="text", text=text)]
    return CallToolResult.model_validate({"content": content, "isError": True})
