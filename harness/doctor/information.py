"""Checks of other things than guards: agent files, sandbox, MCP server, plugin."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.contract.installation import AGENTS, MCP_SERVERS
from harness.contract.roles import MCP_SERVER
from harness.doctor.report import INSTALL, DoctorCheck, amiss, broken, doctor_check, good, note
from harness.doctor.subject import DoctorSubject
from harness.domain.statuses import HooksMode, SandboxKind
from harness.guard.agent_files import read_agents
from harness.guard.hooks.projects import Projects
from harness.guard.hooks.tool_server import server
from harness.sandbox.select import available


@doctor_check
def hooks_installed(subject: DoctorSubject) -> DoctorCheck:
    """How hooks reach a session here, and whether the doctor can see them."""
    if subject.mode is HooksMode.PROJECT:
        return good("hooks come from the project's own settings")
    if subject.plugin is not None:
        return good(f"hooks come from the plugin at {subject.plugin}")
    if subject.mode is HooksMode.PLUGIN:
        return note(
            "Hooks come from the plugin, but whether `claude` loads it is unknown here:"
            " only processes of the plugin get its folder (CLAUDE_PLUGIN_ROOT)."
            f" {_last_session(subject)}",
            "In `claude`, /plugin lists it; every tool call of a guarded session leaves a line in"
            " the receipts.",
        )
    if subject.chosen is HooksMode.NONE:
        return note(
            'config.toml says hooks = "none": interactive sessions are not guarded.',
            INSTALL,
        )
    return broken("No hook is installed, so interactive sessions are not guarded.", INSTALL)


def _last_session(subject: DoctorSubject) -> str:
    project = Projects().at(str(subject.folder))
    receipts = (
        sorted(Path(project.receipts).glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        if project
        else []
    )
    if not receipts:
        return "No session has written receipts yet."
    when = datetime.fromtimestamp(receipts[-1].stat().st_mtime, UTC)
    return f"The last session with receipts is {receipts[-1].stem}, {when:%Y-%m-%d %H:%M} UTC."


@doctor_check
def sandbox(_subject: DoctorSubject) -> DoctorCheck:
    """Which isolation works on this machine."""
    reasons = available()
    works = next(kind for kind, reason in reasons.items() if reason is None)
    if works is SandboxKind.NONE:
        why = "; ".join(f"{kind.value}: {reason}" for kind, reason in reasons.items() if reason)
        return note(
            f"No sandbox works here, so every score says `not isolated`: {why}.",
            "Install bubblewrap.",
        )
    return note(f"{works.value} works here")


@doctor_check
def isolated_session(_subject: DoctorSubject) -> DoctorCheck:
    """How to get a session that cannot reach the judge."""
    works = next(kind for kind, reason in available().items() if reason is None)
    if works is SandboxKind.NONE:
        return note(
            "No session can be isolated from the judge here, so scores say"
            " `recomputed, session not isolated`.",
            "Install bubblewrap; then start Claude with `harness claude`.",
        )
    return note(
        "A plain `claude` session is not isolated from the judge, so its scores say"
        f" `recomputed, session not isolated`; `harness claude` isolates it ({works.value}).",
        "Start Claude with `harness claude`.",
    )


@doctor_check
def agent_files(subject: DoctorSubject) -> DoctorCheck:
    """Whether Claude Code reads the project's agents as written."""
    try:
        broken = [agent for agent in read_agents(subject.folder / AGENTS) if agent.problems]
    except OSError as error:
        return amiss(
            f"The agent files cannot be read: {error}.",
            "Correct the permissions of that path.",
        )
    if broken:
        named = " ".join(
            f"{agent.path.name}: {problem}" for agent in broken for problem in agent.problems
        )
        return amiss(
            f"Claude Code may read these agent files differently. {named}",
            "Correct the files named above.",
        )
    return good("Claude Code reads the project's agent files as written")


@doctor_check
def mcp_server(subject: DoctorSubject) -> DoctorCheck:
    """Whether `claude` in the project is offered the harness's tools."""
    path = subject.folder / MCP_SERVERS
    try:
        value: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        value = {}
    except (OSError, ValueError) as error:
        return amiss(f"{path} cannot be read: {error}.", "Correct that line.")
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if subject.mode is HooksMode.PLUGIN:
        return note("The plugin brings the harness's tools.")
    if not isinstance(servers, dict) or MCP_SERVER not in servers:
        return note(
            f"{path.name} has no server `{MCP_SERVER}`: `claude` uses the command line instead.",
        )
    program = subject.hooks_folder / "mcp.py"
    message, root = (
        server(Projects().at(str(subject.folder)), {})
        if os.path.isfile(program)
        else (f"{program} is missing.", "")
    )
    if not root:
        return amiss(
            f"The tool server would not start: {message}",
            "Correct what the message names.",
        )
    return good(f"{path.name} offers the harness's tools")
