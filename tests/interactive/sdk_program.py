"""One Agent SDK session as a program, so that it starts with a clean environment: reads a JSON
object, prints one.

In: cli, cwd, prompts, and options of ClaudeAgentOptions by name. No hook and no callback of the SDK
is set: what is denied was denied by what stands in the project or in a plugin. Out: init (the CLI's
first message), said, calls {id: {name, input, subagent}}, results {id: {text, error}}, ends
[{subtype, is_error, result, denials}], stderr.
"""

import asyncio
import json
import sys
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    UserMessage,
)


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(item.get("text", "")) for item in content if isinstance(item, dict))
    return str(content)


def take(message: Any, out: dict[str, Any]) -> None:
    if isinstance(message, SystemMessage) and message.subtype == "init":
        out["init"] = out["init"] or message.data
    elif isinstance(message, AssistantMessage):
        for block in message.content:
            if hasattr(block, "text"):
                out["said"].append(block.text)
            elif hasattr(block, "input"):
                within = message.parent_tool_use_id
                out["calls"][block.id] = {
                    "name": block.name,
                    "input": block.input,
                    "subagent": within,
                }
    elif isinstance(message, UserMessage) and isinstance(message.content, list):
        for block in message.content:
            if hasattr(block, "tool_use_id"):
                out["results"][block.tool_use_id] = {
                    "text": text_of(block.content),
                    "error": bool(block.is_error),
                }
    elif isinstance(message, ResultMessage):
        denials = [str(item.get("tool_use_id")) for item in message.permission_denials or []]
        end = {
            "subtype": message.subtype,
            "is_error": message.is_error,
            "result": message.result,
            "denials": denials,
        }
        out["ends"].append(end)


async def session(spec: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "init": None,
        "said": [],
        "calls": {},
        "results": {},
        "ends": [],
        "stderr": [],
    }
    options = ClaudeAgentOptions(
        cli_path=spec["cli"], cwd=spec["cwd"], stderr=out["stderr"].append, **spec["options"]
    )
    async with ClaudeSDKClient(options) as client:
        for prompt in spec["prompts"]:
            await client.query(prompt)
            async for message in client.receive_response():
                take(message, out)
    return out


if __name__ == "__main__":
    print(json.dumps(asyncio.run(session(json.load(sys.stdin)))))
