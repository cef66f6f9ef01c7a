"""A role's prompt, from the contract and its templates: the system prompt of its sessions and its agent file."""

import re
from typing import Any

from harness.contract.roles import OFF_LIMITS_FOR_ALL, Role, project_path
from harness.domain import variables
from harness.rendering.sources import fill, has_template

BANNER = "<!-- Rendered by `harness render` from the contract and templates/agents/; an edit here is overwritten. -->"


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


def agent_file(role: Role) -> str:
    """The role as Claude Code's agent definition: front matter, banner, prompt."""
    return fill("agents/agent.md.j2", role=role, banner=BANNER, body=system_prompt(role).rstrip())
