"""Human verbs: they refuse inside an agent's process, so that no agent approves its own work."""

import getpass
from collections.abc import Mapping

import psutil

from harness.errors import RefusedError

_AGENT_MARKS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "HARNESS_RUN_TOKEN")
_AGENT_PROGRAMS = {"claude"}


def require_person(verb: str, environment: Mapping[str, str]) -> str:
    """The name of the person who calls a human verb, e.g. "human:ada".

    Raises RefusedError below a Claude Code process or a training run. This makes a rule visible early; an agent
    in the cage cannot write the ledger whatever it calls.
    """
    marks = [name for name in _AGENT_MARKS if environment.get(name)]
    parents = [process.name() for process in psutil.Process().parents()]
    if marks or _AGENT_PROGRAMS.intersection(parents):
        raise RefusedError(
            f"`harness {verb}` is a person's decision; it was called below an agent ({(marks or ['claude'])[0]}).",
            mend=f"Run `harness {verb}` in your own terminal.",
            code="human_verb",
        )
    return f"human:{getpass.getuser()}"
