"""Words of a tree-sitter tree of bash, as the policy's words. A value that nobody here knows is
DYNAMIC.

Where a good guess of such a value can be read off the text (`${X:-default}`, `$(echo text)`, `"$1"`
of a function that is called in the same text), it is an alternative: the reader lists the command
once as it stands and once for each guess, so that a guess only ever adds to what is judged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from harness.guard.policy.shell_script import (
    DYNAMIC,
    QUOTED,
    TEXT,
    VARIABLE,
    UnreadableScript,
    Word,
    WordPart,
    ansi_value,
)

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 60
ASSIGNMENT = "variable_assignment"
NESTED = frozenset({"command_substitution", "process_substitution"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+"})
_CUTS = frozenset({"%", "%%"})
_IN_QUOTES = '"\\$`'
_PRINTERS = frozenset({"echo", "printf"})
_FORMATS = re.compile(r"%s(?:\\n)?|-n|-e|--")


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def guessed_name(name: str, which: str = "?") -> str:
    """The variable under which guesses are kept: an argument of a function, the elements of an
    array, the values of a loop. No shell variable has a blank in its name."""
    return f"{name} {which}"


class Words:
    """Reads words, inside the function `function` or, when it is empty, outside any. `guess` is
    which alternative is taken: 0 none, so that only what is known counts."""

    def __init__(self, function: str = "", guess: int = 0, loops: Collection[str] = ()) -> None:
        self._function = function
        self._guess = guess
        self._loops = loops
        """Loop variables of which there are guesses."""
        self.guessed = False
        """Whether an alternative was taken since this was set."""

    def words(self, nodes: Iterable[Node]) -> tuple[Word, ...]:
        """One word for each node, or for several that touch: the grammar cuts `$"a"b` and the like
        apart."""
        groups: list[list[Node]] = []
        for node in nodes:
            if groups and groups[-1][-1].end_byte == node.start_byte:
                groups[-1].append(node)
            else:
                groups.append([node])
        return tuple(
            self._assignment(group[0]) if group[0].type == ASSIGNMENT else self._word(group)
            for group in groups
        )

    def _assignment(self, node: Node) -> Word:
        """`NAME=value`; an element of an array counts as the array, the elements of a whole one as
        a loop's values."""
        value = node.child_by_field_name("value")
        plus = "+" if any(child.type == "+=" for child in node.children) else ""
        parts = self._parts(value, 0) if value is not None and value.type != "array" else []
        return Word((WordPart(TEXT, f"{assigned_name(node)}{plus}="), *parts), text_of(node))

    def _word(self, group: list[Node]) -> Word:
        if (
            len(group) > 1
            and group[0].type == "$"
            and group[1].type in ("string", "concatenation")
        ):
            group = group[1:]  # $"...", a text to translate
        parts = [part for node in group for part in self._parts(node, 0)]
        raw = "".join(text_of(node) for node in group)
        alone = [part for part in parts if part != WordPart(QUOTED, "")]
        if len(alone) == 1 and alone[0].kind == VARIABLE and " " in alone[0].text:
            return Word(
                (alone[0],), "$"
            )  # wildcards in the argument were expanded before the call
        return Word(tuple(parts), raw)

    def _parts(self, node: Node, depth: int) -> list[WordPart]:
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        kind = node.type
        if kind == "raw_string":
            return [WordPart(QUOTED, text_of(node)[1:-1])]
        if kind == "ansi_c_string":
            return [WordPart(QUOTED, ansi_value(text_of(node)[2:-1]))]
        if kind in ("string", "translated_string"):
            return self._string(node, depth)
        if kind == "simple_expansion":
            return self._simple(node)
        if kind == "expansion":
            return self._expansion(node, depth)
        if kind == "command_substitution":
            return self._substituted(node) or [_dynamic(node)]
        if kind in ("arithmetic_expansion", "process_substitution", "array"):
            return [_dynamic(node)]
        if kind in ("concatenation", "command_name", "number") and node.child_count:
            return [part for child in node.children for part in self._parts(child, depth + 1)]
        return _plain(text_of(node))

    def _string(self, node: Node, depth: int) -> list[WordPart]:
        """What stands in double quotes. The grammar drops blanks between its children, so texts are
        cut out here."""
        data = node.text or b""
        at = data.index(b'"') + 1
        parts = [WordPart(QUOTED, "")]
        for child in node.named_children:
            if child.type == "string_content" or child.start_byte - node.start_byte < at:
                continue
            start = child.start_byte - node.start_byte
            parts += _quoted(data[at:start])
            parts += self._parts(child, depth + 1)
            at = child.end_byte - node.start_byte
        return parts + _quoted(data[at:].removesuffix(b'"'))

    def _simple(self, node: Node) -> list[WordPart]:
        text = text_of(node)
        blanks, name = text[: len(text) - len(text.lstrip())], text.lstrip()[1:]
        before = [WordPart(QUOTED, blanks)] if blanks else []
        if self._guess and name in self._loops:
            self.guessed = True
            return [*before, WordPart(VARIABLE, guessed_name(name))]
        if _NAME.fullmatch(name):
            return [*before, WordPart(VARIABLE, name)]
        return before + (self._argument(name) or [WordPart(DYNAMIC, f"${name}")])

    def _argument(self, name: str) -> list[WordPart]:
        """An argument of the function that is being read."""
        if not (self._function and self._guess and (name.isdigit() or name in ("@", "*"))):
            return []
        self.guessed = True
        return [WordPart(VARIABLE, guessed_name(self._function, "@" if name == "*" else name))]

    def _expansion(self, node: Node, depth: int) -> list[WordPart]:
        """`${...}`: the plain variable is known by name, everything else is a guess at best."""
        inner = node.children[1:-1]
        name = (
            text_of(inner[0])
            if inner and inner[0].type in ("variable_name", "special_variable_name")
            else ""
        )
        if len(inner) == 1 and name:
            return (
                [WordPart(VARIABLE, name)]
                if _NAME.fullmatch(name)
                else self._argument(name) or [_dynamic(node)]
            )
        if not self._guess or not inner:
            return [_dynamic(node)]
        self.guessed = True
        if inner[0].type == "subscript":
            array = inner[0].child_by_field_name("name")
            if array is None or len(inner) > 1:
                return [_dynamic(node)]
            return [WordPart(VARIABLE, guessed_name(text_of(array)))]
        operator = text_of(inner[1]) if len(inner) > 1 else ""
        if name and operator in _DEFAULTS and self._guess == 1:
            return [part for child in inner[2:] for part in self._parts(child, depth + 1)]
        if _NAME.fullmatch(name) and operator in _DEFAULTS | _CUTS:
            return [WordPart(VARIABLE, name)]
        return [_dynamic(node)]

    def _substituted(self, node: Node) -> list[WordPart]:
        """What `$(echo text)` and `$(pwd)` give."""
        commands = node.named_children
        if (
            not self._guess
            or len(commands) != 1
            or commands[0].type != "command"
            or text_of(node).startswith("`")
        ):
            return []
        given = self.words(commands[0].children)
        printed = echoed(given)
        if printed is not None:
            self.guessed = True
            return [WordPart(TEXT, printed)]
        if [word.plain for word in given] == ["pwd"]:
            self.guessed = True
            return [WordPart(VARIABLE, "PWD")]
        return []


