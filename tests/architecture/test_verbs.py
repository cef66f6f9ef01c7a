"""Verbs that a text names exist, and those that only a person uses are refused below an agent, all
of them."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from source_tree import PACKAGE, ROOT, modules

from harness.cli.main import COMMANDS, harness
from harness.contract.roles import HUMAN_VERBS

NAMED = re.compile(r"`harness ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
TEXTS = (
    "harness/**/*.md",
    "harness/**/*.yaml",
    "templates/**/*.j2",
    "agents/*.md",
    ".claude/**/*.md",
    "*.md",
)


def command_of(verb: str) -> click.Command:
    module, _, attribute = COMMANDS[verb].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def strings() -> Iterator[tuple[str, str]]:
    """(where, text) of every string of the package and of every text that it ships."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{module.shown}:{node.lineno}", node.value
    for pattern in TEXTS:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def unknown(text: str) -> list[str]:
    """Verbs in backticks that are none, e.g. "harness approve"."""
    found = []
    for verb, below in NAMED.findall(text):
        known = verb in COMMANDS
        if known and below and isinstance(group := command_of(verb), click.Group):
            known = below in group.commands
        if not known:
            found.append(f"harness {verb} {below}".strip())
    return found


def test_every_verb_that_a_text_names_exists():
    named = [(where, text) for where, text in strings() if NAMED.search(text)]
    assert len(named) > 40, "the search found fewer texts than there are"
    assert {where: wrong for where, text in named if (wrong := unknown(text))} == {}


def test_the_search_finds_what_does_not_exist():
    said = (
        "Run `harness frobnicate`, `harness gate promote EXP` or `harness plan check`; `harness"
        " status --json`."
    )
    assert unknown(said) == ["harness frobnicate", "harness gate promote"]


def asked_of_a_person() -> list[str]:
    """The verbs for which a command of ours calls require_person."""
    return sorted(
        node.args[0].value
        for path in sorted((PACKAGE / "cli").glob("*.py"))
        for node in ast.walk(ast.parse(Path(path).read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require_person"
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    )


def test_the_human_verbs_are_those_that_the_commands_refuse():
    assert asked_of_a_person() == sorted(" ".join(verb) for verb in HUMAN_VERBS)


@pytest.mark.parametrize("verb", HUMAN_VERBS, ids=" ".join)
def test_a_human_verb_exists(verb: tuple[str, ...]):
    command = command_of(verb[0])
    for word in verb[1:]:
        if word.startswith("-"):
            assert any(word in parameter.opts for parameter in command.params)
            continue
        assert isinstance(command, click.Group)
        command = command.commands[word]
    assert verb[0] in harness.list_commands(click.Context(harness))
