"""Exact scores on secret labels are opened where they are judged, for a person, nowhere else."""

import ast
from collections.abc import Collection, Iterator
from functools import cache

import pytest
from source_tree import modules

OPENERS = {"counted_evaluations", "unsealed"}
OPENS = {
    "harness.evaluation.sealed": "keeps the records",
    "harness.evaluation.scores": "chooses those that count",
    "harness.evaluation.comparison": "compares; what it finds is told by release",
    "harness.evaluation.release": "tells",
    "harness.cheats.defended": "the lab, which made the labels",
    "harness.views.exact": "a person's own terminal",
}


def names(tree: ast.AST) -> Iterator[str]:
    """All that the source calls by a name, in whatever way, texts too."""
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case ast.FunctionDef() | ast.alias():
                yield node.name
            case ast.Constant() if isinstance(node.value, str):
                yield node.value
            case ast.ImportFrom():
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
                if any(alias.name == "*" for alias in node.names):
                    yield from OPENERS  # of that module, perhaps


@cache
def named() -> dict[str, frozenset[str]]:
    """Of the modules that could say one of our words at all."""
    words = (*OPENERS, "sealed", "exact", "import *")
    speaking = (module for module in modules() if any(word in module.text for word in words))
    return {module.name: frozenset(names(module.tree)) for module in speaking}


def speak_of(wanted: Collection[str]) -> set[str]:
    return {name for name, found in named().items() if not found.isdisjoint(wanted)}


def test_only_the_judge_and_a_persons_view_open_exact_scores() -> None:
    assert speak_of(OPENERS) == set(OPENS)


def test_one_module_reads_the_folder_of_the_records() -> None:
    found = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if "sealed" in named().get(module.name, ())
        and isinstance(node, ast.Attribute)
        and node.attr == "sealed"
        and "layout" in set(names(node.value))
    }
    assert found == {"harness.evaluation.sealed"}


@pytest.mark.parametrize(
    "text",
    [
        "from harness.evaluation.scores import counted_evaluations as other",
        "from harness.evaluation import scores\nscores.counted_evaluations(project)",
        "import harness.evaluation.scores as s\nf = s.counted_evaluations",
        "from harness.evaluation.scores import *",
        "from harness.views.exact import counted_evaluations",
        "from .scores import counted_evaluations",
        "getattr(scores, 'counted_evaluations')",
        "def f():\n    from harness.evaluation.sealed import unsealed",
    ],
)
def test_no_spelling_is_overlooked(text: str) -> None:
    assert not OPENERS.isdisjoint(names(ast.parse(text)))


def test_what_opens_nothing_is_not_named() -> None:
    text = "from harness.evaluation.scores import recorded_evaluations, summarise\nopened = 1"
    assert OPENERS.isdisjoint(names(ast.parse(text)))


def test_a_persons_view_is_reached_by_one_verb_alone() -> None:
    view = "harness.views.exact"
    assert speak_of({view, f"{view}.exact_scores"}) == {"harness.cli.experiment"}
    assert speak_of({"exact_scores"}) == {view, "harness.cli.experiment"}
