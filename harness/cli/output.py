"""What all commands share: options, command groups, printed answers, errors and progress."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from harness.contract.meant import meant_by
from harness.domain.late import later
from harness.domain.plain_text import TableText, one_line, plain, plain_json
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json

if TYPE_CHECKING:
    import difflib

    from harness.sandbox import select
else:
    difflib, select = later("difflib"), later("harness.sandbox.select")


class WholeNumber(click.IntRange):
    """Of click's, named as a person names it: "'two' is not a valid whole number"."""

    name = "whole number"


class NewFile(click.Path):
    """A file to write, in a folder that is there."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "":
            self.fail("it is empty; expected the name of a file.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"{path.parent} is no folder that is there.", param, ctx)
        return path


def write_new(path: Path, data: bytes | str) -> None:
    """Raises UsageError where no file can be made there, as in /proc."""
    try:
        atomic_write(path, data)
    except FileNotFoundError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file in another folder."
        ) from error


def project_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--project",
        type=click.Path(file_okay=False, path_type=Path),
        default=".",
        help="A folder in the project; default: the current folder.",
    )(function)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else."
    )(function)


def copy_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--copy",
        type=click.Path(dir_okay=False, path_type=Path),
        default=None,
        hidden=True,
        help="Its text, as the judge of `harness claude` copied it.",
    )(function)


def sandbox_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--sandbox",
        type=click.Choice(["auto", "bwrap", "landlock", "none"]),
        default="auto",
        help="Isolation of agent code; auto picks the strongest that works here.",
    )(function)


def sandbox_for(sandbox: str, *, required: bool = False) -> Sandbox:
    """The sandbox that `--sandbox` names.

    Raises SandboxError when it does not work here, or when it is none and `required`.
    """
    return select.choose(None if sandbox == "auto" else SandboxKind(sandbox), required=required)


def environment() -> Mapping[str, str]:
    return os.environ


def emit(document: Mapping[str, Any], *lines: str, as_json: bool) -> None:
    """Print the answer, the document as JSON or `lines`. What was done is done: where stdout is
    closed or full, the exit code says it all the same."""
    shown = (line if isinstance(line, TableText) else plain(line) for line in lines)
    text = "\n".join(shown).rstrip("\n") + "\n"
    if as_json:
        text = _encodable(plain_json(pretty_json(dict(document))), sys.stdout)
    try:
        _write(sys.stdout, text)
    except OSError as error:
        _silence(sys.stdout)
        if not isinstance(error, BrokenPipeError):  # `| head` has read what it wanted
            tell(f"harness: the answer could not be written: {error.strerror}.")


def tell(text: str, *, error: bool = True) -> None:
    """Print lines that are no answer, on stderr; or, without `error`, one of an answer that goes
    on: that ends where nobody reads it."""
    if not error:
        _write(sys.stdout, f"{plain(text)}\n")
        return
    try:
        _write(sys.stderr, f"{plain(text)}\n")
    except OSError:
        _silence(sys.stderr)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"  # the terminal may not be able to show all of it
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def _encodable(text: str, stream: TextIO | None) -> str:
    """JSON that a stream of another encoding loses nothing of."""
    try:
        text.encode((stream and stream.encoding) or "utf-8")
    except UnicodeEncodeError:
        return "".join(one if one.isascii() else json.dumps(one)[1:-1] for one in text)
    return text


def _silence(stream: TextIO | None) -> None:
    """What is left in its buffer goes nowhere: at the end Python would complain, and exit 120."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def fail(code: str, message: str, hint: str, exit_code: int, *, as_json: bool) -> NoReturn:
    """Exit with the error: as JSON on stdout, or as text on stderr."""
    if as_json:
        emit({"error": {"code": code, "message": message, "hint": hint}}, as_json=True)
    else:
        tell(f"harness: {message}\n  {hint}" if hint else f"harness: {message}")
    sys.exit(exit_code)


class CommandGroup(click.Group):
    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; the error for an unknown command says what may be meant."""
        known = self.list_commands(context)
        if words and words[0] not in known and not words[0].startswith("-"):
            raise _no_command(context.command_path, words[0], known)
        return super().resolve_command(context, words)


def _no_command(path: str, word: str, known: Sequence[str]) -> UsageError:
    meant = meant_by(path, word)
    near = difflib.get_close_matches(word, known, n=2)
    if meant is None and near:
        meant = " or ".join(f"`{path} {name}`" for name in near)
    hint = f"See `{path} --help`." if meant is None else f"Did you mean {meant}?"
    return UsageError(
        f"{word!r} is no command of `{path}`; expected one of {', '.join(known)}.", hint=hint
    )


def print_event(event: Mapping[str, Any]) -> None:
    """Print `event["text"]` on stderr, one line; the rest of an event is for programs."""
    tell(one_line(str(event["text"])))
