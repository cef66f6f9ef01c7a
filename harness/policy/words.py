"""From shell words to arguments: variables that the script itself sets, braces, wildcards; the rest stays unknown."""

from __future__ import annotations

import re
from typing import NamedTuple

from .tokens import DYNAMIC, QUOTED, VARIABLE, Command, Word, is_assignment

MOST = 64
_WILD = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Argument(NamedTuple):
    text: str
    known: bool = True
    """False: the text holds an expansion whose value nobody here knows."""
    pattern: bool = False
    """Unquoted wildcards stand in it."""


def table(names: str) -> frozenset[str]:
    """A set of names, written as one text with blanks between them."""
    return frozenset(names.split())


def arguments(words: tuple[Word, ...], environment: dict[str, list[str]]) -> list[Argument]:
    """The arguments that `words` give; one word may give several (loops, braces, unquoted variables)."""
    found: list[Argument] = []
    for word in words:
        found += expand(word, environment)
    return found


def expand(word: Word, environment: dict[str, list[str]]) -> list[Argument]:
    values: list[tuple[str, bool]] = [("", True)]
    wild = False
    for part in word.parts:
        if part.kind == DYNAMIC:
            pieces: list[str] | None = None
        elif part.kind == VARIABLE:
            pieces = environment.get(part.text)
        else:
            pieces = [_escaped(part.text) if part.kind == QUOTED else part.text]
            wild = wild or (part.kind != QUOTED and bool(_WILD.search(part.text)))
        if pieces is None:
            values = [(text + "${" + part.text + "}", False) for text, _ in values]
        else:
            values = [(text + piece, known) for text, known in values for piece in pieces][:MOST]
    alone = len(word.parts) == 1 and word.parts[0].kind == VARIABLE and word.raw.startswith("$")
    found: list[Argument] = []
    for text, known in values:
        for piece in _split(text) if alone and known else _braces(text) if "{" in word.raw else [text]:
            pattern = (wild or alone) and bool(_WILD.search(piece))
            found.append(Argument(piece if pattern else _unescaped(piece), known, pattern))
    return found


def assigned(command: Command, environment: dict[str, list[str]]) -> tuple[Word, ...]:
    """Note the assignments that `command` starts with in `environment`; returns the words that follow them."""
    words = command.words
    while words and is_assignment(words[0]):
        note(words[0], environment)
        words = words[1:]
    if words and words[0].plain in ("export", "declare", "typeset", "local", "readonly"):
        for word in words[1:]:
            if is_assignment(word):
                note(word, environment)
    if words and words[0].plain in ("read", "mapfile", "readarray", "unset"):
        for word in words[1:]:
            environment.pop(word.plain or "", None)
    return words


def note(word: Word, environment: dict[str, list[str]]) -> None:
    """Remember one assignment; a later one adds a possible value, because branches and loops are not followed."""
    first = word.parts[0].text
    name, _, rest = first.partition("=")
    value = Word((word.parts[0]._replace(text=rest), *word.parts[1:]), word.raw)
    values = expand(value, environment)
    name = name.rstrip("+")
    if all(value.known for value in values):
        known = environment.setdefault(name, [])
        known += [value.text for value in values if value.text not in known]
        del known[MOST:]
    else:
        environment.pop(name, None)


def _split(text: str) -> list[str]:
    """An unquoted variable's words, and, where blanks stand in it, also the whole: IFS may be set to anything."""
    words = text.split()
    return words if len(words) < 2 else [*words, text]


def _braces(text: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`; ranges and nested braces that do not reduce stay as they are."""
    match = _BRACES.search(text)
    if match is None or match.group().startswith("${"):
        return [text]
    found: list[str] = []
    for choice in match.group(1).split(","):
        found += _braces(text[: match.start()] + choice + text[match.end() :])
        if len(found) > MOST:
            return [text]
    return found


def _escaped(text: str) -> str:
    """Quoted wildcards, marked so that they match themselves only."""
    return re.sub(r"[*?\[]", lambda match: f"[{match.group()}]", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\[([*?\[])\]", r"\1", text)
