"""What every verb shares: --project and --json, and how answers and errors are printed."""

import os
import sys
from collections.abc import Callable, Mapping
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
