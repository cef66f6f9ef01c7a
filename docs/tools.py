"""Renders docs/tools.md from the table of the agents' tools and the roles of the contract.

`python docs/tools.py` writes it; with `--check` it writes nothing and exits 1 if it would change.
"""

import sys
from pathlib import Path
from typing import Any

from harness.contract.roles import MCP_SERVER, ROLES
from harness.driver.tools.definition import AgentTool
from harness.driver.tools.table import EXPERIMENT_TOOLS, PROGRAM_TOOLS, tool_of

PAGE = Path(__file__).resolve().parent / "tools.md"
HEAD = f"""<!-- Rendered by docs/tools.py from harness/driver/tools/ and the roles; edit those. -->
# The agents' tools

Agents act through these tools: sessions of the loop have them in process, `harness mcp` serves them
to `claude` in a repository. Their full names are `mcp__{MCP_SERVER}__<tool>`. Each answers one JSON
object, or `error: {{code, message, hint}}`. A role may call only its own tools. Where a reminder is
given, a role that ends its turn without a successful call gets that text once. What changes no
more than the harness's pages says so to Claude Code (`readOnlyHint`), which then does not ask for
it in plan mode.

A new tool is one file `harness/driver/tools/<tool>.py`, one row in `table.py` beside it, and its
name in a role's `mcp_tools` (`harness/contract/roles.py`).
"""


def page() -> str:
    parts = [HEAD, "## Experiments\n"]
    parts += [_section(tool_of(name)) for name in EXPERIMENT_TOOLS]
    parts += [
        "## Training programs\n\n`harness mcp` offers these only in a project that has a program or"
        " weights of a base model.\n"
    ]
    parts += [_section(tool_of(name)) for name in PROGRAM_TOOLS]
    return "\n".join(parts)


def _section(tool: AgentTool[Any]) -> str:
    roles = ", ".join(role.name for role in ROLES if tool.name in role.mcp_tools)
    lines = [f"### {tool.name}", "", tool.description, "", f"- roles: {roles}"]
    if tool.reads:
        lines.append("- changes nothing but the pages of the harness")
    if tool.due:
        lines.append(f"- reminder: {tool.due}")
    if tool.answers:
        lines.append(f"- answers: {', '.join(f'`{name}`' for name in tool.answers)}")
    lines += ["", "| argument | type | required | meaning |", "|---|---|---|---|"]
    required = tool.schema["required"]
    for name, schema in tool.schema["properties"].items():
        needed = "yes" if name in required else "no"
        lines.append(
            f"| `{name}` | {_kind(schema)} | {needed} | {schema.get('description', '')} |"
        )
    return "\n".join(lines) + "\n"


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in words, for a cell of a table."""
    if "enum" in schema:
        return "one of " + ", ".join(f"`{word}`" for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if schema["type"] == "array":
        return f"array of {_kind(schema['items'])}"
    if "properties" in schema:
        return "object of " + ", ".join(
            f"`{name}` ({_kind(part)})" for name, part in schema["properties"].items()
        )
    if schema["type"] == "object":
        return f"object of {_kind(schema['additionalProperties'])}"
    limits = [f"{word} {schema[word]:g}" for word in ("minimum", "maximum") if word in schema]
    return ", ".join([schema["type"], *limits])


def main(arguments: list[str]) -> int:
    rendered = page()
    if PAGE.is_file() and PAGE.read_text("utf-8") == rendered:
        return 0
    if "--check" in arguments:
        print(f"{PAGE} is not what the tools say; run `python docs/tools.py`.", file=sys.stderr)
        return 1
    PAGE.write_text(rendered, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
