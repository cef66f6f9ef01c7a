"""The table of settings keys has every key that this CLI's own schema has."""

import mmap
import re
from collections.abc import Iterator

from harness.guard.hooks.settings_keys import DANGEROUS, ENV, HARMLESS, HOOKS, PLUGINS
from tests.interactive.place import cli

BEGINS = re.compile(rb"\{\$schema:\(\)=>.{0,60}JSON Schema reference for Claude Code settings")
LONGEST = 400_000
CLOSERS = {"{": "}", "[": "]", "(": ")"}


def schema() -> str:
    """The text of the object of all settings keys, from the CLI's program."""
    with cli().open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = BEGINS.search(data)
        assert found, "the settings schema is written in another way: read its keys by hand"
        return data[found.start() : found.start() + LONGEST].decode("utf-8", "replace")


def members(text: str) -> Iterator[str]:
    """The members of the JavaScript object that `text` begins with."""
    inside, start, place = "", 1, 0
    while place < len(text):
        letter = text[place]
        if letter in "\"'`":
            place = end_of_text(text, place)
        elif letter in CLOSERS:
            inside += CLOSERS[letter]
        elif inside and letter == inside[-1]:
            inside = inside[:-1]
            if not inside:
                yield text[start:place]
                return
        elif letter == "," and len(inside) == 1:
            yield text[start:place]
            start = place + 1
        place += 1
    raise AssertionError("the settings schema has no end")


def end_of_text(text: str, place: int) -> int:
    """Where the text that begins at `place` ends; a template's inner expressions are part of it."""
    quote, place = text[place], place + 1
    while text[place] != quote:
        if text[place] == "\\":
            place += 1
        elif quote == "`" and text.startswith("${", place):
            depth = 0
            while True:
                depth += {"{": 1, "}": -1}.get(text[place], 0)
                if depth == 0 and text[place] == "}":
                    break
                place += 1
        place += 1
    return place


def test_each_key_of_this_cli_is_known() -> None:
    keys = set()
    for member in members(schema()):
        keys.update(re.findall(r"(?:^|^\.\.\..*?\{)([$\w]+):", member))
    assert len(keys) > 200
    assert keys - {*HARMLESS, *DANGEROUS, HOOKS, ENV, PLUGINS} == set()
