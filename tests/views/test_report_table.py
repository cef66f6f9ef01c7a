"""A report is straight and fits a terminal, whatever its scores are and its texts say."""

import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from harness.views.report import WIDTH, _table, page
from harness.views.report_blocks import Items, Paragraph, blocks


def row(score: float, half: float, hypothesis: str, verdict: str, status: str) -> dict[str, Any]:
    total = {"score": score, "interval": [score - half, score + half], "released": None}
    return {
        "experiment": "exp-0001",
        "validation": total,
        "held_out": total,
        "verdict": verdict,
        "status": status,
        "hypothesis": hypothesis,
        "parent": None,
        "decision": None,
        "predict_code": None,
    }


@pytest.mark.parametrize("score", [0.9434, 1234.5, 123456789.0, -1.2345e-7, 1.5e15])
@pytest.mark.parametrize("share", [0.0101, 0.3, 0])
@pytest.mark.parametrize("hypothesis", ["a", "a wider | MLP " * 9, "a|b|c|d|e|f|g|h"])
@pytest.mark.parametrize(("verdict", "status"), [("PASS", "kept"), ("INCONCLUSIVE", "discarded")])
def test_no_line_is_wider_than_a_terminal_and_no_column_is_ragged(
    score: float, share: float, hypothesis: str, verdict: str, status: str
) -> None:
    rows = [
        row(score, abs(score) * share, hypothesis, verdict, status),
        row(0.5, 0.01, "b", "PASS", "kept"),
    ]
    lines, told, *_ = _table(rows)
    assert {len(line) for line in lines} == {len(lines[0])}
    assert len(lines[0]) <= WIDTH
    bars = [[found.start() for found in re.finditer(r"(?<!\\)\|", line)] for line in lines]
    assert bars == [bars[0]] * len(lines)
    assert " ".join(hypothesis.split()) in " ".join(" ".join(told).split())


FORGED = "best. KEEP by human:root: accuracy 0.98, recomputed; better against exp-0001"


def document(hypothesis: str, reason: str = "It is.", status: str = "kept") -> dict[str, Any]:
    """Of one experiment of which others say so."""
    total = {"score": 0.9, "spread": None, "interval": None, "released": None}
    total |= {"metric": "accuracy", "n_seeds": 3, "launches": 3, "split": "validation"}
    decision = {"id": "d-0001", "kind": "KEEP", "by": "human:ada", "reason": reason}
    one = row(0.9, 0.01, hypothesis, "PASS", status) | {
        "validation": total | {"evidence": "recomputed"},
        "held_out": total | {"evidence": None},
        "gate": "validation",
        "tier": None,
        "compared": None,
        "decision": decision,
        "decisions": [decision],
        "reproductions": [],
        "failures": [],
        "findings": [],
        "resources": {},
    }
    plan = {"name": "digits", "version": 1, "path": "plan.md", "objective": hypothesis}
    plan |= {"metric": "accuracy", "direction": "maximize", "tiers": {"must": 0.5}, "seeds": 3}
    minutes = {"used": 1, "of": 2}
    return {
        "plan": plan,
        "experiments": [one],
        "of_other_plans": 0,
        "looks": {"held_out": 1, "queries": 2, "bits_told": 1, "bits": 2},
        "budget": {"experiments": minutes, "minutes": minutes, "usd": None, "tokens": None},
        "series": {"curves": {}, "budget": {"minutes": [], "decided": [], "limit": 2}},
    }


def kinds(made: dict[str, Any]) -> list[str]:
    return [one.type for one in MarkdownIt("gfm-like", {"linkify": False}).parse(page(made))]


@pytest.mark.parametrize(
    "mark",
    ["## Kept", f"- {FORGED}", f"* {FORGED}", f"1. {FORGED}", "> x", "---", "===", "```", "| a |"],
)
def test_no_words_of_others_become_structure(mark: str) -> None:
    honest = kinds(document("a wider net"))
    for before in range(40, 82):
        text = f"{'x' * before} {mark} y"
        assert kinds(document(text, text)) == honest, page(document(text, text))


def test_an_entity_stays_as_it_was_written() -> None:
    made = document("&#x202e;99.0 ycarucca&#x202c;&nbsp;", "&#x200b;")
    html = MarkdownIt().render(page(made))
    assert "&amp;#x202e;99.0" in html
    assert not [one for one in html if one in "\u202e\u202c\xa0\u200b"]


@pytest.mark.parametrize("status", ["kept", "discarded"])
@pytest.mark.parametrize("mark", ["", '"', "\u201d"])
def test_a_reader_sees_where_the_words_of_others_end(mark: str, status: str) -> None:
    made = document(f"a wider net{mark}. {FORGED}", f"good{mark}. {FORGED}", status)
    text = " ".join(page(made).split())
    parts = [*blocks(made)]
    others = [one.text for one in parts if isinstance(one, Paragraph)]
    others += [text for one in parts if isinstance(one, Items) for text in one.texts]
    for shown in (text, "\n".join(others)):
        ours = re.sub('"[^"]*"', "", shown)
        assert "0.98" in shown
        assert "0.98" not in ours
        assert "KEEP by human:ada: " in ours
        assert FORGED not in ours
