"""Sizes and exceptions: small modules, short functions, no net that catches everything."""

import ast
import io
import tokenize
from collections.abc import Iterator

from source_tree import Module, modules

MOST_LINES = 400
LONGEST_FUNCTION = 60
MAY_CATCH_ALL = {
    "harness/cli/main.py",  # a fault of ours ends as exit 3, said in one sentence
    "harness/guard/hooks/run.py",  # a fault in a guard denies, in one sentence
    "harness/cheats/bench.py",  # a fault of the lab in one row must not hide the others
}
"""At most three files. Elsewhere an error is caught by its name."""
EVERYTHING = {"Exception", "BaseException"}
IMPORTS_WHERE_USED = {"policy", "handlers"}
"""Every tool call waits for their start: what only some calls need is imported there
(bench/guard.py)."""


def test_modules_are_small():
    lengths = {module.shown: module.text.count("\n") for module in modules()}
    assert {where: length for where, length in lengths.items() if length > MOST_LINES} == {}


def test_functions_are_short():
    long = [
        f"{module.shown}:{node.lineno} {node.name} has {length} lines"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert long == []


def test_at_most_three_files_may_catch_everything():
    assert len(MAY_CATCH_ALL) <= 3
    assert {module.shown for module in modules()} >= MAY_CATCH_ALL


def test_errors_are_caught_by_name():
    assert [
        where for module in modules() if module.shown not in MAY_CATCH_ALL for where in nets(module)
    ] == []


def nets(module: Module) -> Iterator[str]:
    """Where everything is caught: by an except clause that does not raise it again, or by
    `suppress`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = list(ast.walk(node.type)) if node.type else []
            names = (
                {leaf.id for leaf in caught if isinstance(leaf, ast.Name)}
                if node.type
                else EVERYTHING
            )
            again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        elif isinstance(node, ast.Call) and "suppress" in (
            getattr(node.func, "attr", ""),
            getattr(node.func, "id", ""),
        ):
            names = {argument.id for argument in node.args if isinstance(argument, ast.Name)}
            again = False
        else:
            continue
        if names & EVERYTHING and not again:
            yield f"{module.shown}:{node.lineno}"


def test_imports_stand_at_the_top():
    inner = [
        f"{module.shown}:{node.lineno}"
        for module in modules()
        if module.room not in IMPORTS_WHERE_USED
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert inner == []


def test_nothing_is_left_to_do():
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    left = [
        f"{module.shown}:{token.start[0]} {token.string}"
        for module in modules()
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
        if token.type == tokenize.COMMENT and any(mark in token.string for mark in marks)
    ]
    left += [
        f"{module.shown}:{node.lineno} NotImplementedError"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.dump(node.exc)
    ]
    assert left == []
