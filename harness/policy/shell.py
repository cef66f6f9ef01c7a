"""A small, conservative reader of shell command lines: which programs with which words, redirections and inputs.

It does not run or expand anything. What it cannot read makes the script unreadable, with the reason; a reader of the
result then trusts nothing about it. Commands inside subshells, groups, `$(...)`, backticks, process substitutions and
unquoted heredocs are listed beside the outer ones: order and nesting do not matter to a rule about what is touched.
"""

from __future__ import annotations

import re

from .tokens import (
    DYNAMIC,
    QUOTED,
    TEXT,
    VARIABLE,
    Command,
    Heredoc,
    Part,
    Redirection,
    Script,
    Unreadable,
    Word,
    ansi_value,
)

LONGEST = 200_000
DEEPEST = 12
_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>(){}#\n]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = "?!$#@*-0123456789"
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>|>\||>&|<>|<<<|<<-|<<|<&|>|<)")
_ARITHMETIC = re.compile(r"\(\([\w\s$+\-*%<>=!&|^~?:,]*\)\)")
"""Only what can be nothing else: no path, no quote, no nested parentheses."""
_LOOP = re.compile(r"\(\([^;`()]*;[^;`()]*;[^;`()]*\)\)")
_LEADING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "coproc"})
_ALONE = frozenset({"fi", "done", "}", "esac"})


