"""The JSON that Claude Code reads: hook entries, tool servers,
plugin manifest and market."""

import shlex
from importlib.metadata import version
from typing import Any

from harness.contract.installation import (
    OWN_HOOKS,
    PLUGIN,
    PLUGIN_VARIABLE,
    PROJECT_VARIABLE,
    VENDORED,
)
from harness.contract.roles import ASKED_VERBS, MCP_SERVER, ROLES
from harness.contract.slash_commands import SLASH_COMMANDS, UNASKED_VERBS
from harness.guard.hooks.table import ISOLATED, PROGRAM, STATUS_LINE, hooks_section

PACKAGE = "experiment-harness"
SYSTEM_PYTHON = "/usr/bin/python3"
"""For the plugin and this repository; `harness init` chooses
that of a project."""
_LAUNCHER = "mcp.py"
_CLIMB = (
    "import os,runpy,sys;n,p=sys.argv[1],os.path.realpath(sys.argv[2]);u=[p];"
    "[u.append(os.path.dirname(u[-1])) for _ in p.split(os.sep)];"
    "f=[os.path.join(d,n) for d in u if os.path.isfile(os.path.join(d,'.harness/config.toml'))];"
    "runpy.run_path(next(filter(os.path.isfile,f),os.path.join(p,n)),run_name='__main__')"
)
"""Starts argv[1] of the nearest folder at or above argv[2]. Claude Code reads .mcp.json also in a
session that was started below its folder, where no hook of the project runs; the server says so."""
_REFRESH_S = 5
"""Between two looks of the status line at a training that goes
on while the session is idle."""
_ABOUT = "Claude runs machine-learning experiments; the harness decides what is true about them."


def project_hooks(interpreter: str) -> dict[str, Any]:
    """The hooks section of a project's settings."""
    return hooks_section(interpreter, f"{PROJECT_VARIABLE}/{VENDORED}")


def project_status_line(interpreter: str) -> dict[str, Any]:
    """The status line of a project's settings; a shell runs it,
    so the variable is the shell's."""
    program = f'"{PROJECT_VARIABLE}"/{VENDORED}/{PROGRAM}'
    words = [shlex.quote(interpreter), *ISOLATED, program, STATUS_LINE.name]
    return {"type": "command", "command": " ".join(words), "refreshInterval": _REFRESH_S}


def project_server(interpreter: str) -> dict[str, Any]:
    """The entry of a project's .mcp.json."""
    return _project_server(interpreter, VENDORED)


def allowed_rules() -> tuple[str, ...]:
    """The permission rules of `harness init --allow`: the harness's tools, verbs that decide
    nothing, and what the judge of `harness claude` asks the person itself; elsewhere a hook denies
    these."""
    asked = [" ".join(words) for words in ASKED_VERBS if not words[-1].startswith("-")]
    return (
        f"mcp__{MCP_SERVER}",
        *(f"Bash(harness {verb}:*)" for verb in (*UNASKED_VERBS, *asked)),
    )


def own_settings() -> dict[str, Any]:
    """.claude/settings.json of the harness's own repository."""
    return {"hooks": hooks_section(SYSTEM_PYTHON, f"{PROJECT_VARIABLE}/{OWN_HOOKS}")}


def own_servers() -> dict[str, Any]:
    """.mcp.json of the harness's own repository; in the plugin the manifest's servers win."""
    return {"mcpServers": {MCP_SERVER: _project_server(SYSTEM_PYTHON, OWN_HOOKS)}}


def plugin_hooks() -> dict[str, Any]:
    """hooks/hooks.json."""
    return {
        "description": _ABOUT,
        "hooks": hooks_section(SYSTEM_PYTHON, f"{PLUGIN_VARIABLE}/{OWN_HOOKS}"),
    }


def plugin_manifest() -> dict[str, Any]:
    """.claude-plugin/plugin.json; hooks/hooks.json is found
    without being named."""
    return {
        "name": PLUGIN,
        "version": version(PACKAGE),
        "description": _ABOUT,
        "author": {"name": PACKAGE},
        "license": "Apache-2.0",
        "agents": [f"./agents/{role.name}.md" for role in ROLES],
        "commands": [f"./commands/{command.name}.md" for command in SLASH_COMMANDS],
        "mcpServers": {
            MCP_SERVER: _server(SYSTEM_PYTHON, f"{PLUGIN_VARIABLE}/{OWN_HOOKS}/{_LAUNCHER}")
        },
    }


def plugin_market() -> dict[str, Any]:
    """.claude-plugin/marketplace.json: the plugin is installed
    from a clone of this repository."""
    return {
        "name": PACKAGE,
        "owner": {"name": PACKAGE},
        "description": _ABOUT,
        "plugins": [{"name": PLUGIN, "source": "./", "description": _ABOUT}],
    }


def _project_server(interpreter: str, folder: str) -> dict[str, Any]:
    # There the project's folder is only a variable of Claude Code's own environment. If it is not
    # set, the server's working directory is that folder: hence the default `.`.
    begun = PROJECT_VARIABLE.replace("}", ":-.}")
    return _server(interpreter, "-c", _CLIMB, f"{folder}/{_LAUNCHER}", begun)


def _server(interpreter: str, *words: str) -> dict[str, Any]:
    return {"type": "stdio", "command": interpreter, "args": [*ISOLATED, *words]}
