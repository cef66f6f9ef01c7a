"""What stands in the arguments of a tool whose form nobody declared: what may be a path, a command
line, a program."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LONGEST_PATH = 4096
_RUNS = (
    "command",
    "commands",
    "cmd",
    "cmds",
    "cmdline",
    "commandline",
    "exec",
    "execute",
    "run",
    "argv",
)
_LINES = frozenset(
    (*_RUNS, "script", "scripts", "shell", "bash", "sh", "terminal", "stdin", "keys")
)
"""Words in the name of an argument that is a command line; a list of them may also be the words of
one."""
_PROGRAMS = _LINES | frozenset(("program", "executable", "binary", "exe"))
_ARGUMENTS = ("args", "arguments", "argv", "params", "parameters")
_CODE = frozenset(("code", "expression", "javascript", "js", "program", "python", "snippet"))
_HEX = frozenset("0123456789abcdefABCDEF")


def paths(value: Any) -> list[str]:
    """Each text in `value` that may be a path, once: whole, and line by line; with %-codes also
    without them. Of an object's keys those that look like one. A text that is longer than any path
    counts by what it comes to."""
    found: dict[str, None] = {}
    for text in _texts(value):
        for line in (text, *text.splitlines()):
            for written in (line.strip(), decoded(line.strip())):
                path = _local(written)
                short = path if len(path) <= LONGEST_PATH else os.path.normpath(path)
                if short and len(short) <= LONGEST_PATH and "\n" not in short:
                    found[short] = None
    return list(found)


def command_lines(value: Any) -> list[str]:
    """What is a command line by the name of its argument, at any depth; words in a list, and a
    program with its arguments, as one line."""
    found: dict[str, None] = {}
    for item in _objects(value):
        for key, inner in item.items():
            if _named(key, _LINES):
                found.update(dict.fromkeys(_texts(inner, keys=False)))
                found.update(dict.fromkeys([_joined(inner)] if isinstance(inner, list) else []))
        given = next((item[key] for key in _ARGUMENTS if key in item), None)
        rest = (
            given if isinstance(given, str) else _joined(given) if isinstance(given, list) else ""
        )
        heads = (
            inner
            for key, inner in item.items()
            if isinstance(inner, str) and _named(key, _PROGRAMS)
        )
        found.update(dict.fromkeys(f"{head} {rest}" for head in heads if rest))
    return [line for line in found if line]


def programs(value: Any) -> list[str]:
    """What is program text by the name of its argument, at any depth."""
    named = (
        inner for item in _objects(value) for key, inner in item.items() if _named(key, _CODE)
    )
    return [text for inner in named for text in _texts(inner, keys=False)]


def _texts(value: Any, *, keys: bool = True) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if keys and ("/" in key or "." in key or "%" in key):
                yield key
            yield from _texts(item, keys=keys)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, keys=keys)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _objects(item)


def _named(key: str, words: frozenset[str]) -> bool:
    """Whether one of `words` stands in the name `key`, as it is written in any of the usual ways:
    a_b, a-b, aB."""
    parted = "".join(
        f" {letter}" if letter.isupper() else letter if letter.isalnum() else " " for letter in key
    )
    return not words.isdisjoint((*parted.lower().split(), key.lower()))


def _joined(words: list[Any]) -> str:
    """A command line of the texts in `words`; empty when there is none."""
    return " ".join(
        "'" + word.replace("'", "'\\''") + "'" for word in words if isinstance(word, str)
    )


def _local(text: str) -> str:
    """The path of a file URI, whose scheme is written in any case and whose host is this one."""
    if text[:5].lower() != "file:":
        return text
    rest = text[5:]
    return "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest


def decoded(text: str) -> str:
    """Without %-codes, whatever they stand for."""
    if "%" not in text:
        return text
    first, *parts = text.encode("utf-8", "surrogatepass").split(b"%")
    found = first
    for part in parts:
        code = part[:2].decode("ascii", "replace")
        coded = len(code) == 2 and set(code) <= _HEX
        found += bytes((int(code, 16),)) + part[2:] if coded else b"%" + part
    return found.decode("utf-8", "replace")
