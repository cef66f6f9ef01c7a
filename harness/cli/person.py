"""Commands for people only: refused below an agent and without a terminal.

No agent approves its own work.
"""

import getpass
import sys
from collections.abc import Callable, Mapping

from harness.errors import RefusedError
from harness.process import claude_above

SESSION = "CLAUDE_CODE_SESSION_ID"
"""Claude Code sets it for every process that a session starts."""
AGENT = "agent"
HUMAN = "human"
_AGENT_MARKS = ("CLAUDECODE", SESSION, "HARNESS_RUN_TOKEN")


def stdin_is_terminal() -> bool:
    """Whether a person can type here. False when stdin is closed."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def require_person(
    verb: str,
    environment: Mapping[str, str],
    *,
    needs_terminal: bool = True,
    is_terminal: Callable[[], bool] = stdin_is_terminal,
) -> str:
    """The person who runs `harness VERB`, e.g. "human:ada".

    Raises RefusedError below a Claude Code process or a training run (human_verb), and when stdin
    is not a terminal (no_terminal). This only reports the rule early: an agent in the sandbox
    cannot write the ledger at all.
    """
    marks = agent_marks(environment)
    if marks:
        raise RefusedError(
            f"`harness {verb}` must be run by a person: an agent started this ({marks[0]}).",
            hint=f"Run `harness {verb}` in your own terminal.",
            code="human_verb",
        )
    if needs_terminal and not is_terminal():
        raise RefusedError(
            f"`harness {verb}` must be run by a person: stdin is not a terminal.",
            hint=(
                f"Run `harness {verb}` in your own terminal, without a pipe or redirected input."
            ),
            code="no_terminal",
        )
    return f"{HUMAN}:{getpass.getuser()}"


def caller(environment: Mapping[str, str]) -> str:
    """Who runs a command that everyone may run: "agent" below an agent, else "human"."""
    return AGENT if agent_marks(environment) else HUMAN


def session_of(environment: Mapping[str, str]) -> str | None:
    """The id of the surrounding Claude Code session; None outside one."""
    return environment.get(SESSION) or None


def agent_marks(environment: Mapping[str, str]) -> list[str]:
    """Signs that an agent started us: environment variables, or a parent process."""
    marks = [name for name in _AGENT_MARKS if environment.get(name)]
    return marks or ["claude" for _ in claude_above()]
