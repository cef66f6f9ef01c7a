"""What a shell script is made of, and how its words are read: quotes, escapes and expansions, and
the commands that run inside of them.
"""

from __future__ import annotations

from .named_values import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    Read = Callable[[str, int, int, "str | None"], "Nested"]

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


class UnreadableScript(Exception):
    """The text is not a command line that this module understands; the message says which part."""


class WordPart(Record):
    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


class Word(Record):
    """`raw` is how it stands in the command line."""

    __slots__ = ("parts", "raw")

    def __init__(self, parts: tuple[WordPart, ...], raw: str) -> None:
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


class ShellScript(Record):
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


_ENDS = frozenset(" \t\r\n;&|<>()")
_BREAKS = _ENDS | frozenset("\\'\"$`{}#")
_SPECIAL = "?!$#@*-0123456789"
_ARITHMETIC = frozenset("_$+-*%<>=!&|^~?:,")
"""What, with letters, digits and blanks, can be nothing else: no path, no quote, no nested
parentheses."""


class Nested:
    """What was read of a script within a script; `at` is where it ended."""

    __slots__ = ("at", "commands", "loops")

    def __init__(
        self, commands: list[Command], loops: list[tuple[str, tuple[Word, ...]]], at: int
    ) -> None:
        self.commands = commands
        self.loops = loops
        self.at = at


class WordReader:
    """Reads words of `text` from `at` on. `read` reads a script (text, start, depth, closing
    character) inside of one; its commands are listed in `commands`."""

    def __init__(self, text: str, at: int, depth: int, read: Read) -> None:
        self.text = text
        self.at = at
        self.depth = depth
        self.read = read
        self.commands: list[Command] = []
        self.loops: list[tuple[str, tuple[Word, ...]]] = []

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def nested(self, text: str, at: int, closing: str | None) -> int:
        """Read a script within this one; returns where it ends."""
        found = self.read(text, at, self.depth + 1, closing)
        self.commands += found.commands
        self.loops += found.loops
        return found.at

    def word(self) -> Word:
        parts: list[WordPart] = []
        start = self.at
        while self.at < len(self.text):
            character = self.peek()
            if character not in _BREAKS:
                parts.append(WordPart(TEXT, self.plain()))
            elif character in "<>" and self.peek(2) in ("<(", ">(") and self.at == start:
                self.at += 1
                parts.append(self.substitution())
            elif character in _ENDS:
                break
            else:
                parts += self.quoting(character)
        return Word(tuple(parts), self.text[start : self.at])

    def plain(self) -> str:
        start, text = self.at, self.text
        while self.at < len(text) and text[self.at] not in _BREAKS:
            self.at += 1
        return text[start : self.at]

    def quoting(self, character: str) -> list[WordPart]:
        """One quoted, escaped or expanded piece of a word."""
        if character == "\\":
            piece = self.peek(2)[1:]
            self.at += 2
            return [] if piece == "\n" else [WordPart(QUOTED, piece)]
        if character == "'":
            return [WordPart(QUOTED, self.until("'"))]
        if character == '"':
            return self.double()
        if character in "$`":
            return self.expansion()
        self.at += 1  # { } and # inside a word
        return [WordPart(TEXT, character)]

    def until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise UnreadableScript(f"a {quote} is not closed")
        piece, self.at = self.text[self.at + 1 : end], end + 1
        return piece

    def double(self) -> list[WordPart]:
        self.at += 1
        parts: list[WordPart] = [WordPart(QUOTED, "")]  # "" alone is a word too
        while self.peek() != '"':
            character = self.peek()
            if not character:
                raise UnreadableScript('a " is not closed')
            if character == "\\":
                piece = self.peek(2)[1:]
                self.at += 2
                parts.append(
                    WordPart(
                        QUOTED,
                        "" if piece == "\n" else piece if piece in '"\\$`' else "\\" + piece,
                    )
                )
            elif character in "$`":
                parts += self.expansion()
            else:
                end = self.at
                while end < len(self.text) and self.text[end] not in '"\\$`':
                    end += 1
                parts.append(WordPart(QUOTED, self.text[self.at : end]))
                self.at = end
        self.at += 1
        return parts

    def expansion(self) -> list[WordPart]:
        """A `$...` or a backtick at the current place."""
        if self.peek() == "`":
            body = self.backticks()
            self.nested(body, 0, None)
            return [WordPart(DYNAMIC, body)]
        following = self.peek(2)[1:]
        name = self.name()
        if following == "'":
            self.at += 1
            return [WordPart(QUOTED, ansi_value(self.ansi()))]
        if following == '"':
            self.at += 1
            return self.double()
        end = arithmetic_end(self.text, self.at + 1)
        if end:
            start, self.at = self.at + 1, end
            return [WordPart(DYNAMIC, self.text[start:end])]
        if following == "(":
            self.at += 1
            return [self.substitution()]
        if following == "{":
            return [self.braces()]
        if name:
            self.at += 1 + len(name)
            return [WordPart(VARIABLE, name)]
        self.at += 2 if following and following in _SPECIAL else 1
        return (
            [WordPart(DYNAMIC, "$" + following)]
            if following and following in _SPECIAL
            else [WordPart(TEXT, "$")]
        )

    def name(self) -> str:
        """The variable's name after the `$` at the current place; empty when none is there."""
        start = end = self.at + 1
        while (
            end < len(self.text)
            and self.text[end].isascii()
            and (self.text[end].isalnum() or self.text[end] == "_")
        ):
            end += 1
        return "" if self.text[start : start + 1].isdigit() else self.text[start:end]

    def backticks(self) -> str:
        body: list[str] = []
        self.at += 1
        while self.peek() != "`":
            if not self.peek():
                raise UnreadableScript("a backtick is not closed")
            step = 2 if self.peek() == "\\" else 1
            piece = self.peek(step)
            body.append(piece[1:] if step == 2 and piece[1:] in "`\\$" else piece)
            self.at += step
        self.at += 1
        return "".join(body)

    def ansi(self) -> str:
        start = self.at = self.at + 1
        while self.peek() != "'":
            if not self.peek():
                raise UnreadableScript("a $' is not closed")
            self.at += 2 if self.peek() == "\\" else 1
        self.at += 1
        return self.text[start : self.at - 1]

    def substitution(self) -> WordPart:
        start = self.at + 1
        self.at = self.nested(self.text, start, ")")
        body = self.text[start : self.at - 1]
        return WordPart(VARIABLE, "PWD") if body.strip() == "pwd" else WordPart(DYNAMIC, body)

    def braces(self) -> WordPart:
        end = self.text.find("}", self.at)
        if end < 0:
            raise UnreadableScript("a } is missing")
        body, self.at = self.text[self.at + 2 : end], end + 1
        # `${x:-$(rm y)}` runs a command; refusing all of these is safer than a second reader.
        if "`" in body or "$" in body:
            raise UnreadableScript("a ${...} holds another expansion")
        return WordPart(VARIABLE, body) if is_name(body) else WordPart(DYNAMIC, body)


def arithmetic_end(text: str, at: int) -> int:
    """Where the `((...))` at `at` ends, when nothing but arithmetic can stand in it; else 0."""
    if text[at : at + 2] != "((":
        return 0
    # Plain characters only: with a `$` or a backtick it could hold a command.
    end = text.find("))", at + 2)
    body = text[at + 2 : end]
    plain = all(
        character.isalnum() or character.isspace() or character in _ARITHMETIC
        for character in body
    )
    return end + 2 if end >= 0 and plain else 0
