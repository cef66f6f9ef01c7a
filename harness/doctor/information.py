"""What a person should know and what is no guard: agent files, the cage, the MCP server, the plugin."""

import json
from typing import Any

from harness.cage.select import available
from harness.doctor.report import Check, amiss, good, note
from harness.doctor.scene import Scene
from harness.domain.statuses import CageKind


def cage(_scene: Scene) -> Check:
    """Which isolation works on this machine."""
    reasons = available()
    works = next(kind for kind, reason in reasons.items() if reason is None)
    if works is CageKind.NONE:
        why = "; ".join(f"{kind.value}: {reason}" for kind, reason in reasons.items() if reason)
        return note("cage", f"No cage works here, so every score says `not isolated`: {why}.", "Install bubblewrap.")
    return note("cage", f"{works.value} works here")


def mcp_server(scene: Scene) -> Check:
    """Whether `claude` in the project is offered the harness's tools."""
    path = scene.folder / ".mcp.json"
    try:
        value: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        value = {}
    except (OSError, ValueError) as error:
        return amiss("mcp_server", f"{path} is not read: {error}.", "Mend the line that is named.")
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if isinstance(servers, dict) and "harness" in servers:
        return good("mcp_server", ".mcp.json offers the harness's tools")
    return note("mcp_server", ".mcp.json has no server `harness`: `claude` uses the verbs of the command line instead.")
