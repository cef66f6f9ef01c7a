"""The start of the MCP server in interactive use: the `harness` that wrote the policy, or in the
sandbox of `harness claude` the way to the judge outside, with its `mcp` verb."""

from __future__ import annotations

import os
import sys
import time

from .hook_scene import HookScene
from .judge_socket import CLIENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn


def serve(program: str) -> NoReturn:
    """Become `harness mcp --project ROOT`; without a project or a `harness`, end with a sentence
    that says so."""
    command, root = server(program, os.environ)
    if not root:
        sys.exit(f"harness: {command}")
    os.execv(command, [command, "mcp", "--project", root])


def server(program: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """(path of `harness`, root of the project); (what is wrong, "") when there is nothing to
    start."""
    above = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    scene = HookScene(
        {}, program, {**environment, "CLAUDE_PLUGIN_ROOT": above}, time.time()
    )  # the session's project
    home = scene.home
    if home is None:
        return (
            "no project is here, so there are no tools to offer. `harness init` sets one up.",
            "",
        )
    if home.trouble:
        return f"{home.trouble[1]} {home.trouble[2]}", ""
    command = environment.get(CLIENT) or home.snapshot.get("command")
    if not isinstance(command, str) or not os.access(command, os.X_OK):
        hint = (
            f"A person runs `harness render --project {home.root}`, or installs the harness again."
        )
        return f"the `harness` that wrote the policy, {command}, cannot be run. {hint}", ""
    return command, home.root
