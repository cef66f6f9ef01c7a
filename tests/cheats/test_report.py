"""What a document of the benchmark says about itself."""

import re
from typing import Any

from click.testing import CliRunner

from harness.cheats.bench import FAULT
from harness.cheats.report import figures, leave_one_out, merged, needed, page, problems
from harness.cli.cheats import command
from harness.errors import UsageError


def row(name: str, **more: Any) -> dict[str, Any]:
    seen = {"believed": 0.97, "true": 0.5, "done": False}
    base = {
        "id": name,
        "area": "a",
        "mechanism": "m | n",
        "source": "s",
        "succeeded_undefended": True,
        "caught": True,
        "caught_by": ["ledger"],
        "graded": "",
        "said": [],
        "reason": "",
        "undefended": seen,
    }
    return {**base, **more}


def document(
    *attacks: dict[str, Any], refused: bool = False, sandbox: str = "bwrap"
) -> dict[str, Any]:
    said = ["x"] if refused else []
    control = {
        "id": "honest",
        "what": "w",
        "refused": refused,
        "said": said,
        "improved": True,
        "believed": 0.7,
    }
    return {
        "sandbox": sandbox,
        "seed": 1,
        "date": "2026-01-01",
        "machine": "m",
        "attacks": list(attacks),
        "controls": [control],
    }


def test_a_run_that_holds_has_no_problem():
    assert problems(document(row("one"), row("two", caught_by=["ledger", "sandbox"]))) == []


def test_each_way_of_not_holding_is_a_problem():
    unreal = document(row("one", succeeded_undefended=False))
    assert any("did not succeed undefended" in item for item in problems(unreal))
    unknown = document(*(row(str(n)) for n in range(40)), row("through", caught=False))
    assert problems(unknown) == ["through gets through, and nobody knows why"]
    named = document(
        *(row(str(n)) for n in range(40)), row("through", caught=False, reason="known")
    )
    assert problems(named) == []
    many = document(row("one"), row("two", caught=False, reason="known"))
    assert any("95%" in item for item in problems(many))
    assert problems({**many, "sandbox": "none"}) == []
    assert any(
        "honest is refused" in item for item in problems(document(row("one"), refused=True))
    )
    assert problems(document(row("one", caught_by=[]))) == [
        "one is caught, and by no defence that has a name"
    ]
    nameless = document(row("one", said=["metrics_changed", "no_such_code"]))
    assert problems(nameless) == ["one is told of by `no_such_code`, which belongs to no defence"]
    broken = {"id": "one", "fault": "HarnessError\n trace", **FAULT}
    assert "`one`" not in page([document(broken)])
    assert any("one: the lab failed: HarnessError" in item for item in problems(document(broken)))
    unbelieved = document(row("one"))
    unbelieved["controls"][0]["believed"] = None
    assert problems(unbelieved) == ["honest is an improvement, and no score of it is believed"]


def test_a_defence_is_needed_where_nothing_else_stops_it():
    rows = leave_one_out(document(row("one"), row("two", caught_by=["ledger", "sandbox"])))
    by_name = {item["defence"]: item for item in rows}
    assert by_name["ledger"]["stops"] == ["one", "two"]
    assert by_name["ledger"]["sole"] == ["one"]
    assert by_name["sandbox"]["sole"] == []


def test_over_both_runs_a_defence_is_needed_where_it_is_in_one_of_them():
    unsandboxed = document(row("two", caught_by=["hooks"]), sandbox="none")
    found = needed([document(row("one"), row("two", caught_by=["hooks", "sandbox"])), unsandboxed])
    assert found["ledger"] == {"one": ["bwrap"]}
    assert found["hooks"] == {"two": ["none"]}
    assert found["seeds"] == {}
    shown = page([document(row("one"), row("two", caught_by=["hooks", "sandbox"])), unsandboxed])
    (line,) = [line for line in shown.splitlines() if line.startswith("| hooks |")]
    assert line.endswith("| 1 | 1 | `two` (none) |")


def test_each_sandbox_needs_a_file_of_its_own():
    words = ["run", "--sandbox", "auto", "--sandbox", "none", "--evidence", "one.json"]
    ended = CliRunner().invoke(command, words)
    assert isinstance(ended.exception, UsageError)
    assert "1 --evidence and 2 --sandbox" in ended.exception.message


def test_a_run_of_some_keeps_the_rows_of_the_others_and_says_so():
    before = document(row("one"), row("two", caught=False, reason="then"), row("gone"))
    whole = merged(document(row("two")), before, ["one", "two", "honest"])
    assert [(item["id"], item["caught"]) for item in whole["attacks"]] == [
        ("one", True),
        ("two", True),
    ]
    assert whole["kept"] == {"one": "2026-01-01"}
    assert "1 rows are of runs before (2026-01-01)" in page([whole])
    then = {**document(row("two")), "date": "2026-02-02"}
    names = ["one", "two", "three", "honest"]
    third = merged(document(row("three")), merged(then, before, names), names)
    assert third["kept"] == {"one": "2026-01-01", "two": "2026-02-02"}
    assert "kept" not in merged(before, before, ["one", "two", "gone", "honest"])


def test_the_page_shows_what_gets_through():
    shown = document(row("one"), row("two", caught=False, reason="nobody looks there"))
    text = page([shown])
    assert "**gets through**" in text
    assert "nobody looks there" in text
    assert "m \\| n" in text
    assert figures(shown)["caught"] == 1
    assert "1 of them were caught (50.0%), the others got through (below). 1 controls" in text


def test_each_sandbox_has_its_evidence_and_counts_what_was_not_caught():
    rows = [row("one"), row("two", caught=False, graded="words")]
    rows.append(row("three", caught=False, reason="known"))
    shown = [document(*rows, sandbox=kind) for kind in ("bwrap", "landlock", "none")]
    text = page(shown)
    named = re.findall(r"Figures: `docs/evidence/cheats-(\w+)\.json`", text)
    assert named == ["sandboxed", "landlock", "unsandboxed"]
    assert "1 were not, and their score says so, the others got through (below)." in text
    assert "of them were caught (100.0%). 1 controls" in page([document(row("one"))])


def test_a_score_that_says_that_it_was_not_isolated_is_graded_and_neither_stopped_nor_through():
    words = "recomputed, session not isolated"
    shown = document(row("one"), row("two", caught=False, graded=words), sandbox="none")
    assert problems(shown) == []
    assert figures(shown)["graded"] == 1
    text = page([shown])
    assert f"graded: `{words}`" in text
    assert "What gets through" not in text
