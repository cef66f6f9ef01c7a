"""The arguments of a program: shell words with the script's own variables, braces and wildcards
filled in, and options as getopt reads them. What is not known stays marked as unknown.
"""

from __future__ import annotations

from .named_values import Record
from .shell_script import DYNAMIC, QUOTED, VARIABLE, Word, WordPart, is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shell_script import Command

MOST = 64
_WILD = "*?["
_OPEN, _CLOSE = "\0<", "\0>"
"""A quoted brace while braces are read; no command line holds a NUL."""


class Argument(Record):
    """`known` False: the text holds an expansion whose value nobody here knows. `pattern`: unquoted
    wildcards stand in it."""

    __slots__ = ("known", "pattern", "text")

    def __init__(self, text: str, known: bool = True, pattern: bool = False) -> None:
        self.text = text
        self.known = known
        self.pattern = pattern

    def with_text(self, text: str) -> Argument:
        """The same but for the text."""
        return Argument(text, self.known, self.pattern)


def table(names: str) -> frozenset[str]:
    """A set of names, written as one text with blanks between them."""
    return frozenset(names.split())


def arguments(words: tuple[Word, ...], environment: dict[str, list[str]]) -> list[Argument]:
    """The arguments that `words` give; one word may give several (loops, braces, unquoted
    variables)."""
    expanded: list[Argument] = []
    for word in words:
        expanded += expand(word, environment)
    return expanded


def expand(word: Word, environment: dict[str, list[str]]) -> list[Argument]:
    """The arguments that `word` may give. Where there are too many to list, one of them is
    unknown."""
    values: list[tuple[str, bool]] = [("", True)]
    wild = False
    for part in word.parts:
        if part.kind == DYNAMIC:
            pieces: list[str] | None = None
        elif part.kind == VARIABLE:
            pieces = environment.get(part.text) or None
        else:
            pieces = [_escaped(part.text) if part.kind == QUOTED else part.text]
            wild = wild or (part.kind != QUOTED and is_wild(part.text))
        if pieces is None:
            values = [(text + "${" + part.text + "}", False) for text, _ in values]
        else:
            values = _few([(text + piece, known) for text, known in values for piece in pieces])
    bare = '"' not in word.raw and any(
        part.kind == VARIABLE for part in word.parts
    )  # the shell splits and matches it
    expanded: list[Argument] = []
    for text, known in values:
        pieces = (
            _split(text, environment.get("IFS", []))
            if bare and known
            else _braces(text)
            if "{" in word.raw
            else [text]
        )
        for piece in pieces or [text]:
            pattern = (wild or bare or piece != text) and is_wild(piece)
            expanded.append(
                Argument(
                    _braced(piece) if pattern else _unescaped(piece),
                    known and pieces is not None,
                    pattern,
                )
            )
    return expanded


