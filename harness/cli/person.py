"""Who runs a command: a person, or an agent, and in what kind of session.

Commands for people only are refused below an agent and without a terminal. No agent approves its
own work.
"""

import getpass
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.audit.open_sessions import SESSION
from harness.domain.grade import OPEN, PERSON, Caller, CallerKind
from harness.errors import RefusedError
from harness.judge.identity import CALLER, verify
from harness.process import claude_above

AGENT = "agent"
HUMAN = "human"
_AGENT_MARKS = ("CLAUDECODE", SESSION, "HARNESS_RUN_TOKEN")


def caller_of(environment: Mapping[str, str], state: Path) -> Caller:
    """Where this command came from, decided once; also the kind of the session that it runs in.

    What the judge of a sandboxed session, the loop or the tool server hands its children proves
    itself (`judge.identity`). Else marks of an agent make it open; without any it is a person's. A
    process that cleared its environment and left its parents looks like a person here; that a
    plain session was there is then told by its traces (`audit.open_sessions`).
    """
    announced = verify(environment, state)
    if announced is not None:
        return Caller(CallerKind(announced.kind), announced.sandbox)
    if agent_marks(environment):
        return OPEN
    said = environment.get(CALLER)
    # What is said and not proven lowers only: whoever vouched for it is gone, or nobody did.
    return Caller.read(said.partition(":")[0]) if said else PERSON


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
    marks = agent_marks(environment) or [name for name in (CALLER,) if environment.get(name)]
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
