"""What an agent's CLI gets: a new environment, folders of its own and a launcher in a sandbox."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.doctor.claude_cli import bundled_program
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import SandboxKind
from harness.driver.access import CREDENTIALS
from harness.errors import LOOP, SessionError
from harness.files import atomic_write, private_folder
from harness.guard.control_files import in_place
from harness.judge.confinement import kept_from_agents
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.model_gateway.service import Service
from harness.sandbox.behind_front import behind_front
from harness.settings import granted

SESSION = "HARNESS_SESSION"
"""In the environment of the CLI and of all that it starts: marks the leftovers of a session."""
LONGEST_TOOL_MS = 24 * 3600 * 1000
FROM_THE_SDK = (
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
)
"""Set by the SDK for its protocol with the CLI; only these values pass the launcher."""


@dataclass(frozen=True, kw_only=True)
class SessionFolders:
    """One session's folder in the state directory. Only `inside` exists in its sandbox."""

    outside: Path

    @property
    def inside(self) -> Path:
        return self.outside / "in"

    @property
    def home(self) -> Path:
        return self.inside / "home"

    @property
    def config(self) -> Path:
        """Settings and transcripts of the CLI."""
        return self.inside / "config"

    @property
    def temporary(self) -> Path:
        return self.inside / "tmp"

    @property
    def launcher(self) -> Path:
        return self.outside / "claude"

    @property
    def variables(self) -> Path:
        """What the launcher goes on with: it holds the environment, and in it the session's key."""
        return self.outside / "environment.sh"

    @property
    def pid(self) -> Path:
        """Written by the launcher: the process in front of the sandbox and the CLI."""
        return self.outside / "cli.pid"

    @property
    def stderr(self) -> Path:
        return self.outside / "stderr.log"

    def create(self) -> None:
        for folder in (self.home, self.config, self.temporary):
            private_folder(folder)


def session_folders(layout: Layout, session: str) -> SessionFolders:
    return SessionFolders(outside=layout.sessions / session)


def bundled_cli() -> Path:
    """The Claude Code CLI inside the Agent SDK. Raises SessionError when there is none."""
    program = bundled_program()
    if program is None:
        raise SessionError(
            "There is no Agent SDK here that brings a Claude Code CLI.",
            hint=f"Install it ({LOOP}), or Claude Code itself, so that `claude` is on PATH.",
            code="cli_missing",
        )
    return program


def child_environment(
    folders: SessionFolders,
    *,
    session: str,
    gateway_url: str,
    gateway_key: str,
    interpreter: str | None,
    retries: int,
    service: Service,
) -> dict[str, str]:
    """The whole environment of the CLI. Nothing is inherited: no key, no proxy, no home.

    `gateway_key` is the session's secret; the gateway knows by it whose requests are which.
    """
    programs = str(Path(interpreter or sys.executable).parent)
    return {
        "PATH": os.pathsep.join([programs, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(folders.home),
        "TMPDIR": str(folders.temporary),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "CLAUDE_CONFIG_DIR": str(folders.config),
        "CLAUDE_CODE_TMPDIR": str(folders.temporary),
        **service.cli(gateway_url, gateway_key),
        # No work may go on behind an answered tool call; a call may wait for a whole training run.
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(retries),
        "MCP_TIMEOUT": "60000",
        "MCP_TOOL_TIMEOUT": str(LONGEST_TOOL_MS),
        SESSION: session,
    }


def link_login(folders: SessionFolders, login: Path | None) -> None:
    """Where the session's CLI looks for its login it finds a link to the person's; nothing of ours
    opens it."""
    place = folders.config / CREDENTIALS
    place.unlink(missing_ok=True)
    if login is not None:
        place.symlink_to(login)


def confinement(
    project: Project,
    plan: ApprovedPlan,
    folders: SessionFolders,
    *,
    gateway_port: int,
    login: Path | None = None,
) -> Confinement:
    """The project is writable, except what no agent may change; the state directory is hidden."""
    layout, settings = project.layout, project.settings
    layout.experiments.mkdir(parents=True, exist_ok=True)
    readable = [*granted(settings)]
    if login is not None:
        readable.append(login)
    if settings.interpreter and os.path.isabs(settings.interpreter):
        readable.append(Path(settings.interpreter).parent.parent)
    return Confinement(
        writable=(layout.root, *in_place(layout.root, [layout.experiments]), folders.inside),
        read_only=(
            *kept_from_agents(project, plan),
            *(path for path in readable if path.exists()),
        ),
        hidden=(layout.state,),
        gateway_port=gateway_port,
    )


def write_launcher(
    sandbox: Sandbox,
    confined: Confinement,
    folders: SessionFolders,
    environment: dict[str, str],
    program: Path,
) -> Path:
    """Write the script that the SDK gets as `cli_path`: it clears the environment and becomes the
    process in front of the CLI. Raises SandboxError."""
    command = sandbox.command([str(program)], confined, environment=environment)
    if sandbox.kind is SandboxKind.NONE:
        command = behind_front(command)  # else children of the CLI could outlive it
    passed = " ".join(f'{name}="${name}"' for name in FROM_THE_SDK)
    variables = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
    # `exec` keeps the recorded process id. `env -i`: the SDK passes our whole environment on, keys
    # included; its option `env` only adds. Everybody on the machine may read a command line, so
    # the variables come from a file.
    launcher = (
        "#!/bin/sh\n"
        f"(umask 077; echo $$ > {shlex.quote(str(folders.pid))})\n"
        f'exec /usr/bin/env -i {passed} /bin/sh {shlex.quote(str(folders.variables))} "$@"\n'
    )
    inner = f'{"".join(variables)}exec {shlex.join(command)} "$@"\n'
    atomic_write(folders.variables, inner, durable=False, mode=0o600)
    atomic_write(folders.launcher, launcher, durable=False, mode=0o700)
    return folders.launcher
