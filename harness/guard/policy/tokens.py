"""What a command line is made of: the values that `shell.read_script` returns."""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
}

TEXT, QUOTED, VARIABLE, DYNAMIC = "text", "quoted", "variable", "dynamic"


class Unreadable(Exception):
    """The text is not a command line that this module understands; the message says which part."""


class Part(Record):
    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


class Word(Record):
    """`raw` is how it stands in the command line."""

    __slots__ = ("parts", "raw")

    def __init__(self, parts: tuple[Part, ...], raw: str) -> None:
        self.parts = parts
        self.raw = raw

    @property
    def plain(self) -> str | None:
        """The word's value, or None when it depends on an expansion. Wildcards stay as they are."""
        if all(part.kind in (TEXT, QUOTED) for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None


class Redirection(Record):
    __slots__ = ("operator", "target")

    def __init__(self, operator: str, target: Word) -> None:
        self.operator = operator
        self.target = target


class Command(Record):
    """`inputs` are the bodies of heredocs and here-strings."""

    __slots__ = ("inputs", "redirections", "words")

    def __init__(
        self,
        words: tuple[Word, ...],
        redirections: tuple[Redirection, ...],
        inputs: tuple[str, ...],
    ) -> None:
        self.words = words
        self.redirections = redirections
        self.inputs = inputs


class Script(Record):
    """`loops` are `for` variables with the words that they take; `problem` says why the text could
    not be read to its end, and is empty when it could."""

    __slots__ = ("commands", "loops", "problem")

    def __init__(
        self,
        commands: tuple[Command, ...],
        loops: tuple[tuple[str, tuple[Word, ...]], ...],
        problem: str,
    ) -> None:
        self.commands = commands
        self.loops = loops
        self.problem = problem


class Heredoc(Record):
    """One that was announced and whose body comes after the line's end. `command` is its place in
    the list of commands; -1 while the command itself is still being read."""

    __slots__ = ("command", "delimiter", "expands", "strips_tabs")

    def __init__(self, delimiter: str, expands: bool, strips_tabs: bool, command: int) -> None:
        self.delimiter = delimiter
        self.expands = expands
        self.strips_tabs = strips_tabs
        self.command = command


def is_name(text: str) -> bool:
    """Whether `text` may name a variable."""
    return text.isascii() and text.isidentifier()


def is_assignment(word: Word) -> bool:
    """Whether the word is `NAME=value` or `NAME+=value`."""
    if not word.parts or word.parts[0].kind != TEXT:
        return False
    name, equals, _ = word.parts[0].text.partition("=")
    return bool(equals) and is_name(name[:-1] if name.endswith("+") else name)


def ansi_value(body: str) -> str:
    """The value of $'...'."""
    import re

    pattern = r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)"
    return re.sub(pattern, _escape, body, flags=re.DOTALL)


def _escape(match: re.Match[str]) -> str:
    code: str = match.group(1)
    if code[0] in "xuU":
        return chr(min(int(code[1:], 16), 0x10FFFF)) if code[1:] else "\\" + code
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _ESCAPES.get(code) or (code if code in "\\'\"?" else "\\" + code)
