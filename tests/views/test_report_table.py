"""The table of a report is straight and fits a terminal, whatever its scores are."""

import re
from typing import Any

import pytest

from harness.views.report import WIDTH, _table


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
