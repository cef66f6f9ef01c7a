"""What an agent's tool acts in: one session's view of the project.

Calling a tool twice does no harm: a session that was cut is replayed from its start. A tool that
goes on after the end of its session records and starts nothing.
"""

from collections.abc import Callable

import anyio

from harness.contract.roles import Role
from harness.domain.records import Experiment
from harness.domain.statuses import SandboxKind
from harness.driver.pulse import Pulse
from harness.driver.supervisors import Supervisor, is_going
from harness.errors import RefusedError, UsageError
from harness.ledger.project import Project

POLL_SECONDS = 0.1


class ToolContext:
    """One session's view of the project, and what the session has done so far."""

    def __init__(
        self,
        project: Project,
        *,
        session: str,
        role: Role,
        sandbox: SandboxKind,
        experiment: str | None = None,
        parent: str | None = None,
        parallel: int = 1,
        of_phase: bool = False,
        by: str | None = None,
        pulse: Pulse | None = None,
        on_change: Callable[[], object] = lambda: None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.project, self.session = project.of_session(session), session
        self.role, self.sandbox = role, sandbox
        self.current, self.parent = experiment, parent
        self.parallel = parallel
        """How many experiments may be open at once."""
        self.of_phase = of_phase
        """Whether the session works on a phase."""
        self.by = by or role.name
        """Who acts, as facts and result.md name it."""
        self.pulse, self.on_change, self.tell = pulse or Pulse(), on_change, tell
        self.supervisor: Supervisor | None = None
        """The newest one that this session started."""
        self.done: set[str] = set()
        """Names of the tools that answered without an error."""

    def experiment(self, named: str | None) -> Experiment:
        """The experiment of a call: the session's own. Raises UsageError when there is none,
        RefusedError when `named` is another."""
        identifier = named or self.current
        if identifier is None:
            raise UsageError(
                "No experiment is open.", hint="Call open_experiment first.", code="no_experiment"
            )
        if self.current is not None and identifier != self.current:
            raise RefusedError(
                f"This session works on {self.current}, not on {identifier}.",
                hint=f"Leave experiment out or pass {self.current}.",
                code="other_experiment",
            )
        return self.project.ledger.experiment(identifier)

    def is_running(self, experiment: str) -> bool:
        """Whether this session's supervisor is alive or a run of the experiment is going."""
        ours = self.supervisor is not None and not self.supervisor.ended()
        return ours or is_going(self.project, experiment)

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait for `condition`, at most `seconds`; meanwhile the session counts as alive."""
        with self.pulse.working(), anyio.move_on_after(seconds):
            while not condition():
                await anyio.sleep(POLL_SECONDS)
