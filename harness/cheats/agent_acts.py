"""Programs of the agent, run as the loop runs an agent's Bash, or as a person would."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.cheats.lab import LONGEST_S, LabProject
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.driver.environment import confinement, session_folders
from harness.errors import HarnessError
from harness.ledger.project import open_project
from harness.sandbox.select import choose

_GATEWAY = 18081
"""A port within the sandbox's own network, where nobody listens outside."""
_STARTED = "the-act-has-started"


@contextlib.contextmanager
def beside(program: Callable[[], object] | None) -> Iterator[None]:
    """Let `program` happen while the block runs; then wait for it, and raise what it raised."""
    if program is None:
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        happening = pool.submit(program)
        yield
        happening.result()


def in_terminal(place: LabProject, program: str) -> str:
    """Run a Python program as a person would, with a terminal and no mark of an agent."""
    return place.run_in_terminal([sys.executable, "-c", program])


def act(place: LabProject, program: str, sandbox: str) -> str:
    """What a Python program of the agent printed. Raises HarnessError when it did not start."""
    # Else a fault of the lab would be taken for a defence.
    printed = sandboxed(
        place, [sys.executable, "-c", f"print({_STARTED!r}, flush=True)\n{program}"], sandbox
    )
    if _STARTED not in printed:
        raise HarnessError(
            f"The lab could not start the agent's program: {printed[-400:]}.", hint="Fix the lab."
        )
    return printed


def sandboxed(place: LabProject, argv: Sequence[str], sandbox: str) -> str:
    """Run as an agent's Bash runs it; returns what it said."""
    chosen = sandbox_of(sandbox)
    environment = place.environment(CLAUDECODE="1", TMPDIR="/tmp")
    if chosen.kind is SandboxKind.NONE:
        ended = place.run(argv, environment=environment)
        return ended.stdout + ended.stderr
    with open_project(place.root, place.environment()) as project:
        folders = session_folders(project.layout, "lab")
        folders.create()
        confined = confinement(project, project.plan(), folders, gateway_port=_GATEWAY)
    done = chosen.run(
        list(argv),
        confinement=confined,
        cwd=place.root,
        environment=environment,
        timeout_s=LONGEST_S,
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def sandbox_of(sandbox: str) -> Sandbox:
    return choose(None if sandbox == "auto" else SandboxKind(sandbox), required=False)
