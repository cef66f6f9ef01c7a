"""Every finding code used anywhere is in the table, and every code in the table is used."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from harness.domain.findings import Finding
from harness.domain.statuses import Verdict
from harness.gates.findings import FINDINGS, finding, outcome_of

PACKAGE = Path(harness.__file__).parent
ROOM = ("gates", "audit", "loop")
MAKERS = {"finding", "Finding", "about_rows", "_changed", "_compare"}


def used_codes(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "id", getattr(node.func, "attr", "")) in MAKERS
                ):
                    first = node.args[0] if node.args else None
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        yield path.relative_to(PACKAGE).as_posix(), first.value


def test_every_code_of_this_room_is_in_the_table() -> None:
    used = list(used_codes(*ROOM))
    assert len(used) > 20
    assert [(where, code) for where, code in used if code not in FINDINGS] == []


def test_every_code_that_can_reach_a_gate_is_in_the_table() -> None:
    unknown = [
        pair for pair in used_codes("evaluation", "project", "runs") if pair[1] not in FINDINGS
    ]
    assert unknown == []


def test_no_code_in_the_table_is_dead() -> None:
    everywhere = "\n".join(
        path.read_text("utf-8")
        for path in PACKAGE.rglob("*.py")
        if path != PACKAGE / "gates" / "findings.py"
    )
    assert [code for code in FINDINGS if f'"{code}"' not in everywhere] == []


def test_each_entry_says_what_it_means_and_how_to_hint_it() -> None:
    for code, known in FINDINGS.items():
        assert code.islower()
        assert known.meaning.endswith(".")
        assert known.hint.endswith(".")
        assert known.outcome in (Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE)


def test_a_finding_takes_the_hint_of_the_table_unless_a_closer_one_is_known() -> None:
    assert finding("run_open", "It runs.").hint == FINDINGS["run_open"].hint
    assert finding("run_open", "It runs.", "Wait a minute.", run="run-01").data == {
        "run": "run-01"
    }
    with pytest.raises(KeyError):
        finding("no_such_code", "x")


def test_an_unknown_code_fails() -> None:
    assert outcome_of(Finding("brand_new", "x", "y")) is Verdict.FAIL
