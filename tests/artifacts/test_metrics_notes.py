"""What a reader notices in metrics: said in words, judged by nobody.

`case_NN` in a name is the number of a reported case: a file or log of a real project that an
earlier tool misread. Where its input was kept, it is in tests/artifacts/inputs/case-NN.
"""

import json
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_notes import REPEATED_ROWS, RepeatedLosses
from tests.metrics_rows import read_rows

INPUTS = Path(__file__).with_name("inputs")


def noted(folder: Path, rows: list[dict[str, Any]], tail: str = "") -> list[str]:
    path = folder / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return read_rows(path).said


def falling(count: int) -> list[dict[str, Any]]:
    return [{"step": step, "loss": 1 / (step + 1)} for step in range(count)]


def test_healthy_metrics_give_no_note(tmp_path: Path) -> None:
    assert noted(tmp_path, falling(50)) == []


def test_case_11_an_exactly_repeated_loss_and_a_nan_of_any_key(tmp_path: Path) -> None:
    rows = (
        falling(20)
        + [{"step": step, "loss": 0.05, "grad_norm": float("nan")} for step in range(19, 60)][1:]
    )
    assert noted(tmp_path, rows) == [
        "40 values are not finite, the first at 20",
        "loss is exactly 0.05 in 41 rows in a row, from 19 on",
    ]


def test_case_11_a_loss_of_exactly_zero(tmp_path: Path) -> None:
    rows = [{"step": 0, "train/loss": 14577.98}] + [
        {"step": 10 * n, "train/loss": 0.0} for n in range(1, 40)
    ]
    assert noted(tmp_path, rows) == ["train/loss is exactly 0.0 in 39 rows in a row, from 10 on"]


def test_a_plateau_and_a_short_stretch_are_none(tmp_path: Path) -> None:
    plateau = [{"step": step, "loss": 0.5 + (step % 2) * 1e-9} for step in range(60)]
    assert noted(tmp_path, plateau) == []
    assert (
        noted(
            tmp_path, falling(3) + [{"step": 3 + n, "loss": 0.1} for n in range(REPEATED_ROWS - 1)]
        )
        == []
    )


def test_other_keys_may_repeat(tmp_path: Path) -> None:
    assert (
        noted(tmp_path, [{**row, "learning_rate": 0.1, "accuracy": 1.0} for row in falling(50)])
        == []
    )


def test_the_longest_stretch_of_each_loss_is_told() -> None:
    rows = [{"step": n, "loss": 1.0 if n < 20 else 2.0, "val_loss": 3.0} for n in range(60)]
    losses = RepeatedLosses()
    for row in rows:
        losses.take(row)
    assert {key: (found.rows, found.first) for key, found in losses.longest.items()} == {
        "loss": (40, 20),
        "val_loss": (60, 0),
    }


def test_damaged_lines_and_resumes_are_counted(tmp_path: Path) -> None:
    rows = [*falling(10), *falling(30)[5:8], *falling(30)[6:9]]
    found = noted(tmp_path, rows, tail="rubbish\nmore rubbish\n")
    assert len(found) == 2
    assert found[0].startswith("metrics.jsonl line 17 ")
    assert found[0].endswith(" (and 1 more)")
    assert found[1] == "resumed at 6 (2 times in all)"


def test_case_11_as_it_was_reported() -> None:
    found = read_rows(INPUTS / "case-11" / "metrics.jsonl").said
    assert "loss is exactly 1.81 in 41 rows in a row, from 19 on" in found
