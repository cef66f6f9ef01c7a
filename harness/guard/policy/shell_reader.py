"""A small, conservative reader of shell command lines: which programs with which words,
redirections and inputs.

It does not run or expand anything. What it cannot read makes the script unreadable, with the
reason; a reader of the result then trusts nothing about it. Commands inside subshells, groups,
`$(...)`, backticks, process substitutions and unquoted heredocs are listed beside the outer ones:
order and nesting do not matter to a rule about what is touched.
"""

from __future__ import annotations

from .shell_script import (
    Command,
    Heredoc,
    Nested,
    Redirection,
    ShellScript,
    UnreadableScript,
    WordReader,
    arithmetic_end,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shell_script import Word

LONGEST = 200_000
DEEPEST = 12
_OPERATORS = (">>", ">|", ">&", "<>", "<<<", "<<-", "<<", "<&", ">", "<")
"""Of redirections; a longer one stands before those that it starts with."""
_LEADING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "coproc"})
_ALONE = frozenset({"fi", "done", "}", "esac"})


def read_script(text: str) -> ShellScript:
    """Read a command line or a whole script. Never raises: what cannot be read is in `problem`."""
    reader = _ShellReader(text, 0)
    try:
        if len(text) > LONGEST:
            raise UnreadableScript(f"it is longer than {LONGEST} characters")
        if "\0" in text:
            raise UnreadableScript("it has a NUL character")
        reader.script(None)
    except UnreadableScript as error:
        return ShellScript(tuple(reader.commands), tuple(reader.loops), str(error))
    return ShellScript(tuple(reader.commands), tuple(reader.loops), "")


def _read(text: str, at: int, depth: int, closing: str | None) -> Nested:
    """A script inside of another one, from `at` to `closing`. Raises Unreadable."""
    reader = _ShellReader(text, depth, at)
    reader.script(closing)
    return Nested(reader.commands, reader.loops, reader.at)


class _ShellReader(WordReader):
    def __init__(self, text: str, depth: int, at: int = 0) -> None:
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        super().__init__(text, at, depth, _read)
        self.words: list[Word] = []
        self.redirections: list[Redirection] = []
        self.inputs: list[str] = []
        self.waiting: list[Heredoc] = []

    def script(self, closing: str | None) -> None:
        """Read until `closing` at this level, or to the end when it is None."""
        while self.at < len(self.text):
            if self.blank():
                continue
            if self.peek() == closing:
                self.at += 1
                self.finish()
                # Bash reads such a body after the parenthesis; where it ends would be a guess here.
                if self.waiting:
                    raise UnreadableScript("a heredoc's body stands outside its parentheses")
                return
            self.item()
        if closing is not None:
            raise UnreadableScript(f"a {closing} is missing")
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
        redirection = _redirection(self.text, self.at)
        # `<(cmd)` starts like a redirection, but is a word that holds a command.
        if redirection and self.peek(2) in ("<(", ">("):
            self.words.append(self.word())
        elif redirection:
            self.redirect(redirection)
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
            raise UnreadableScript("a ) stands where none was opened")
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
            # The `)` of its patterns would look like the end of a group.
            raise UnreadableScript("it has a case statement")

    def group(self) -> None:
        header = [word.plain for word in self.words] == ["for"]
        end = (_loop_end if header else arithmetic_end)(self.text, self.at)
        if end and (header or not self.words):  # else `((` is two groups
            self.words.clear()
            self.at = end
            return
        self.at += 1
        if (
            self.words and self.peek() == ")"
        ):  # name() { ...; }: the body is read like any other command
            self.at += 1
            self.words.clear()
            return
        if self.words:
            raise UnreadableScript("a ( stands inside a command")
        self.at = self.nested(self.text, self.at, ")")

    def test(self) -> None:
        end = self.text.find("]]", self.at)
        if end < 0:
            raise UnreadableScript("a ]] is missing")
        body, self.at = self.text[self.at + 2 : end], end + 2
        if "$(" in body or "`" in body or "<(" in body:
            raise UnreadableScript("a [[ ]] test runs a command")

    def finish(self) -> None:
        if self.words and self.words[0].plain in ("for", "select") and len(self.words) > 1:
            self.loops.append((self.words[1].plain or "", tuple(self.words[3:])))
            self.words.clear()
        announced = [here for here in self.waiting if here.command < 0]
        if self.words or self.redirections or self.inputs or announced:
            self.commands.append(
                Command(tuple(self.words), tuple(self.redirections), tuple(self.inputs))
            )
            # A heredoc's body comes after the line, when other commands may have been read:
            # remember the position of its own.
            position = len(self.commands) - 1
            self.waiting = [
                here._replace(command=position) if here.command < 0 else here
                for here in self.waiting
            ]
        self.words, self.redirections, self.inputs = [], [], []

    def redirect(self, token: str) -> None:
        self.at += len(token)
        operator = token.lstrip("0123456789")
        while self.peek() and self.peek() in " \t":
            self.at += 1
        if self.peek() in ("", "\n", ";", "|", "(", ")"):
            raise UnreadableScript(f"{operator} has no target")
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
                raise UnreadableScript(f"{operator} has no target")
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
        # Quotes mean nothing in a body, so only escapes and expansions are looked for.
        inner = _ShellReader(body, self.depth + 1)
        while inner.at < len(body):
            if inner.peek() == "\\":
                inner.at += 2
            elif inner.peek() in "$`":
                inner.expansion()
            else:
                inner.at += 1
        self.commands += inner.commands
        self.loops += inner.loops


def _redirection(text: str, at: int) -> str:
    """The redirection's operator at `at`, with the number or `&` before it; empty when none is
    there."""
    start = at
    while text[at : at + 1].isdigit():
        at += 1
    if at == start and text[at : at + 1] == "&":
        at += 1
    operator = next((sign for sign in _OPERATORS if text.startswith(sign, at)), "")
    return text[start:at] + operator if operator else ""


def _loop_end(text: str, at: int) -> int:
    """Where the `((a; b; c))` of a `for` ends; 0 when it is something else."""
    end = text.find("))", at + 2) if text[at : at + 2] == "((" else -1
    body = text[at + 2 : end]
    return end + 2 if end >= 0 and body.count(";") == 2 and not set(body) & set("`()") else 0
