"""A role's prompt, from the contract and its templates: the system prompt of its sessions and its
agent file."""

import re
from typing import Any

from harness.contract.installation import PLUGIN
from harness.contract.roles import MCP_SERVER, OFF_LIMITS_FOR_ALL, Role, project_path
from harness.domain import variables
from harness.rendering.sources import fill, has_template

BANNER = (
    "<!-- Rendered by `harness render` from the contract and templates/agents/; an edit here is"
    " overwritten. -->"
)

_PLUGIN_TOOL = f"mcp__plugin_{PLUGIN}_{MCP_SERVER}__"


def system_prompt(role: Role) -> str:
    """What the role's sessions are told, whatever the experiment: the body of its agent file."""
    values: dict[str, Any] = {"role": role, "variables": variables}
    part = f"agents/parts/{role.name}.md.j2"
    text = fill(
        "agents/body.md.j2",
        path=project_path,
        off_limits_for_all=OFF_LIMITS_FOR_ALL,
        part=fill(part, **values).strip() if has_template(part) else "",
        **values,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def agent_file(role: Role, *, plugin: bool = False) -> str:
    """The role as Claude Code's agent definition: front matter, banner, prompt.

    The tools of a plugin's server have names of their own; an agent of the plugin may meet either
    server.
    """
    tools = (*role.allowed_tools, *(f"{_PLUGIN_TOOL}{tool}" for tool in role.mcp_tools if plugin))
    return fill(
        "agents/agent.md.j2",
        role=role,
        tools=tools,
        banner=BANNER,
        body=system_prompt(role).rstrip(),
    )
