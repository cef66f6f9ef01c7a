"""What a command line is made of: the values that `shell.read_script` returns."""

from __future__ import annotations

import re
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}

TEXT, QUOTED, VARIABLE, DYNAMIC = "text", "quoted", "variable", "dynamic"


class Unreadable(Exception):
    """The text is not a command line that this module understands; the message says which part."""


class Part(NamedTuple):
    kind: str
    text: str


class Word(NamedTuple):
    parts: tuple[Part, ...]
    raw: str
    """As it stands in the command line."""

    @property
    def plain(self) -> str | None:
        """The word's value, or None when it depends on an expansion. Wildcards stay as they are."""
        if all(part.kind in (TEXT, QUOTED) for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None


class Redirection(NamedTuple):
    operator: str
    target: Word


class Command(NamedTuple):
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    inputs: tuple[str, ...]
    """Bodies of heredocs and here-strings."""


class Script(NamedTuple):
    commands: tuple[Command, ...]
    loops: tuple[tuple[str, tuple[Word, ...]], ...]
    """`for` variables with the words that they take."""
    problem: str
    """Why the text could not be read to its end; empty when it could."""


class Heredoc(NamedTuple):
    """One that was announced and whose body comes after the line's end."""

    delimiter: str
    expands: bool
    strips_tabs: bool
    command: int
    """Place in the list of commands; -1 while the command itself is still being read."""


def is_assignment(word: Word) -> bool:
    """Whether the word is `NAME=value` or `NAME+=value`."""
    return bool(word.parts) and word.parts[0].kind == TEXT and _ASSIGNMENT.match(word.parts[0].text) is not None


def ansi_value(body: str) -> str:
    """The value of $'...'."""

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "xuU":
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, code)

    pattern = r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)"
    return re.sub(pattern, one, body, flags=re.DOTALL)
