"""Programs of the agent, run as the loop runs an agent's Bash, or as a person would."""

import sys
from collections.abc import Sequence

from harness.cage.select import choose
from harness.cheats.place import LONGEST_S, Place
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import CageKind
from harness.driver.environment import confinement, session_folders
from harness.errors import HarnessError
from harness.project.context import open_project

_DOOR = 18081
"""A port within the cage's own network, where nobody listens outside."""
_STARTED = "the-act-has-started"


def in_terminal(place: Place, program: str) -> str:
    """Run a Python program as a person would, with a terminal and no mark of an agent: whoever asks is believed."""
    return place.run_in_terminal([sys.executable, "-c", program])


def act(place: Place, program: str, cage: str) -> str:
    """Run a Python program of the agent; what it printed.

    Raises HarnessError when it did not even start, so that a fault of the lab is never taken for a defence.
    """
    said = caged(place, [sys.executable, "-c", f"print({_STARTED!r}, flush=True)\n{program}"], cage)
    if _STARTED not in said:
        raise HarnessError(f"The lab could not start the agent's program: {said[-400:]}.", mend="Mend the lab.")
    return said


def caged(place: Place, argv: Sequence[str], cage: str) -> str:
    """Run as an agent's Bash runs it; returns what it said."""
    sandbox = sandbox_of(cage)
    environment = place.environment(CLAUDECODE="1", TMPDIR="/tmp")
    if sandbox.kind is CageKind.NONE:
        ended = place.run(argv, environment=environment)
        return ended.stdout + ended.stderr
    with open_project(place.root, place.environment()) as project:
        folders = session_folders(project.layout, "lab")
        folders.create()
        confined = confinement(project, project.plan(), folders, door_port=_DOOR)
    done = sandbox.run(list(argv), confinement=confined, cwd=place.root, environment=environment, timeout_s=LONGEST_S)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def sandbox_of(cage: str) -> Sandbox:
    return choose(None if cage == "auto" else CageKind(cage), required=False)
