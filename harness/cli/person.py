"""Who runs a command: a person, or an agent, and in what kind of session.

Commands for people only are refused below an agent and without a terminal. No agent approves its
own work.
"""

import contextlib
import getpass
import os
import shlex
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from harness.audit.claude_process import claude_above
from harness.cli.output import tell
from harness.contract.roles import ASKED_VERBS
from harness.domain.grade import OPEN, PERSON, Caller, CallerKind
from harness.errors import RefusedError
from harness.judge.client import SESSION
from harness.judge.identity import CALLER, is_orphan, verify

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


def require_starter(environment: Mapping[str, str], state: Path) -> None:
    """Raises RefusedError (starter_gone) where the loop or server that started this was killed
    before it could vouch: what it began now would be nobody's, and graded so for ever."""
    if is_orphan(environment, state):
        raise RefusedError(
            "What started this training is gone, so nobody says what session it is of.",
            hint="Nothing was begun. A loop goes on with `harness continue`; else start it again.",
            code="starter_gone",
        )


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
            hint=f"Run it in your own terminal: `{line_of(verb)}`. {_elsewhere(verb)}",
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


def line_of(verb: str) -> str:
    """This call of `harness VERB`, to be typed in another terminal."""
    words = [word for word in sys.argv[1:] if word != "--json"]
    called = words if words[:1] == verb.split()[:1] else verb.split()
    return f"cd {shlex.quote(os.getcwd())} && {shlex.join(['harness', *called])}"


def _elsewhere(verb: str) -> str:
    """Why the person's own prompt inside Claude Code does not do, and what does."""
    why = "`!` in Claude Code does not do: what it runs has no terminal and is below an agent."
    if not any(verb.split()[: len(asked)] == list(asked) for asked in ASKED_VERBS):
        return why
    return f"{why} In a session of `harness claude` the person is asked on their terminal."


def require_yes(shown: str, question: str) -> None:
    """Show a person what is about to count and let them type `yes`. Raises RefusedError
    (not_confirmed)."""
    tell(f"{shown}\n")
    if typed(f"{question} Type yes and press Enter; anything else refuses.").lower() != "yes":
        raise RefusedError(
            "Nothing was changed: it was not confirmed.",
            hint="Call it again when it is as you want it.",
            code="not_confirmed",
        )


def typed(question: str) -> str:
    """The line that a person types at the terminal after `question`, and not before it."""
    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    tell(question)
    return sys.stdin.readline().strip()


ASK = click.option(
    "--ask",
    is_flag=True,
    help="Show what would count from now on, and ask on the terminal before it does.",
)


def caller(environment: Mapping[str, str]) -> str:
    """Who runs a command that everyone may run: "agent" below an agent, else "human"."""
    return AGENT if agent_marks(environment) else HUMAN


def open_at_once(environment: Mapping[str, str]) -> int | None:
    """How many experiments may be open for the caller: one for an agent, any number for a person
    (None)."""
    return 1 if agent_marks(environment) else None


def session_of(environment: Mapping[str, str]) -> str | None:
    """The id of the surrounding Claude Code session; None outside one."""
    return environment.get(SESSION) or None


def agent_marks(environment: Mapping[str, str]) -> list[str]:
    """Signs that an agent started us: environment variables, or a parent process."""
    marks = [name for name in _AGENT_MARKS if environment.get(name)]
    return marks or ["claude" for _ in claude_above()]
