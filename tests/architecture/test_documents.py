"""What documents and rendered files say is what there is."""

import importlib
import re
from fnmatch import fnmatch

import click
import pytest
from source_tree import PACKAGE, ROOT

from harness.cli.main import COMMANDS, SUMMARIES
from harness.rendering.render import render

CLI = (ROOT / "docs" / "cli.md").read_text("utf-8")
NOT_IN_THE_TREE = {".git", ".venv", ".github", "__pycache__", "build", "dist"}


def test_rendered_files_are_fresh():
    assert render(ROOT, check=True) == []


def test_the_tree_is_the_disk():
    """Folders at the top (but those that git ignores) and the rooms of harness/ stand in the tree
    of docs/architecture.md."""
    top, rooms = documented_tree()
    ignored = [
        line.strip().strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    ]
    on_disk = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir()
        and not any(fnmatch(path.name, pattern) for pattern in [*NOT_IN_THE_TREE, *ignored])
    }
    assert top == on_disk
    assert rooms == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def documented_tree() -> tuple[set[str], set[str]]:
    """(folders at the top, rooms of harness/): from the fenced block of the page with a line
    `harness/  ...`."""
    blocks: list[list[str]] = []
    inside = False
    for line in (ROOT / "docs/architecture.md").read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
            blocks += [[]] if inside else []
        elif inside:
            blocks[-1].append(line)
    (tree,) = [block for block in blocks if any(re.match(r"harness/\s", line) for line in block)]
    top = {match.group(1) for line in tree if (match := re.match(r"(\S+)/\s", line))}
    rooms = {match.group(1) for line in tree if (match := re.match(r"  (\S+)/\s", line))}
    return top, rooms


def verbs() -> list[str]:
    """Every verb with its sub-verbs, as a person types it."""
    found = []
    for verb, target in COMMANDS.items():
        module, _, attribute = target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        found += (
            [f"{verb} {name}" for name in command.commands]
            if isinstance(command, click.Group)
            else [verb]
        )
    return found


@pytest.mark.parametrize("verb", verbs())
def test_each_verb_is_documented(verb):
    assert re.search(rf"`harness {re.escape(verb)}[ `]", CLI)


def test_each_documented_verb_exists():
    named = {" ".join(match.split()[:2]) for match in re.findall(r"`harness ((?:[a-z]+ ?)+)", CLI)}
    known = set(verbs()) | set(COMMANDS)
    assert {name for name in named if name not in known and name.split()[0] not in known} == set()


def test_each_verb_has_a_summary():
    assert set(SUMMARIES) == set(COMMANDS)
    assert all(text.endswith(".") for text in SUMMARIES.values())


@pytest.mark.parametrize("verb", list(COMMANDS))
def test_each_verb_takes_json(verb):
    module, _, attribute = COMMANDS[verb].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        options = {option for parameter in leaf.params for option in parameter.opts}
        assert "--json" in options, leaf.name
