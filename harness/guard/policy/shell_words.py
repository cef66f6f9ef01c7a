"""Words of a shell command line: quotes, escapes and expansions, and the commands that run inside
of them."""

from __future__ import annotations

from .tokens import DYNAMIC, QUOTED, TEXT, VARIABLE, Part, Unreadable, Word, ansi_value, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .tokens import Command

    Read = Callable[[str, int, int, "str | None"], "Nested"]

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
        parts: list[Part] = []
        start = self.at
        while self.at < len(self.text):
            character = self.peek()
            if character not in _BREAKS:
                parts.append(Part(TEXT, self.plain()))
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

    def quoting(self, character: str) -> list[Part]:
        """One quoted, escaped or expanded piece of a word."""
        if character == "\\":
            piece = self.peek(2)[1:]
            self.at += 2
            return [] if piece == "\n" else [Part(QUOTED, piece)]
        if character == "'":
            return [Part(QUOTED, self.until("'"))]
        if character == '"':
            return self.double()
        if character in "$`":
            return self.expansion()
        self.at += 1  # { } and # inside a word
        return [Part(TEXT, character)]

    def until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unreadable(f"a {quote} is not closed")
        piece, self.at = self.text[self.at + 1 : end], end + 1
        return piece

    def double(self) -> list[Part]:
        self.at += 1
        parts: list[Part] = [Part(QUOTED, "")]
        while self.peek() != '"':
            character = self.peek()
            if not character:
                raise Unreadable('a " is not closed')
            if character == "\\":
                piece = self.peek(2)[1:]
                self.at += 2
                parts.append(
                    Part(
                        QUOTED, "" if piece == "\n" else piece if piece in '"\\$`' else "\\" + piece
                    )
                )
            elif character in "$`":
                parts += self.expansion()
            else:
                end = self.at
                while end < len(self.text) and self.text[end] not in '"\\$`':
                    end += 1
                parts.append(Part(QUOTED, self.text[self.at : end]))
                self.at = end
        self.at += 1
        return parts

    def expansion(self) -> list[Part]:
        """A `$...` or a backtick at the current place."""
        if self.peek() == "`":
            body = self.backticks()
            self.nested(body, 0, None)
            return [Part(DYNAMIC, body)]
        following = self.peek(2)[1:]
        name = self.name()
        if following == "'":
            self.at += 1
            return [Part(QUOTED, ansi_value(self.ansi()))]
        if following == '"':
            self.at += 1
            return self.double()
        end = arithmetic_end(self.text, self.at + 1)
        if end:
            start, self.at = self.at + 1, end
            return [Part(DYNAMIC, self.text[start:end])]
        if following == "(":
            self.at += 1
            return [self.substitution()]
        if following == "{":
            return [self.braces()]
        if name:
            self.at += 1 + len(name)
            return [Part(VARIABLE, name)]
        self.at += 2 if following and following in _SPECIAL else 1
        return (
            [Part(DYNAMIC, "$" + following)]
            if following and following in _SPECIAL
            else [Part(TEXT, "$")]
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
                raise Unreadable("a backtick is not closed")
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
                raise Unreadable("a $' is not closed")
            self.at += 2 if self.peek() == "\\" else 1
        self.at += 1
        return self.text[start : self.at - 1]

    def substitution(self) -> Part:
        start = self.at + 1
        self.at = self.nested(self.text, start, ")")
        body = self.text[start : self.at - 1]
        return Part(VARIABLE, "PWD") if body.strip() == "pwd" else Part(DYNAMIC, body)

    def braces(self) -> Part:
        end = self.text.find("}", self.at)
        if end < 0:
            raise Unreadable("a } is missing")
        body, self.at = self.text[self.at + 2 : end], end + 1
        if "`" in body or "$" in body:
            raise Unreadable("a ${...} holds another expansion")
        return Part(VARIABLE, body) if is_name(body) else Part(DYNAMIC, body)


def arithmetic_end(text: str, at: int) -> int:
    """Where the `((...))` at `at` ends, when nothing but arithmetic can stand in it; else 0."""
    if text[at : at + 2] != "((":
        return 0
    end = text.find("))", at + 2)
    body = text[at + 2 : end]
    plain = all(
        character.isalnum() or character.isspace() or character in _ARITHMETIC for character in body
    )
    return end + 2 if end >= 0 and plain else 0
