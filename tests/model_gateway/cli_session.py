"""One Agent SDK session, run as a program in a clean environment: reads a JSON object, prints one.

In: cli_path, cwd, prompt, tools, environment (for the CLI). Out: the text of the result, whether it
is an error, and the results of the tools.
"""

import asyncio
import json
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    UserMessage,
    query,
)


async def session(spec: dict) -> dict:
    options = ClaudeAgentOptions(
        cli_path=spec["cli_path"],
        cwd=spec["cwd"],
        env=spec["environment"],
        tools=spec["tools"],
        allowed_tools=spec["tools"],
        system_prompt="Be brief.",
        permission_mode="dontAsk",
        setting_sources=[],
        max_turns=8,
        model=spec.get("model"),
        stderr=lambda line: sys.stderr.write(line + "\n"),
    )
    out: dict = {"said": [], "results": []}
    async for message in query(prompt=spec["prompt"], options=options):
        if isinstance(message, AssistantMessage):
            out["said"] += [block.text for block in message.content if hasattr(block, "text")]
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            out["results"] += [
                block.content for block in message.content if hasattr(block, "tool_use_id")
            ]
        elif isinstance(message, ResultMessage):
            out |= {
                "result": message.result,
                "is_error": message.is_error,
                "models": message.model_usage,
            }
    return out


if __name__ == "__main__":
    print(json.dumps(asyncio.run(session(json.load(sys.stdin)))))
