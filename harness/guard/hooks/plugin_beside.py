"""The plugin in a project that has the harness's hooks itself: the project's answer, and the
plugin's step back, so that nothing is told and recorded twice. Its guards judge all the same: a
second denial harms nobody, and what a receipt says may be forged."""

from __future__ import annotations

import os

from .projects import MANIFEST, SETTINGS, read_json
from .session_receipts import PLUGIN, lines_back, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hook_scene import HookScene
    from .projects import HookedProject

VENDORED = os.path.join(".claude", "hooks", "harness")
SERVERS = ".mcp.json"
SERVER = "harness"
"""A test holds these equal to the contract's: hooks import nothing but this library."""


def steps_back(call: dict[str, Any], scene: HookScene, *, beginning: bool) -> bool:
    """Whether this is the plugin's hook and the project's own answer in this session.

    That the settings name them is not enough: a session may have been started without the project's
    settings. At its beginning nobody knows; from then on its newest receipt says whose hooks run.
    """
    home = scene.home
    if scene.installed.root is not None or home is None or not has_own_hooks(home):
        return False
    begun = scene.environment.get("CLAUDE_PROJECT_DIR")
    if begun and os.path.realpath(begun) != home.root:
        return False  # below the project, where Claude Code reads none of its settings
    if beginning:
        return True
    newest = next(lines_back(home, session_of(call)), None)
    return newest is not None and newest.get("hooks") != PLUGIN


def has_own_hooks(home: HookedProject) -> bool:
    """Whether the project's settings start every guard that was installed into it."""
    manifest, _ = read_json(os.path.join(home.root, VENDORED, MANIFEST))
    section = manifest.get("settings") if isinstance(manifest, dict) else None
    settings, _ = read_json(os.path.join(home.root, SETTINGS))
    if not isinstance(section, dict) or not isinstance(settings, dict):
        return False
    from .settings_guard import missing_guards  # it takes time, and few projects come so far

    return not missing_guards(settings, section)


def has_own_server(home: HookedProject) -> bool:
    """Whether the project's .mcp.json offers the harness's tools."""
    value, _ = read_json(os.path.join(home.root, SERVERS))
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    return isinstance(servers, dict) and SERVER in servers
