"""The start of the MCP server in interactive use: the `harness` that wrote the policy, or in the
sandbox of `harness claude` the way to the judge outside, with its `mcp` verb."""

from __future__ import annotations

import os
import sys
import time

from .hook_scene import HookScene
from .judge_socket import CLIENT
from .no_tools import serve_no_tools
from .plugin_beside import has_own_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from .projects import HookedProject


UNGUARDED = (
    "No hook of the harness guards this session: it was started in {begun}, and the project is at"
    " {root}. Begin your first answer with that: the person ends this session and starts `claude`"
    " in {root}. Until then change nothing; the harness offers no tools."
)


def serve(program: str) -> NoReturn:
    """Become `harness mcp --project ROOT`; without a usable project or `harness`, end with a
    sentence that says so. Where there is nothing to offer, offer nothing. The last of three words
    on the command line is where the session was started."""
    above = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    named = {**os.environ, "CLAUDE_PLUGIN_ROOT": above}
    scene = HookScene({}, program, named, time.time())  # the session's project
    if scene.installed.root is None and (scene.home is None or has_own_server(scene.home)):
        serve_no_tools("")
    begun = os.path.realpath(sys.argv[2]) if len(sys.argv) > 2 else ""
    if scene.home is not None and begun and begun != scene.home.root:
        serve_no_tools(UNGUARDED.format(begun=begun, root=scene.home.root))
    command, root = server(scene.home, os.environ)
    if not root:
        sys.exit(f"harness: {command}")
    os.execv(command, [command, "mcp", "--project", root])


def server(home: HookedProject | None, environment: Mapping[str, str]) -> tuple[str, str]:
    """(path of `harness`, root of the project); (what is wrong, "") when nothing can be started."""
    if home is None:
        return "the project of this server is gone. `harness init` sets it up again.", ""
    if home.trouble:
        return f"{home.trouble[1]} {home.trouble[2]}", ""
    command = environment.get(CLIENT) or home.snapshot.get("command")
    if not isinstance(command, str) or not os.access(command, os.X_OK):
        hint = (
            f"A person runs `harness render --project {home.root}`, or installs the harness again."
        )
        return f"the `harness` that wrote the policy, {command}, cannot be run. {hint}", ""
    return command, home.root
