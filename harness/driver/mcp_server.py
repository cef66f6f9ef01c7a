"""The agents' tools over stdio, for `claude` in a repository and for plugins: the table of
harness.driver.tools.

Who calls is not known here: main Claude or any subagent. Which role may call what is the policy's
rule, held by the PreToolUse hook; here every call is recorded as an agent's. The project is opened
for each call, so that one that is broken answers with an error, and other processes work in
between.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from claude_agent_sdk import create_sdk_mcp_server
from mcp.server.stdio import stdio_server

from harness.contract.roles import MCP_SERVER, ROLE_BY_NAME
from harness.decisions.experiments import undecided_experiment
from harness.domain.records import Experiment
from harness.domain.statuses import SandboxKind
from harness.driver.program_context import has_programs
from harness.driver.program_tools import PROGRAM_TOOLS
from harness.driver.supervisors import is_held
from harness.driver.tool_context import ToolContext
from harness.driver.tools import TOOLS, tool
from harness.errors import HarnessError, UsageError
from harness.ledger.project import Project, open_project
from harness.rendering.derived import write_derived

AGENT = "agent"
FILES_OF = "model-builder"
"""Whose artifacts a caller without a role writes; the policy judges it so too."""
DISTRIBUTION = "experiment-harness"


class OpenToolContext(ToolContext):
    """The context of a caller who is bound to no experiment: the one that is not decided, unless it
    names another."""

    def _experiment(self, arguments: dict[str, Any]) -> Experiment:
        if named := arguments.get("experiment_id"):
            return self.project.ledger.experiment(named)
        current = undecided_experiment(self.project)
        if current is None:
            raise UsageError(
                "Every experiment is decided.",
                hint="Call open_experiment first, or pass the experiment_id of one to look at.",
                code="no_experiment",
            )
        return current

    def _going(self, experiment: str) -> bool:
        """Also between two runs of a supervisor that an earlier call, or another process,
        started."""
        return super()._going(experiment) or is_held(self.project, experiment)


def serve(
    start: Path,
    environment: Mapping[str, str],
    sandbox: Callable[[], SandboxKind],
    session: str | None,
) -> None:
    """Answer on stdin and stdout until the client closes them. Nothing else is written to stdout
    meanwhile.

    `sandbox` is asked at each call: one that does not work here is that call's error.
    """

    def at_context() -> contextlib.AbstractContextManager[ToolContext]:
        return _context(start, environment, sandbox, session)

    tools = [tool(name, at_context) for name in _offered(start, environment)]
    server = create_sdk_mcp_server(MCP_SERVER, version=version(DISTRIBUTION), tools=tools)[
        "instance"
    ]

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # a reader that waits for a line cannot be interrupted otherwise
    try:
        anyio.run(run)
    except* BrokenPipeError:
        pass  # the client has gone; a call that was at work has recorded what it did


def _offered(start: Path, environment: Mapping[str, str]) -> list[str]:
    """All tools; those of training programs only in a project that has one or a base model:
    anywhere else they would be words in every request. A person's first `harness posttrain model
    add` or `spec` brings them."""
    try:
        with open_project(start, environment, read_only=True) as project:
            programs = has_programs(project)
    except HarnessError:  # no project yet, or a broken one: each call says so
        programs = False
    return [name for name in TOOLS if programs or name not in PROGRAM_TOOLS]


@contextlib.contextmanager
def _context(
    start: Path,
    environment: Mapping[str, str],
    sandbox: Callable[[], SandboxKind],
    session: str | None,
) -> Iterator[ToolContext]:
    """One call's view of the project; what is derived from the ledger follows also a call that
    failed."""
    with open_project(start, environment) as project:
        project.ledger.require_imported()
        context = _open_context(project, sandbox(), session)
        try:
            yield context
        finally:
            write_derived(project)


def _open_context(project: Project, sandbox: SandboxKind, session: str | None) -> ToolContext:
    return OpenToolContext(
        project,
        session=session or "",
        role=ROLE_BY_NAME[FILES_OF],
        by=AGENT,
        sandbox=sandbox,
    )
