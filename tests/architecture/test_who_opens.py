"""Exact scores on secret labels are opened where they are judged, for a person, nowhere else."""

import ast

from source_tree import modules

OPENS = {
    "harness.evaluation.scores": "defines it",
    "harness.evaluation.comparison": "compares; what it finds is told by release",
    "harness.evaluation.release": "tells",
    "harness.cheats.defended": "the lab, which made the labels",
    "harness.views.exact": "a person's own terminal",
}
NAMES = {"counted_evaluations", "opened"}


def opens(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("harness.evaluation.")
        and any(alias.name in NAMES for alias in node.names)
        for node in ast.walk(tree)
    )


def test_only_the_judge_and_a_persons_view_open_exact_scores() -> None:
    found = {module.name for module in modules() if opens(module.tree)}
    assert found == set(OPENS)


def test_a_persons_view_is_reached_by_one_verb_alone() -> None:
    users = {
        module.name
        for module in modules()
        if any(
            isinstance(node, ast.ImportFrom) and node.module == "harness.views.exact"
            for node in ast.walk(module.tree)
        )
    }
    assert users == {"harness.cli.experiment"}
