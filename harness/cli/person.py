"""Human verbs: they refuse inside an agent's process and without a terminal, so that no agent
approves its own work."""

import getpass
import sys
from collections.abc import Callable, Mapping

from harness.errors import RefusedError
from harness.process import claude_above

SESSION = "CLAUDE_CODE_SESSION_ID"
"""In the environment of whatever a Claude Code session starts."""
AGENT = "agent"
HUMAN = "human"
_AGENT_MARKS = ("CLAUDECODE", SESSION, "HARNESS_RUN_TOKEN")


def stdin_is_terminal() -> bool:
    """Whether somebody can type at us. False when stdin is closed."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def require_person(
    verb: str,
    environment: Mapping[str, str],
    *,
    needs_terminal: bool = True,
    is_terminal: Callable[[], bool] = stdin_is_terminal,
) -> str:
    """The name of the person who calls a human verb, e.g. "human:ada".

    Raises RefusedError below a Claude Code process or a training run (human_verb), and where stdin
    is no terminal (no_terminal). This makes a rule visible early; an agent in the sandbox cannot
    write the ledger whatever it calls.
    """
    marks = agent_marks(environment)
    if marks:
        raise RefusedError(
            f"`harness {verb}` is a person's decision; it was called below an agent ({marks[0]}).",
            hint=f"Run `harness {verb}` in your own terminal.",
            code="human_verb",
        )
    if needs_terminal and not is_terminal():
        raise RefusedError(
            f"`harness {verb}` is a person's decision; its standard input is not a terminal.",
            hint=(
                f"Run `harness {verb}` in your own terminal, without a pipe or a redirection of its"
                " input."
            ),
            code="no_terminal",
        )
    return f"{HUMAN}:{getpass.getuser()}"


def caller(environment: Mapping[str, str]) -> str:
    """Who calls a verb that anybody may use: "agent" below an agent, else "human"."""
    return AGENT if agent_marks(environment) else HUMAN


def session_of(environment: Mapping[str, str]) -> str | None:
    """The Claude Code session that we run in; None outside one."""
    return environment.get(SESSION) or None


def agent_marks(environment: Mapping[str, str]) -> list[str]:
    """What says that an agent started us: variables of `environment`, or a program among our
    parents."""
    marks = [name for name in _AGENT_MARKS if environment.get(name)]
    return marks or ["claude" for _ in claude_above()]
