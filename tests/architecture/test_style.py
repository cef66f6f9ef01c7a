"""Sizes and exceptions: small modules, short functions and lines, no net that catches everything.

Columns, complexity and the average line are counted beside lines, so that packing code to pass the
limit of lines does not pay.
"""

import ast
import io
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

from source_tree import ROOT, VENDORED, Module, modules

MOST_LINES = 400
LONGEST_FUNCTION = 60
MOST_COLUMNS = 100
MOST_COMPLEX = 20
MOST_CHARACTERS_A_LINE = 38.0
"""On average over the code lines of harness/, leading spaces not counted."""
PROGRAMS_AS_TEXT = ("tests/", "harness/cheats/programs.py", "harness/cheats/calls.py")
"""Here a program stands as a string of many lines, and its lines may be longer."""
MAY_BE_WIDE = ("harness/cheats/catalogue/",)
"""Attacks are programs, written as text a line at a time."""
MAY_CATCH_ALL = {
    "harness/cli/main.py",  # a fault of ours ends as exit 3, said in one sentence
    "harness/guard/hooks/frame.py",  # a fault in a guard denies, in one sentence
    "harness/cheats/bench.py",  # a fault of the lab in one row must not hide the others
    "harness/artifacts/npz.py",  # whatever a reader raises for a hostile file is a finding about it
}
"""At most four files. Elsewhere an error is caught by its name."""
EVERYTHING = {"Exception", "BaseException"}


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


def test_lines_are_short():
    wide = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} columns"
        for folder in ("harness", "hooks", "bench", "tests", "docs")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "inputs" not in path.parts and not path.is_symlink()
        for number, line in outside_programs(path)
        if len(line) > MOST_COLUMNS
    ]
    assert wide == []


def outside_programs(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of the file, without the lines of programs that stand in it as text."""
    text, shown = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
    inside: set[int] = set()
    if shown.startswith(MAY_BE_WIDE):
        return
    if shown.startswith(PROGRAMS_AS_TEXT):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and token.start[0] < token.end[0]:
                inside.update(range(token.start[0], token.end[0] + 1))
    for number, line in enumerate(text.splitlines(), start=1):
        if number not in inside:
            yield number, line


def test_complexity_is_limited_by_the_linter():
    """`make lint` counts it; this holds the setting."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]["lint"]
    assert "C901" in lint["select"]
    assert lint["mccabe"]["max-complexity"] == MOST_COMPLEX
    quiet = [code for codes in lint["per-file-ignores"].values() for code in codes]
    assert "C901" not in quiet


def code_lines(module: Module) -> tuple[list[str], list[str]]:
    """(code lines, comment lines) without their leading spaces; empty lines are neither."""
    lines = [line.strip() for line in module.text.splitlines() if line.strip()]
    comments = [line for line in lines if line.startswith("#")]
    return [line for line in lines if not line.startswith("#")], comments


def test_lines_are_not_packed(record_property):
    counted = [code_lines(module) for module in modules()]
    code = [line for lines, _ in counted for line in lines]
    comments = sum(len(lines) for _, lines in counted)
    record_property("comment_share", comments / (comments + len(code)))
    record_property("code_characters", sum(map(len, code)))
    assert sum(map(len, code)) / len(code) <= MOST_CHARACTERS_A_LINE


def test_at_most_four_files_may_catch_everything():
    assert len(MAY_CATCH_ALL) <= 4
    assert {module.shown for module in modules()} >= MAY_CATCH_ALL


def test_errors_are_caught_by_name():
    assert [
        where
        for module in modules()
        if module.shown not in MAY_CATCH_ALL
        for where in nets(module)
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
        # Every tool call waits for the start of these: what only some calls need is imported there.
        if not module.name.startswith(VENDORED)
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