def _few(values: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return values if len(values) <= MOST else [*values[:MOST], (values[MOST][0], False)]


def assigned(command: Command, environment: dict[str, list[str]]) -> tuple[Word, ...]:
    """Note the assignments that `command` starts with in `environment`; returns the words that
    follow them."""
    words = command.words
    while words and is_assignment(words[0]):
        note(words[0], environment)
        words = words[1:]
    program = words[0].plain if words else ""
    if program in ("export", "declare", "typeset", "local", "readonly"):
        by_name = any(
            (word.plain or "").startswith("-") and "n" in (word.plain or "") for word in words[1:]
        )
        for word in words[1:]:
            if is_assignment(word):
                forget(word.raw.partition("=")[0], environment) if by_name else note(
                    word, environment
                )
    if program in ("read", "mapfile", "readarray", "unset", "getopts"):
        for word in words[1:]:
            forget(word.plain or "", environment)
    if program == "printf" and [word.plain for word in words[1:2]] == ["-v"]:
        forget(words[2].plain or "" if words[2:] else "", environment)
    return words


def note(word: Word, environment: dict[str, list[str]]) -> None:
    """Remember one assignment; a later one adds a possible value, because branches and loops are
    not followed."""
    first = word.parts[0]
    name, _, rest = first.text.partition("=")
    value = Word((WordPart(first.kind, rest), *word.parts[1:]), word.raw)
    values = expand(value, environment)
    if name.endswith("+"):
        name = name[:-1]
        before = [Argument(text) for text in environment.get(name, [""])] or [
            Argument("", known=False)
        ]
        values = [
            Argument(first.text + last.text, first.known and last.known)
            for first in before
            for last in values
        ]
    remember(name, values[:MOST], environment)


def remember(name: str, values: list[Argument], environment: dict[str, list[str]]) -> None:
    """Add possible values of a variable; one that nobody knows makes it unknown for good."""
    known = environment.setdefault(name, [value.text for value in values])
    if not known or not all(value.known for value in values):
        forget(name, environment)
    else:
        known += [value.text for value in values if value.text not in known]


def forget(name: str, environment: dict[str, list[str]]) -> None:
    """What `name` holds is not known, whatever is assigned elsewhere: no value stands for that."""
    environment[name] = []


def _split(text: str, separators: list[str]) -> list[str]:
    """An unquoted variable's words, and the whole too, for which characters cut it (IFS) changes
    while it runs."""
    words = text.split()
    for separator in {character for value in separators for character in value}:
        words += [word for word in text.split(separator) if word not in words]
    return words if len(words) < 2 else [*words, text]


def is_wild(text: str) -> bool:
    return any(character in text for character in _WILD)


def _braces(text: str) -> list[str] | None:
    """`a{b,c}` is `ab` and `ac`; what else braces give, ranges, is any text: a wildcard. None: too
    many."""
    start, end = _innermost(text, "..")
    while end >= 0:
        text = text[:start] + "*" + text[end + 1 :]
        start, end = _innermost(text, "..")
    start, end = _innermost(text, ",")
    if end < 0:
        return [text]
    found: list[str] = []
    for choice in text[start + 1 : end].split(","):
        more = _braces(text[:start] + choice + text[end + 1 :])
        if more is None or len(found) + len(more) > MOST:
            return None
        found += more
    return found


def _innermost(text: str, between: str) -> tuple[int, int]:
    """Where the first `{...}` with `between` and no braces in it starts and ends; (-1, -1) when
    there is none."""
    end = text.find("}")
    while end >= 0:
        start = text.rfind("{", 0, end)
        if start >= 0 and between in text[start:end] and "}" not in text[start:end]:
            return start, end
        end = text.find("}", end + 1)
    return -1, -1


def _escaped(text: str) -> str:
    """Quoted wildcards, marked so that they match themselves only, and quoted braces, which give no
    words."""
    text = text.replace("{", _OPEN).replace("}", _CLOSE)
    if not is_wild(text):
        return text
    return "".join(f"[{character}]" if character in _WILD else character for character in text)


def _braced(text: str) -> str:
    return text.replace(_OPEN, "{").replace(_CLOSE, "}")


def _unescaped(text: str) -> str:
    text = _braced(text)
    for character in _WILD if "]" in text else "":
        text = text.replace(f"[{character}]", character)
    return text


class Options(Record):
    """`pairs`: each option with its value, None where it has none, in order; letters as `-x`.
    `operands`: the rest."""

    __slots__ = ("operands", "pairs")

    def __init__(self, pairs: list[tuple[str, Argument | None]], operands: list[Argument]) -> None:
        self.pairs = pairs
        self.operands = operands

    def has(self, *names: str) -> bool:
        """Whether one of `names` is given, or an abbreviation that may mean it."""
        return any(means(option, name) for option, _ in self.pairs for name in names)

    def values(self, *names: str) -> list[Argument]:
        """Values of the options that are or may mean one of `names`."""
        return [
            value
            for option, value in self.pairs
            if value and any(means(option, name) for name in names)
        ]


def means(option: str, name: str) -> bool:
    """Whether `option` is `name` or an abbreviation of that long one: what it may mean counts as
    meant."""
    return option == name or (
        len(option) > 2 and option.startswith("--") and name.startswith(option)
    )


def options(arguments: list[Argument], valued: str, *, bundled: bool = False) -> Options:
    """`valued` names those that take a value: letters as one word, then long ones. `bundled`: the
    first word may be a group of letters without a dash, whose values follow one by one (tar)."""
    letters, *longs = valued.split(" ")
    pairs: list[tuple[str, Argument | None]] = []
    operands: list[Argument] = []
    rest = list(arguments)
    if bundled and rest and rest[0].text.isalpha():
        for letter in rest.pop(0).text:
            pairs.append((f"-{letter}", rest.pop(0) if letter in letters and rest else None))
    while rest:
        argument = rest.pop(0)
        text = argument.text
        if text == "--":
            operands += rest
            break
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            takes = not equals and any(means(name, long) for long in longs)
            pairs.append(
                (
                    name,
                    argument.with_text(value)
                    if equals
                    else rest.pop(0)
                    if takes and rest
                    else None,
                )
            )
        elif text.startswith("-") and len(text) > 1:
            pairs += _letters(argument, letters, rest)
        else:
            operands.append(argument)
    return Options(pairs, operands)


def _letters(
    argument: Argument, valued: str, rest: list[Argument]
) -> list[tuple[str, Argument | None]]:
    pairs: list[tuple[str, Argument | None]] = []
    text = argument.text
    for place in range(1, len(text)):
        if text[place] in valued:
            glued = text[place + 1 :]
            value = argument.with_text(glued) if glued else rest.pop(0) if rest else None
            return [*pairs, (f"-{text[place]}", value)]
        pairs.append((f"-{text[place]}", None))
    return pairs
