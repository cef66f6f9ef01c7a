"""What all commands share: options, command groups, and how answers, errors and progress are printed."""

import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.files import pretty_json
from harness.sandbox.select import choose


def project_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--project",
        type=click.Path(file_okay=False, path_type=Path),
        default=".",
        help="A folder of the project; default: the current one.",
    )(function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else."
    )(function)


def sandbox_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--sandbox",
        type=click.Choice(["auto", "bwrap", "landlock", "none"]),
        default="auto",
        help="The isolation around agents' code; auto takes the strongest that works here.",
    )(function)


def sandbox_for(sandbox: str, *, required: bool = False) -> Sandbox:
    """The sandbox that `--sandbox` asks for. Raises SandboxError when it does not work here or
    `required` forbids it."""
    return choose(None if sandbox == "auto" else SandboxKind(sandbox), required=required)


def environment() -> Mapping[str, str]:
    return os.environ


def emit(document: Mapping[str, Any], *, as_json: bool, text: Callable[[], str]) -> None:
    """Print the answer: the document, or `text()` for people."""
    if sys.stdout is None:  # closed by whoever started us: nobody asks for the answer
        return
    sys.stdout.write(pretty_json(dict(document)) if as_json else text().rstrip("\n") + "\n")
    sys.stdout.flush()


def fail(code: str, message: str, hint: str, exit_code: int, *, as_json: bool) -> NoReturn:
    """Say what went wrong and leave: JSON on stdout when asked for, a sentence on stderr always."""
    if as_json:
        sys.stdout.write(pretty_json({"error": {"code": code, "message": message, "hint": hint}}))
    else:
        sys.stderr.write(f"harness: {message}\n  {hint}\n" if hint else f"harness: {message}\n")
    sys.exit(exit_code)


class VerbGroup(click.Group):
    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does. Raises UsageError that names the nearest verbs for a word that is no
        verb."""
        known = self.list_commands(context)
        if words and words[0] not in known and not words[0].startswith("-"):
            near = get_close_matches(words[0], known, n=2)
            said = (
                f" Did you mean {' or '.join(f'`{context.command_path} {name}`' for name in near)}?"
                if near
                else ""
            )
            context.fail(f"There is no verb {words[0]!r}.{said}")
        return super().resolve_command(context, words)


def print_event(event: Mapping[str, Any]) -> None:
    """Print `event["text"]`; the rest of an event is for programs."""
    sys.stderr.write(f"{event['text']}\n")
    sys.stderr.flush()
