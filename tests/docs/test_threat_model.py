"""Every cell of the threat model names tests, and they exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/threat-model.md").read_text("utf-8")
TESTS = {
    int(number): re.findall(r"`([^`]+)`", line)
    for number, line in re.findall(r"^(\d+)\. (.*)$", TEXT, re.MULTILINE)
}
GRANTED_BY_OTHERS = {"-", "yours", "as you have it", "your CLI's own login"}
"""Cells that promise nothing."""


def cells() -> list[str]:
    tables = [line for line in TEXT.splitlines() if line.startswith("| ")]
    rows = [line for line in tables if "guarantee |" not in line and "| test |" not in line]
    return [cell.strip() for line in rows for cell in line.strip("|").split(" | ")[1:]]


def test_each_cell_names_a_test():
    bare = [
        cell
        for cell in cells()
        if not re.search(r"\[\d+\]", cell)
        and not cell.startswith(("as plain", "as the sandbox"))
        and cell.strip(" |") not in GRANTED_BY_OTHERS
    ]
    assert bare == []


def test_each_number_is_listed_and_used():
    used = {int(number) for cell in cells() for number in re.findall(r"\[(\d+)\]", cell)}
    assert used == set(TESTS)


@pytest.mark.parametrize("number", sorted(TESTS))
def test_the_tests_exist(number: int):
    assert TESTS[number]
    for name in TESTS[number]:
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert any(item.startswith("test_") for item in defined)
        assert not function or function in defined, name
