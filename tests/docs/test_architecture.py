"""docs/architecture.md and docs/extending.md name what exists, and every room that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("architecture.md", "extending.md")
NAMED = re.compile(r"`((?:harness|bench|tests|templates|docs|hooks)/[\w./-]*)(?::(\w+))?`")
MOST_MODULES = 30


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text("utf-8")


def defined(path: Path) -> set[str]:
    """Functions, classes and constants at the top of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("page", PAGES)
def test_each_path_and_name_exists(page: str) -> None:
    named = NAMED.findall(text_of(page))
    assert len(named) > 10, "the search found fewer names than there are"
    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    assert [
        f"{path}:{name}" for path, name in named if name and name not in defined(ROOT / path)
    ] == []


def test_the_drawing_names_every_room() -> None:
    drawing = text_of("architecture.md").split("```")[1]
    rooms = {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")}
    assert {room for room in rooms if f"{room}/" not in drawing} == set()


def test_a_journey_names_at_most_so_many_modules() -> None:
    journeys = [
        part for part in text_of("architecture.md").split("\n## ")[1:] if "`harness " in part[:60]
    ]
    assert len(journeys) == 3
    for journey in journeys:
        assert len({path for path, _ in NAMED.findall(journey)}) <= MOST_MODULES