def echoed(words: tuple[Word, ...]) -> str | None:
    """The text that an `echo` or `printf` with these words prints; None for anything else, or when
    it is not known."""
    plain = [word.plain for word in words]
    if not plain or plain[0] not in _PRINTERS or None in plain:
        return None
    rest = [text or "" for text in plain[1:]]
    while rest and _FORMATS.fullmatch(rest[0]):
        rest = rest[1:]
    return " ".join(rest)


def nested(node: Node) -> Iterator[Node]:
    """The substitutions inside `node`, outermost only."""
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        if child.type in NESTED:
            yield child
        else:
            waiting += reversed(child.children)


def assigned_name(node: Node) -> str:
    """The variable that an assignment sets."""
    name = node.child_by_field_name("name")
    if name is not None and name.type == "subscript":
        name = name.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def _dynamic(node: Node) -> WordPart:
    """A value that nobody knows, called as it stands without its brackets."""
    match = re.fullmatch(r"(?:[$<>]\(|\$\{|`)(.*)[)}`]", text_of(node), re.DOTALL)
    return WordPart(DYNAMIC, match.group(1) if match else text_of(node))


def _plain(text: str) -> list[WordPart]:
    """An unquoted piece: backslashes quote the character that follows."""
    parts: list[WordPart] = []
    for piece in re.findall(r"\\.|[^\\]+|\\\Z", text, re.DOTALL):
        if piece == "\\\n":
            continue
        parts.append(
            WordPart(QUOTED, piece[1:])
            if piece.startswith("\\") and len(piece) > 1
            else WordPart(TEXT, piece)
        )
    return parts


def _quoted(data: bytes) -> list[WordPart]:
    """A piece of text inside double quotes."""
    text = data.decode("utf-8", "replace")

    def one(match: re.Match[str]) -> str:
        character = match.group(1)
        return "" if character == "\n" else character if character in _IN_QUOTES else match.group()

    return [WordPart(QUOTED, re.sub(r"\\(.)", one, text, flags=re.DOTALL))] if text else []
