"""The agents' tools over stdio, for `claude` in a repository and for plugins.

The caller is unknown: main Claude or any subagent. Which role may call what is decided by the
PreToolUse hook; here every call is recorded as an agent's. Each call opens the project, so that a
broken project answers with an error and other processes can work in between.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import anyio
from mcp.server.stdio import stdio_server

from harness.audit.open_sessions import see_sessions
from harness.contract.roles import ROLE_BY_NAME
from harness.decisions.experiments import undecided_experiment
from harness.domain.grade import Caller
from harness.domain.records import Experiment
from harness.domain.statuses import SandboxKind
from harness.driver.supervisors import is_held
from harness.driver.tool_context import ToolContext
from harness.driver.tool_server import tool_server
from harness.driver.tools.table import EXPERIMENT_TOOLS, TOOLS, offered, tool_of
from harness.driver.vouching import vouching
from harness.errors import HarnessError, UsageError
from harness.ledger.project import Project, open_project
from harness.posttrain.base_models import known_models
from harness.rendering.derived import write_derived
from harness.settings import load_settings

AGENT = "agent"
FILES_OF = "model-builder"
"""A caller without a role writes this role's artifacts; the policy uses the same rule."""


class OpenToolContext(ToolContext):
    """Has no experiment of its own: a call without one is about the undecided one."""

    def experiment(self, named: str | None) -> Experiment:
        if named:
            return self.project.ledger.experiment(named)
        current = undecided_experiment(self.project)
        if current is None:
            raise UsageError(
                "Every experiment is decided.",
                hint="Call open_experiment first, or pass the id of the experiment to look at.",
                code="no_experiment",
            )
        return current

    def is_running(self, experiment: str) -> bool:
        """Also between two runs of a supervisor that another call or process started."""
        return super().is_running(experiment) or is_held(self.project, experiment)


def serve(
    start: Path,
    environment: Mapping[str, str],
    sandbox: Callable[[], SandboxKind],
    session: str | None,
    caller: Callable[[Path], Caller],
) -> None:
    """Answer on stdin and stdout until the client closes them. `sandbox` may fail at each call;
    `caller` says by the state directory where we came from."""

    def at_context() -> contextlib.AbstractContextManager[ToolContext]:
        return _context(start, environment, sandbox, session, caller)

    tools = [offered(tool_of(name), at_context) for name in _offered(start, environment)]
    server = tool_server(tools)

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    # Otherwise Ctrl-C could not end a reader that waits for a line.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with _vouching(start, environment, caller):
            anyio.run(run)
    except* BrokenPipeError:
        pass  # the client is gone; a call in progress has recorded what it did


def _vouching(
    start: Path, environment: Mapping[str, str], caller: Callable[[Path], Caller]
) -> contextlib.AbstractContextManager[None]:
    """For the supervisors that calls start; they only run where a project is."""
    try:
        state = load_settings(start, environment).state
    except HarnessError:  # each call reports it
        return contextlib.nullcontext()
    state.mkdir(parents=True, exist_ok=True)
    return vouching(state, caller(state))


def _offered(start: Path, environment: Mapping[str, str]) -> list[str]:
    """The tools of experiments, and those of training programs only where they are used."""
    # Every tool lengthens every request of the model.
    try:
        with open_project(start, environment, read_only=True) as project:
            programs = _trains_programs(project)
    except HarnessError:  # no project yet, or a broken one: each call reports it
        programs = False
    return list(TOOLS if programs else EXPERIMENT_TOOLS)


def _trains_programs(project: Project) -> bool:
    """Whether the project has a training program, or weights of a base model for one."""
    try:
        added = any(model.path for model in known_models(project.layout).values())
    except HarnessError:  # a damaged model.json is reported where it is used
        added = False
    return added or bool(project.ledger.programs())


@contextlib.contextmanager
def _context(
    start: Path,
    environment: Mapping[str, str],
    sandbox: Callable[[], SandboxKind],
    session: str | None,
    caller: Callable[[Path], Caller],
) -> Iterator[ToolContext]:
    """One call's view of the project; projections are rewritten afterwards."""
    with open_project(start, environment) as opened:
        project = opened.called_by(caller(opened.settings.state))
        project.ledger.require_imported()
        see_sessions(project, environment)
        context = OpenToolContext(
            project,
            session=session or "",
            role=ROLE_BY_NAME[FILES_OF],
            by=AGENT,
            sandbox=sandbox(),
        )
        try:
            yield context
        finally:
            see_sessions(project, environment)
            write_derived(project)
