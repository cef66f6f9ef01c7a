"""Reading metrics as they are found: the reported cases, as they were reported and with inputs of
our own.

`case_NN` in a name is the number of a reported case: a file or log of a real project that an
earlier tool misread. Where its input was kept, it is in tests/artifacts/inputs/case-NN.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.artifacts.metrics_file import Tail, belonging
from tests.metrics_rows import bad_values, effective, read_rows

REPOSITORY = Path(__file__).parents[2]
INPUTS = Path(__file__).with_name("inputs")


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(data)
    return path


def steps(rows: list[dict]) -> list:
    return [row["step"] for row in rows]


CASE_10 = b"""{"step": 1, "loss": 2.0}
{"step": 2, "loss": NaN, "grad_norm": Infinity}
{"step": 3, "loss": -Infinity}
{"step": 4, "loss": null}
{"step": 5, "loss": "nan"}
{"step": 6, "loss": 1e999}
"""


def check_case_10(path: Path) -> None:
    metrics = read_rows(path)
    assert steps(metrics.rows) == [1, 2, 3, 4, 5, 6]
    assert (metrics.non_finite, metrics.first_bad_step) == (5, 2)
    assert metrics.rows[3]["loss"] is None
    assert math.isnan(metrics.rows[4]["loss"])
    assert metrics.rows[5]["loss"] == math.inf
    assert metrics.warnings == []


def test_case_10_non_finite_numbers_are_read_and_counted(tmp_path: Path) -> None:
    # five by value: NaN and Infinity of step 2 count as two, `null` is missing
    check_case_10(written(tmp_path, CASE_10))


def test_w5_nan_first_does_not_hide_what_follows(tmp_path: Path) -> None:
    rows = (
        b'{"event":"epoch","epoch":0,"metrics":{"loss":"NaN"}}\n'
        b'{"event":"epoch","epoch":1,"metrics":{"loss":0.5}}\n'
    )
    metrics = read_rows(written(tmp_path, rows))
    assert (metrics.non_finite, metrics.first_bad_step) == (1, 0)
    assert metrics.rows[1]["metrics"]["loss"] == 0.5


def test_numbers_and_texts_that_no_reader_could_hold_are_made_such_that_one_can(
    tmp_path: Path,
) -> None:
    """What a strict parser refuses comes back as what floats and UTF-8 hold, not as what they do
    not."""
    digits = "1" + "0" * 400
    texts = r'"loss\ud800": ["\udc00", "\ud83d\ude00"]'
    row = f'{{"step": {digits}, "n": -{digits}, "long": 18446744073709551616, {texts}}}'
    text = row + "\n" + row.replace(digits, "1" + "0" * 5000) + "\n"
    metrics = read_rows(written(tmp_path, text.encode()))
    held = {
        "step": math.inf,
        "n": -math.inf,
        "long": 2.0**64,
        "loss\ufffd": ["\ufffd", "\U0001f600"],
    }
    assert metrics.rows == [held, held]
    assert metrics.warnings == []


def test_case_11_any_key_that_is_not_finite_counts(tmp_path: Path) -> None:
    rows = b"".join(
        b'{"step": %d, "loss": 1.81, "grad_norm": %s}\n' % (step, b"NaN" if step >= 20 else b"1.1")
        for step in range(60)
    )
    metrics = read_rows(written(tmp_path, rows))
    assert (metrics.non_finite, metrics.first_bad_step) == (40, 20)


PART_1, PART_2 = (
    b'{"step": 1, "loss": 2.0}\n{"step": 2, "lo',
    b'ss": 1.9}\n{"step": 3, "loss": 1.8}\n',
)


def check_growing(path: Path, part_1: bytes, part_2: bytes) -> None:
    path.write_bytes(part_1)
    tail = Tail(path)
    assert (steps(tail.poll()), tail.warnings) == ([1], [])
    assert tail.poll() == []
    with path.open("ab") as stream:
        stream.write(part_2)
    assert (steps(tail.poll()), tail.poll(), tail.warnings) == ([2, 3], [], [])


def test_case_12_a_line_still_being_written_waits(tmp_path: Path) -> None:
    check_growing(tmp_path / "metrics.jsonl", PART_1, PART_2)
    assert steps(read_rows(written(tmp_path, PART_1)).rows) == [1]
    assert read_rows(written(tmp_path, PART_1)).warnings == []


def test_case_12_a_complete_last_line_counts_at_the_end(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}')
    assert steps(read_rows(path).rows) == [1, 2]
    tail = Tail(path)
    assert [steps(tail.poll()), steps(tail.poll(final=True)), tail.poll(final=True)] == [
        [1],
        [2],
        [],
    ]


def test_case_12_cut_inside_a_character_does_not_raise(tmp_path: Path) -> None:
    path = written(tmp_path, '{"step": 1, "note": "é"}\n{"step": 2, "note": "é'.encode()[:-1])
    assert (steps(read_rows(path).rows), read_rows(path).warnings) == ([1], [])


def test_a_tail_of_a_file_that_grows_by_single_bytes(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + CASE_10
    path, rows = written(tmp_path, b""), []
    tail = Tail(path)
    for byte in data:
        with path.open("ab") as stream:
            stream.write(bytes([byte]))
        rows += tail.poll()
    assert (steps(rows), tail.warnings) == ([1, 2, 3, 4, 5, 6], [])


def test_a_tail_of_a_replaced_file_starts_again_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"step": 1}\n{"step": 2}\n')
    tail = Tail(path)
    assert steps(tail.poll()) == [1, 2]
    other = tmp_path / "other"
    other.write_bytes(b'{"step": 7}\n{"step": 8}\n{"step": 9}\n')
    other.replace(path)
    assert steps(tail.poll()) == [7, 8, 9]
    assert len(tail.warnings) == 1
    assert "replaced" in tail.warnings[0]


GLUED = b"""{"step": 1, "loss": 2.0}
{"step": 2, "lo{"step": 3, "loss": 1.8}
{"step": 4, "loss": 1.7}{"step": 5, "loss": 1.6}
{"step": 6, "loss": 1.5}
"""


def check_case_13(path: Path) -> None:
    metrics = read_rows(path)
    assert steps(metrics.rows) == [1, 3, 4, 5, 6]
    assert len(metrics.warnings) == 1
    assert "line 2" in metrics.warnings[0]


def test_case_13_a_torn_line_hides_nothing_else(tmp_path: Path) -> None:
    check_case_13(written(tmp_path, GLUED))


def test_case_13_an_inner_object_of_a_torn_row_is_no_row(tmp_path: Path) -> None:
    torn = b'{"event":"epoch","epoch":3,"metrics":{"loss":2.0},"learn'
    whole = b'{"event":"epoch","epoch":4,"metrics":{"loss":1.0}}\n'
    metrics = read_rows(written(tmp_path, torn + whole))
    assert [row.get("epoch") for row in metrics.rows] == [4]


@pytest.mark.parametrize(
    "rubbish", [b"{" * 50_000, b"[" * 50_000, b'{"a":' * 20_000, b"\0\0\0", b"5", b"[1]", b'"x"']
)
def test_rubbish_in_the_middle_costs_one_warning_at_most(tmp_path: Path, rubbish: bytes) -> None:
    metrics = read_rows(written(tmp_path, b'{"step": 1}\n' + rubbish + b'\n{"step": 2}\n'))
    assert steps(metrics.rows) == [1, 2]
    assert len(metrics.warnings) <= 1


BOTH = '{"step": 1, "loss": 2.0, "note": "naïve – x"}\n{"step": 2, "loss": 1.9}\n'
ENCODINGS = {
    "bom": (b"\xef\xbb\xbf" + BOTH.encode(), 0),
    "crlf": (BOTH.replace("\n", "\r\n").encode(), 0),
    "utf16": (BOTH.encode("utf-16"), 0),
    "latin1": (BOTH.replace("–", "-").encode("latin-1"), 1),
    "line_sep": (
        '{"step": 1, "note": "a\u2028b\x85"}\n{"step": 2, "note": "c\x0cd"}\n'.encode(),
        0,
    ),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_case_19_encodings(tmp_path: Path, name: str) -> None:
    data, warnings = ENCODINGS[name]
    metrics = read_rows(written(tmp_path, data))
    assert (steps(metrics.rows), len(metrics.warnings)) == ([1, 2], warnings)


def test_case_19_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    path = written(tmp_path, ENCODINGS["bom"][0])
    code = (
        "import pathlib; from harness.artifacts.metrics_file import rows_in; "
        f"print(ascii([*rows_in(pathlib.Path({str(path)!r}))]))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "na\\xefve \\u2013 x" in done.stdout, done.stderr


RESUMED = [(step, 2 - step / 100) for step in range(30)] + [
    (step, 1.9 - step / 100) for step in range(20, 35)
]


def as_lines(rows: list[dict]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_case_20_later_rows_win_after_a_resume(tmp_path: Path) -> None:
    metrics = read_rows(
        written(tmp_path, as_lines([{"step": step, "loss": loss} for step, loss in RESUMED]))
    )
    assert steps(metrics.effective) == list(range(35))
    assert metrics.effective[25]["loss"] == pytest.approx(1.65)
    assert metrics.notes == ["resumed at 20"]
    assert len(metrics.rows) == 45


def test_case_20_rows_that_a_resume_did_not_reach_again_are_gone() -> None:
    rows = [{"step": step, "loss": 1.0} for step in range(10)] + [{"step": 5, "loss": 2.0}]
    assert steps(effective(rows)) == [0, 1, 2, 3, 4, 5]


def test_case_20_train_and_eval_of_one_step_are_merged() -> None:
    rows = [
        {"step": 100, "loss": 1.5},
        {"step": 100, "eval_loss": 1.7},
        {"step": 200, "loss": 1.4},
    ]
    assert effective(rows) == [
        {"step": 100, "loss": 1.5, "eval_loss": 1.7},
        {"step": 200, "loss": 1.4},
    ]
    late = [
        {"step": 1, "loss": 1.0, "time": 1},
        {"step": 2, "loss": 2.0, "time": 2},
        {"step": 1, "eval": 3.0, "time": 3},
    ]
    assert effective(late)[1]["loss"] == 2.0


def test_case_20_streams_with_their_own_counters_do_not_erase_each_other() -> None:
    rows = [
        {"step": 8073, "inference/latency": 1.2},
        {"step": 0, "loss": 2.0},
        {"step": 1, "loss": 1.9},
    ]
    assert effective(rows) == rows
    again = [*rows, {"step": 0, "loss": 3.0}]
    assert effective(again) == [rows[0], {"step": 0, "loss": 3.0}]


def test_two_calls_for_one_epoch_are_merged() -> None:
    rows = [
        {"event": "epoch", "epoch": 1, "metrics": {"loss": 1.0}, "learning_rate": 0.1},
        {"event": "epoch", "epoch": 1, "metrics": {"val_loss": 2.0}, "learning_rate": None},
    ]
    assert effective(rows) == [
        {
            "event": "epoch",
            "epoch": 1,
            "metrics": {"loss": 1.0, "val_loss": 2.0},
            "learning_rate": 0.1,
        }
    ]
    assert rows[0]["metrics"] == {"loss": 1.0}


def test_an_attempt_row_drops_what_followed_in_every_stream() -> None:
    def epoch(number: int, **metrics: float) -> dict:
        return {"event": "epoch", "epoch": number, "metrics": metrics}

    rows = [{"event": "start"}, *(epoch(n, **{"a/x": 1.0, "y": 1.0}) for n in range(4))]
    rows += [{"event": "attempt", "resumed_at": 2}, epoch(2, y=5.0), {"event": "end"}]
    kept = effective(rows)
    assert [row["event"] for row in kept] == ["start", "epoch", "epoch", "attempt", "epoch", "end"]
    assert kept[4]["metrics"] == {"y": 5.0}


def test_a_resume_after_the_last_step_drops_nothing_of_it() -> None:
    """A trainer that was killed behind its last checkpoint has only its summary left to log."""
    done = {"event": "epoch", "epoch": 14, "metrics": {"loss": 0.5}, "learning_rate": 0.1}
    summary = {"event": "epoch", "epoch": 14, "metrics": {"summary/seconds": 1.0}}
    rows = [{"event": "start"}, done, {"event": "attempt", "resumed_at": 15}, summary]
    assert effective(rows)[1]["metrics"] == {"loss": 0.5, "summary/seconds": 1.0}


def test_rows_of_any_length_are_gone_through_with_a_window() -> None:
    """Three resumes, a late value, two streams: as a reader would have it that holds all rows."""
    rows = []
    for first, last in ((0, 3000), (2000, 2500), (2400, 4000), (100, 5000)):
        rows.append({"event": "attempt", "resumed_at": first})
        rows += [{"step": n, "loss": float(first), "eval/loss": 1.0} for n in range(first, last)]
        rows.append({"step": last - 20, "late": 2.0})
    held = [row for row in effective(rows) if "step" in row]
    assert steps(held) == list(range(5000))
    assert {row["loss"] for row in held[:100]} == {0.0}
    assert {row["loss"] for row in held[100:]} == {100.0}
    assert [row["step"] for row in held if "late" in row] == [4980]


def test_values_that_a_resume_replaced_do_not_count_as_bad() -> None:
    rows = [
        {"step": 1, "loss": 1.0},
        {"step": 2, "loss": math.nan},
        {"step": 1, "loss": 1.0},
        {"step": 2, "loss": 0.5},
    ]
    assert bad_values(effective(rows)) == (0, None)
    assert bad_values(rows) == (1, 2)


def test_case_50_rows_count_only_for_the_run_that_holds_the_token() -> None:
    token = hashlib.sha256(b"t").hexdigest()
    start = {"event": "start", "run": "exp-0001/run-01", "token": "t"}
    epoch = {"event": "epoch", "run": "exp-0001/run-01", "epoch": 0, "metrics": {}}
    other = {"event": "epoch", "run": "exp-0001/run-02", "epoch": 0, "metrics": {}}
    yesterday = {**start, "token": "stale"}

    def kept(*rows: dict) -> list[dict]:
        return [*belonging(rows, run="exp-0001/run-01", token_sha256=token)]

    assert kept(start, other, epoch) == [start, epoch]
    assert kept(yesterday, epoch) == []
    assert kept({"step": 1, "loss": 0.0}, epoch) == []
    assert kept({**start, "token": None}, epoch) == []


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    metrics = read_rows(tmp_path / "none.jsonl")
    assert (metrics.present, metrics.rows) == (False, [])
    assert read_rows(written(tmp_path, b"")).present


def test_the_reported_inputs_of_cases_10_to_20(tmp_path: Path) -> None:
    check_case_10(INPUTS / "case-10" / "metrics.jsonl")
    assert read_rows(INPUTS / "case-11" / "metrics.jsonl").first_bad_step == 20
    assert read_rows(INPUTS / "case-11" / "all_zero.jsonl").first_bad_step == 0
    growing = INPUTS / "case-12"
    check_growing(
        tmp_path / "grow.jsonl",
        (growing / "growing_part1.jsonl").read_bytes(),
        (growing / "growing_part2.txt").read_bytes(),
    )
    assert steps(read_rows(growing / "complete_without_newline.jsonl").rows) == [1, 2]
    assert steps(read_rows(growing / "cut_inside_utf8.jsonl").rows) == [1]
    check_case_13(INPUTS / "case-13" / "glued.jsonl")
    for name, (_, warnings) in ENCODINGS.items():
        metrics = read_rows(INPUTS / "case-19" / f"{name}.jsonl")
        assert (len(metrics.rows), len(metrics.warnings)) == (2, warnings), name
    resumed = read_rows(INPUTS / "case-20" / "resumed.jsonl")
    assert (steps(resumed.effective), resumed.notes) == (list(range(35)), ["resumed at 20"])
    both = read_rows(INPUTS / "case-20" / "train_and_eval_same_step.jsonl")
    assert (len(both.effective), both.effective[0]["eval_loss"]) == (2, 1.7)
    assert len(read_rows(INPUTS / "case-20" / "per_stream_steps.jsonl").effective) == 3


def test_rows_of_two_forms_live_in_one_log(tmp_path: Path) -> None:
    """An epoch's row has other keys than the steps' and a step of its own; one step is logged
    twice."""
    every_50 = [
        {"step": step, "loss": 7.0 - step / 1000, "lr": step / 1e7} for step in range(50, 2050, 50)
    ]
    epochs = [
        {"epoch": epoch, "step": 1000 * epoch - 3, "train_loss": 4.0, "val_chrf": 57.4}
        for epoch in (1, 2)
    ]
    rows = [*every_50[:19], epochs[0], *every_50[19:39], epochs[1], every_50[38], every_50[39]]
    metrics = read_rows(
        written(tmp_path, b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    )
    assert (metrics.warnings, metrics.notes, metrics.non_finite, len(metrics.rows)) == (
        [],
        [],
        0,
        43,
    )
    assert len(metrics.effective) == 42
    assert [row for row in metrics.effective if "epoch" in row] == epochs


def test_a_line_of_any_length_takes_no_memory_and_its_neighbours_are_read(tmp_path: Path) -> None:
    long = b'{"step": 2, "note": "' + b"x" * (20 << 20)
    path = written(tmp_path, b'{"step": 1, "loss": 2.0}\n' + long)
    tail = Tail(path)
    assert steps(tail.poll()) == [1]
    with path.open("ab") as stream:
        stream.write(b'", "loss": 9.0}\n{"step": 3, "loss": 1.0}\n{"step": 4')
    assert steps(tail.poll(final=True)) == [3]
    assert tail.warnings == ["metrics.jsonl line 2 is longer than 8 MiB; it was left out"]
