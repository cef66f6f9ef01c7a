"""Fills the templates from the contract: system prompts, agent files and slash commands."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.contract.installation import PLUGIN
from harness.contract.roles import (
    HOW_TO_DECIDE,
    MCP_SERVER,
    OFF_LIMITS_FOR_ALL,
    Role,
    project_path,
)
from harness.contract.slash_commands import SlashCommand
from harness.domain import variables

TEMPLATES = Path(__file__).with_name("templates")
"""A link to `templates/` in a checkout; a folder in an installed package."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def fill(name: str, **values: Any) -> str:
    """The template `name`, filled. Raises jinja2.UndefinedError for a missing value."""
    return _environment().get_template(name).render(**values)


def has_template(name: str) -> bool:
    return (TEMPLATES / name).is_file()


COMMAND_BANNER = (
    "<!-- Rendered by `harness render` from the contract and templates/commands/; an edit here is"
    " overwritten. -->"
)


def command_file(command: SlashCommand) -> str:
    """The command as Claude Code reads it; its front matter allows only its verbs."""
    return fill(
        "commands/command.md.j2",
        command=command,
        rules=[f"Bash(harness {verb}:*)" for verb in command.verbs],
        banner=COMMAND_BANNER,
        body=fill(f"commands/{command.name}.md.j2", how_to_decide=HOW_TO_DECIDE).rstrip(),
    )


AGENT_BANNER = (
    "<!-- Rendered by `harness render` from the contract and templates/agents/; an edit here is"
    " overwritten. -->"
)

_PLUGIN_TOOL = f"mcp__plugin_{PLUGIN}_{MCP_SERVER}__"


def system_prompt(role: Role) -> str:
    """The system prompt of the role's sessions, and the body of its agent file."""
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
    """The role as Claude Code's agent definition: front matter, banner, prompt."""
    # An agent of the plugin may meet either server, and each gives the tools names of its own.
    tools = (*role.allowed_tools, *(f"{_PLUGIN_TOOL}{tool}" for tool in role.mcp_tools if plugin))
    return fill(
        "agents/agent.md.j2",
        role=role,
        tools=tools,
        banner=AGENT_BANNER,
        body=system_prompt(role).rstrip(),
    )