def read_script(text: str) -> Script:
    """Read a command line or a whole script. Never raises: what cannot be read is in `problem`."""
    reader = _Reader(text, 0)
    try:
        if len(text) > LONGEST:
            raise Unreadable(f"it is longer than {LONGEST} characters")
        if "\0" in text:
            raise Unreadable("it has a NUL character")
        reader.script(None)
    except Unreadable as error:
        return Script(tuple(reader.commands), tuple(reader.loops), str(error))
    return Script(tuple(reader.commands), tuple(reader.loops), "")


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        if depth > DEEPEST:
            raise Unreadable("it is nested too deeply")
        self.text = text
        self.at = 0
        self.depth = depth
        self.commands: list[Command] = []
        self.loops: list[tuple[str, tuple[Word, ...]]] = []
        self.words: list[Word] = []
        self.redirections: list[Redirection] = []
        self.inputs: list[str] = []
        self.waiting: list[Heredoc] = []

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def script(self, closing: str | None) -> None:
        """Read until `closing` at this level, or to the end when it is None."""
        while self.at < len(self.text):
            if self.blank():
                continue
            if self.peek() == closing:
                self.at += 1
                self.finish()
                if self.waiting:
                    raise Unreadable("a heredoc's body stands outside its parentheses")
                return
            self.item()
        if closing is not None:
            raise Unreadable(f"a {closing} is missing")
        self.finish()
        if self.waiting:
            self.heredocs()

    def blank(self) -> bool:
        """Skip one blank, continuation or comment; True when there was one."""
        character = self.peek()
        if character in " \t\r":
            self.at += 1
        elif self.peek(2) == "\\\n":
            self.at += 2
        elif character == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        else:
            return False
        return True

    def item(self) -> None:
        character = self.peek()
        redirection = _REDIRECTION.match(self.text, self.at)
        if redirection and self.peek(2) in ("<(", ">("):
            self.words.append(self.word())
        elif redirection:
            self.redirect(redirection.group())
        elif character == "\n":
            self.at += 1
            self.finish()
            self.heredocs()
        elif character in ";&|":
            self.at += 1
            self.finish()
        elif character == "(":
            self.group()
        elif character == ")":
            raise Unreadable("a ) stands where none was opened")
        elif self.peek(2) == "[[" and not self.words:
            self.test()
        else:
            self.words.append(self.word())
            self.reserved()

    def reserved(self) -> None:
        """Drop or act on a reserved word that stands where a command starts."""
        word = self.words[-1].plain
        if (len(self.words) == 1 and (word in _LEADING or word in _ALONE)) or (
            len(self.words) == 2 and self.words[0].plain == "function"
        ):
            self.words.clear()
        elif len(self.words) == 1 and word == "case":
            raise Unreadable("it has a case statement")

    def group(self) -> None:
        header = [word.plain for word in self.words] == ["for"]
        arithmetic = (_LOOP if header else _ARITHMETIC).match(self.text, self.at)
        if arithmetic and (header or not self.words):  # else `((` is two groups
            self.words.clear()
            self.at = arithmetic.end()
            return
        self.at += 1
        if self.words and self.peek() == ")":  # name() { ...; }: the body is read like any other command
            self.at += 1
            self.words.clear()
            return
        if self.words:
            raise Unreadable("a ( stands inside a command")
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.script(")")
        self.at = inner.at
        self.take(inner)

    def take(self, inner: _Reader) -> None:
        self.commands += inner.commands
        self.loops += inner.loops

    def test(self) -> None:
        end = self.text.find("]]", self.at)
        if end < 0:
            raise Unreadable("a ]] is missing")
        body, self.at = self.text[self.at + 2 : end], end + 2
        if "$(" in body or "`" in body or "<(" in body:
            raise Unreadable("a [[ ]] test runs a command")

    def finish(self) -> None:
        if self.words and self.words[0].plain in ("for", "select") and len(self.words) > 1:
            self.loops.append((self.words[1].plain or "", tuple(self.words[3:])))
            self.words.clear()
        announced = [here for here in self.waiting if here.command < 0]
        if self.words or self.redirections or self.inputs or announced:
            self.commands.append(Command(tuple(self.words), tuple(self.redirections), tuple(self.inputs)))
            position = len(self.commands) - 1
            self.waiting = [here._replace(command=position) if here.command < 0 else here for here in self.waiting]
        self.words, self.redirections, self.inputs = [], [], []

    def redirect(self, token: str) -> None:
        self.at += len(token)
        operator = token.lstrip("0123456789")
        while self.peek() and self.peek() in " \t":
            self.at += 1
        if self.peek() in ("", "\n", ";", "|", "(", ")"):
            raise Unreadable(f"{operator} has no target")
        if operator == "&>" and self.peek() == ">":
            self.at += 1
        if operator in ("<<", "<<-"):
            word = self.word()
            quoted = any(character in word.raw for character in "'\"\\")
            self.waiting.append(Heredoc(word.plain or word.raw, not quoted, operator == "<<-", -1))
        elif operator == "<<<":
            word = self.word()
            self.inputs.append(word.plain if word.plain is not None else word.raw)
        else:
            target = self.word()
            if not target.raw:
                raise Unreadable(f"{operator} has no target")
            self.redirections.append(Redirection(operator, target))

    def heredocs(self) -> None:
        """Read the bodies that the line before announced."""
        waiting, self.waiting = self.waiting, []
        for here in waiting:
            body = self.body(here)
            if here.expands:
                self.substitutions(body)
            command = self.commands[here.command]
            self.commands[here.command] = command._replace(inputs=(*command.inputs, body))

    def body(self, here: Heredoc) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line, self.at = self.text[self.at : end], min(end + 1, len(self.text))
            line = line.lstrip("\t") if here.strips_tabs else line
            if line == here.delimiter:
                return "\n".join(lines)
            lines.append(line)
        return "\n".join(lines)  # the end of the text ends it too: bash warns, and runs it

    def substitutions(self, body: str) -> None:
        """List the commands that an unquoted heredoc runs while it is read."""
        inner = _Reader(body, self.depth + 1)
        while inner.at < len(body):
            if inner.peek() == "\\":
                inner.at += 2
            elif inner.peek() in "$`":
                inner.expansion()
            else:
                inner.at += 1
        self.take(inner)

    def word(self) -> Word:
        parts: list[Part] = []
        start = self.at
        while self.at < len(self.text):
            character = self.peek()
            plain = _PLAIN.match(self.text, self.at)
            if plain:
                self.at = plain.end()
                parts.append(Part(TEXT, plain.group()))
            elif character in "<>" and self.peek(2) in ("<(", ">(") and self.at == start:
                self.at += 1
                parts.append(self.substitution())
            elif character in " \t\r\n;&|<>()":
                break
            else:
                parts += self.quoting(character)
        return Word(tuple(parts), self.text[start : self.at])

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
                parts.append(Part(QUOTED, "" if piece == "\n" else piece if piece in '"\\$`' else "\\" + piece))
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
            inner = _Reader(body, self.depth + 1)
            inner.script(None)
            self.take(inner)
            return [Part(DYNAMIC, body)]
        following = self.peek(2)[1:]
        name = _NAME.match(self.text, self.at + 1)
        if following == "'":
            self.at += 1
            return [Part(QUOTED, ansi_value(self.ansi()))]
        if following == '"':
            self.at += 1
            return self.double()
        arithmetic = _ARITHMETIC.match(self.text, self.at + 1)
        if arithmetic:
            self.at = arithmetic.end()
            return [Part(DYNAMIC, arithmetic.group())]
        if following == "(":
            self.at += 1
            return [self.substitution()]
        if following == "{":
            return [self.braces()]
        if name:
            self.at = name.end()
            return [Part(VARIABLE, name.group())]
        self.at += 2 if following and following in _SPECIAL else 1
        return [Part(DYNAMIC, "$" + following)] if following and following in _SPECIAL else [Part(TEXT, "$")]

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
        start = self.at = self.at + 1
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.script(")")
        self.at = inner.at
        self.take(inner)
        return Part(DYNAMIC, self.text[start : self.at - 1])

    def braces(self) -> Part:
        end = self.text.find("}", self.at)
        if end < 0:
            raise Unreadable("a } is missing")
        body, self.at = self.text[self.at + 2 : end], end + 1
        if "`" in body or "$" in body:
            raise Unreadable("a ${...} holds another expansion")
        return Part(VARIABLE, body) if _NAME.fullmatch(body) else Part(DYNAMIC, body)
