"""The list of what the reference asks is whole, and what it names is there: tests and
differences."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (HERE / "training_program.yaml").read_text("utf-8")
)
DOC = (ROOT / "docs" / "training-programs.md").read_text("utf-8")
COUNTS = {
    "training-program": 26,
    "external-training-contract": 44,
    "model-training-registry": 40,
    "promotion-gate": 24,
}


@cache
def named_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"
    )


@cache
def all_tests() -> frozenset[str]:
    return frozenset(
        one
        for path in (ROOT / "tests").rglob("test_*.py")
        for one in named_in(str(path.relative_to(ROOT)))
    )


def exists(name: str) -> bool:
    """A test; FILE::TEST; FILE; or the beginning of a test's name with a star."""
    file, _, test = name.partition("::") if "/" in name else ("", "", name)
    if file and not (ROOT / file).is_file():
        return False
    known = named_in(file) if file else all_tests()
    if file and not test:
        return bool(known)
    return any(
        one == test or (test[:-1] and test[-1] == "*" and one.startswith(test[:-1]))
        for one in known
    )


def rows(heading: str) -> str:
    """The section of the documentation."""
    return DOC.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


DIFFERENCES = [
    line[2:]
    for line in rows("Differences from the reference").splitlines()
    if line.startswith("- ")
]
FAULTS = [
    line.strip("|").split("|")
    for line in rows("The reference's faults").splitlines()
    if line.startswith("| ")
][1:]


def test_the_list_is_whole() -> None:
    assert {name: len(asked) for name, asked in TABLE.items()} == COUNTS


@pytest.mark.parametrize("name", COUNTS)
def test_each_is_held_by_a_test_that_exists(name: str) -> None:
    assert [
        item
        for item in TABLE[name]
        if not str(item.get("asks", "")).strip() or not exists(item.get("held", ""))
    ] == []
    assert all(item.keys() <= {"asks", "held", "differs"} for item in TABLE[name])


def test_each_difference_is_documented_and_each_documented_one_is_named() -> None:
    named = {item["differs"] for asked in TABLE.values() for item in asked if "differs" in item}
    assert [
        text for text in named if sum(line.startswith(text) for line in DIFFERENCES) != 1
    ] == []
    ours_alone = ("ORPO was its only mode", "There the prompt equals rejected")
    assert [line for line in DIFFERENCES if not line.startswith((*named, *ours_alone))] == []


def test_each_fault_has_a_line_that_names_tests_that_exist() -> None:
    assert [int(number) for number, _, _ in FAULTS] == list(range(1, 29))
    for number, here, tests in FAULTS:
        names = [word.strip("`,") for word in tests.split()]
        assert here.strip(), number
        assert names, number
        assert [name for name in names if not exists(name)] == [], number


def test_a_name_of_nothing_is_noticed() -> None:
    assert not exists("test_that_nobody_wrote")
    assert not exists("tests/conformance/test_gone.py")
    assert not exists("")
