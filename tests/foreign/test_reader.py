"""Logs of other programs, read as they grow: each row once, whatever the format and the damage.

`case_NN` in a name is the number of a reported case; its file is tests/artifacts/inputs/case-NN.
"""

import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.detectors.watch import RunWatch
from harness.errors import NotFoundError
from harness.foreign import formats
from harness.foreign.formats import LogForm, find_logs
from harness.foreign.log_rows import Row, make_row
from harness.foreign.parser import LineParser
from harness.foreign.reader import LogReader, read_whole
from tests.metrics_rows import bad_values, effective

CASES = Path(__file__).parents[1] / "artifacts" / "inputs"
SHARED = Path(__file__).parents[3] / "shared" / "cases"
EVENTS = Path(__file__).parent / "inputs" / "events.out.tfevents.1.example.1.0"
"""Written by torch.utils.tensorboard: 20 steps of two scalars (one NaN, one as a tensor), a
histogram and a text."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    return read_whole(path)[1]


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def values(rows: list[dict[str, Any]], key: str) -> list[Any]:
    return [row["metrics"][key] for row in rows if key in row.get("metrics", {})]


def steps(rows: list[dict[str, Any]]) -> list[Any]:
    return [row.get("step", row.get("epoch")) for row in rows if row.get("metrics")]


def real(name: str) -> Path:
    path = SHARED / "metrics" / name
    if not path.is_file():
        pytest.skip("the real logs are not here")
    return path


LIGHTNING = "epoch,step,train_loss_step,val_loss\r\n0,49,0.5,\r\n0,62,,0.4\r\n1,99,nan,\r\n"
YOLO = (
    "                  epoch,         train/box_loss,   metrics/mAP50(B)\n   1,   1.2,   0.3\n   2,"
    "  1.1,  0.35\n"
)
TSV = (
    'commit\tval_bpb\tstatus\ttext\nbase\t0.99\tkeep\tsaid "hi\nabc\t\tcrash\tcode\nx ='
    " 1\ny\nb2\t0.98\tkeep\tok\n"
)
STATE = {
    "max_steps": 20,
    "log_history": [
        {"loss": 2.0, "grad_norm": 1.0, "learning_rate": 1e-3, "epoch": 0.5, "step": 5},
        {"eval_loss": float("nan"), "epoch": 0.5, "step": 5},
        {"train_runtime": 3.0, "train_loss": 1.0, "step": 20},
    ],
}


def test_lightning_csv_keeps_missing_apart_from_nan(tmp_path: Path) -> None:
    reader, rows = read_whole(written(tmp_path, "metrics.csv", LIGHTNING))
    assert (reader.format, reader.is_ledger) == ("CSV", False)
    assert [(row["epoch"], row["step"]) for row in rows] == [(0, 49), (0, 62), (1, 99)]
    first, last = values(rows, "train_loss_step")
    assert first == 0.5
    assert math.isnan(last)
    assert values(rows, "val_loss") == [0.4]


def test_yolo_csv_with_padded_names(tmp_path: Path) -> None:
    rows = rows_of(written(tmp_path, "results.csv", YOLO))
    assert [row["epoch"] for row in rows] == [1, 2]
    assert values(rows, "metrics/mAP50(B)") == [0.3, 0.35]


def test_a_ragged_ledger_loses_only_what_is_ragged(tmp_path: Path) -> None:
    reader, rows = read_whole(written(tmp_path, "results.tsv", TSV))
    assert reader.is_ledger
    assert values(rows, "val_bpb") == [0.99, 0.98]
    assert reader.notes() == [
        "line 4 has 1 of 4 cells; such lines are left out",
        "2 lines have fewer cells than the header",
        "1 experiment crashed: the numbers beside that word are left out",
    ]


def test_trainer_state_is_read_when_it_is_whole(tmp_path: Path) -> None:
    text = json.dumps(STATE)
    path = written(tmp_path, "trainer_state.json", text[:70])
    reader = LogReader(path)
    assert reader.read_more() == []
    path.write_text(text)
    start, train, late, summary = reader.read_more()
    assert start["total_steps"] == 20
    assert (train["step"], train["learning_rate"], train["metrics"]) == (
        5,
        1e-3,
        {"loss": 2.0, "grad_norm": 1.0},
    )
    assert math.isnan(late["metrics"]["eval_loss"])
    assert summary["event"] == "summary"


LARGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        (
            "log.jsonl",
            f'{{"step": 1, "n": {LARGE}}}\n{{"step": {LARGE}, "n": -{LARGE}}}\n',
            [math.inf, -math.inf],
        ),
        (
            "trainer_state.json",
            f'{{"log_history": [{{"step": 1, "n": {LARGE}}}, {{"step": {LARGE}, "n": 2}}]}}',
            [math.inf, 2],
        ),
        (
            "train.log",
            f"step 1 | n: 3\nstep {LARGE}/{LARGE} | n: 4\nepoch {LARGE} | n: 5\n",
            [3, 4, 5],
        ),
        ("log.csv", f"step,n\n1,3\n{LARGE},4\n2,{'9' * 39}\n", [3, 4, 1e39]),
    ],
)
def test_integers_that_no_float_holds_are_read_and_watched(
    tmp_path: Path, name: str, text: str, kept: list[float]
) -> None:
    rows = rows_of(written(tmp_path, name, text))
    assert values(rows, "n") == kept
    watch = RunWatch()
    for row in rows:
        watch.feed(row)
    assert all(abs(row["step"]) < 2**63 for row in rows if "step" in row)


def test_a_comma_is_a_decimal_point_where_semicolons_part_cells_and_else_groups_thousands(
    tmp_path: Path,
) -> None:
    table = "step;acc;loss;n\n1;0,93;1,5e-3;1.234.567\n2;0.94;,5;1,234,567\n"
    rows = rows_of(written(tmp_path, "log.csv", table))
    assert values(rows, "acc") == [0.93, 0.94]
    assert values(rows, "loss") == [1.5e-3, 0.5]
    bare = rows_of(written(tmp_path, "bare.csv", "0;0,93\n1;0,94\n"))
    assert values(bare, "column 2") == [0.93, 0.94]
    quoted = rows_of(
        written(tmp_path, "quoted.csv", 'step,acc,n\n1,"0,93","12,345"\n2,"0,94","12,346.5"\n')
    )
    assert (values(quoted, "acc"), values(quoted, "n")) == ([], [12345, 12346.5])
    printed = rows_of(
        written(
            tmp_path, "run.log", "step 1,200/5,000 | acc: 0,93 | loss: 1,234.5, n: 3, m: 10,93\n"
        )
    )
    assert printed[0]["total_steps"] == 5000
    assert (printed[1]["step"], printed[1]["metrics"]) == (1200, {"loss": 1234.5, "n": 3})


def test_event_files_of_tensorboard() -> None:
    reader, rows = read_whole(EVENTS)
    assert reader.format == "TensorBoard events"
    assert steps(rows) == list(range(20))
    losses = values(rows, "train/loss")
    assert losses[1] == 1.0
    assert [index for index, value in enumerate(losses) if math.isnan(value)] == [15]
    assert values(rows, "val/acc")[10] == 0.5
    assert rows[0]["t"] == pytest.approx(1795854709, abs=1e6)


def test_a_damaged_event_file_says_so(tmp_path: Path) -> None:
    data = bytearray(EVENTS.read_bytes())
    data[len(data) // 2] ^= 0xFF
    reader, rows = read_whole(written(tmp_path, EVENTS.name, bytes(data)))
    assert 0 < len(rows) <= 20
    assert any("damaged" in note for note in reader.notes())


def test_steps_joined_by_carriage_returns_come_while_the_line_grows(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "run.log",
        "loading\nstep 00000 (0.0%) | loss: 3.5 | dt: 50ms | tok/sec: 1,032  \rstep 00001",
    )
    reader = LogReader(path)
    (first,) = reader.read_more()
    assert (first["step"], first["metrics"]) == (0, {"loss": 3.5, "dt_ms": 50, "tok/sec": 1032})
    with path.open("a") as stream:
        stream.write(" | loss: nan\r\n---\nval_bpb: 1.06\n")
    second, summary = reader.read_more()
    assert math.isnan(second["metrics"]["loss"])
    assert (summary["event"], summary["metrics"]) == ("summary", {"val_bpb": 1.06})


@pytest.mark.parametrize(
    ("line", "step", "epoch", "metrics"),
    [
        (" 45%|####   | 45/100 [00:12<00:10, 4.3it/s, loss=0.5]", 45, None, {"loss": 0.5}),
        (
            "{'loss': 0.5, 'grad': '1.2', 'learning_rate': 1e-05, 'epoch': 0.1}",
            None,
            0.1,
            {"loss": 0.5, "grad": 1.2},
        ),
        (
            "Epoch [3/10], Step [20/600], Loss: 0.25, Acc: 91.5%",
            20,
            3,
            {"Loss": 0.25, "Acc": 91.5},
        ),
        ("2026-01-02 10:11:12 INFO epoch=4 loss=1e-3", None, 4, {"loss": 1e-3}),
    ],
)
def test_forms_that_programs_print(
    tmp_path: Path, line: str, step: Any, epoch: Any, metrics: dict[str, float]
) -> None:
    *total, row = rows_of(written(tmp_path, "train.log", f"starting up\n{line}\n"))
    assert [item["event"] for item in total] == (["total"] if "/" in line else [])
    assert (row.get("step"), row.get("epoch"), row["metrics"]) == (step, epoch, metrics)


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize(
    "name", ["a.jsonl", "metrics.csv", "x.log", EVENTS.name, "utf16.log", "bare16.jsonl"]
)
def test_a_file_that_grows_by_a_few_bytes_gives_what_the_whole_one_gives(
    tmp_path: Path, name: str, size: int
) -> None:
    lines = "".join(f'{{"step": {i}, "loss": {2 - i / 100}}}\n' for i in range(12))
    contents = {
        "a.jsonl": b"\xef\xbb\xbf" + lines.encode() + b"\0\0\0",
        "metrics.csv": LIGHTNING.encode(),
        "x.log": b"hello world\nstep 1 | loss: 2.0\rstep 2 | loss: 1.5\r\n---\nscore: 7\n",
        EVENTS.name: EVENTS.read_bytes()[:2500],
        "utf16.log": "start\r\nstep 1 | loss: 2.0\r\nstep 2 | loss: 1.5\r\n".encode("utf-16"),
        "bare16.jsonl": lines.encode("utf-16-le"),
    }
    whole = rows_of(written(tmp_path, f"whole-{name}", contents[name]))
    path = tmp_path / name
    reader, found = LogReader(path), []
    assert (reader.read_more(), reader.present) == ([], False)
    with path.open("wb", buffering=0) as stream:
        for at in range(0, len(contents[name]), size):
            stream.write(contents[name][at : at + size])
            found += reader.read_more()
    found += reader.finish()
    assert len(whole) >= 2
    assert repr(found) == repr(whole)


def test_what_one_look_reads_is_bounded(tmp_path: Path) -> None:
    path = written(
        tmp_path, "m.jsonl", "".join(f'{{"step": {i}, "loss": 1.5}}\n' for i in range(1000))
    )
    reader = LogReader(path)
    first = reader.read_more(2048)
    assert 0 < len(first) < 100
    assert reader.behind == path.stat().st_size - 2048


def test_case_12_a_line_still_being_written_waits(tmp_path: Path) -> None:
    path = written(tmp_path, "m.jsonl", b'{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    reader = LogReader(path)
    assert steps(reader.read_more()) == [1]
    assert reader.notes() == []
    with path.open("a") as stream:
        stream.write('ss": 1.9}\n{"step": 3, "loss": 1.8}')
    assert steps(reader.read_more()) == [2]
    assert steps(reader.finish()) == [3]
    assert reader.finish() == []


def test_a_file_that_is_replaced_starts_again(tmp_path: Path) -> None:
    path = written(tmp_path, "m.csv", "epoch,a\n0,1.0\n1,2.0\n")
    reader = LogReader(path)
    assert len(reader.read_more()) == 2
    path.write_text(
        "epoch,a,b\n0,1.0,5\n1,2.0,6\n2,3.0,7\n"
    )  # as Lightning does when a column is added
    assert values(reader.read_more(), "b") == [5, 6, 7]
    assert reader.restarts == 1


def test_rows_that_are_there_twice_count_once(tmp_path: Path) -> None:
    rows = "".join(
        f'{{"step": {i}, "loss": {2 - i / 100}, "grad_norm": NaN}}\n' for i in range(30)
    )
    reader, found = read_whole(written(tmp_path, "copied.jsonl", rows + rows))
    assert (steps(found), reader.runs) == (list(range(30)), 1)
    twice = "".join(line + "\n" + line + "\n" for line in rows.splitlines())
    assert steps(rows_of(written(tmp_path, "handlers.jsonl", twice))) == list(range(30))
    assert "30 rows repeated an earlier row exactly and counted once" in reader.notes()


def test_several_runs_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    text = "".join(
        f'{{"step": {i * 10}, "loss": {run + 2 - i / 100}}}\n'
        for run in range(3)
        for i in range(5)
    )
    reader, found = read_whole(written(tmp_path, "m.jsonl", text))
    assert reader.runs == 3
    assert [(row["run"], row.get("event")) for row in found if row.get("event")] == [
        ("run 2", "start"),
        ("run 3", "start"),
    ]
    assert [row["run"] for row in found if "metrics" in row] == [
        f"run {n}" for n in (1, 2, 3) for _ in range(5)
    ]
    again = read_whole(written(tmp_path, "m.csv", "epoch,loss\n0,2\n1,1\nepoch,loss\n0,3\n"))
    assert again[0].runs == 2


def test_case_20_a_resume_is_said_and_is_no_spike(tmp_path: Path) -> None:
    path = CASES / "case-20" / "resumed.jsonl"
    reader, found = read_whole(path)
    assert [row["resumed_at"] for row in found if row.get("event") == "attempt"] == [20]
    assert len([row for row in effective(found) if row.get("metrics")]) == 35
    assert reader.runs == 1
    watch = RunWatch()
    assert [alarm.code for row in found for alarm in watch.feed(row)] == []
    assert len(rows_of(CASES / "case-20" / "per_stream_steps.jsonl")) == 3
    assert len(rows_of(CASES / "case-20" / "train_and_eval_same_step.jsonl")) == 3


@pytest.mark.parametrize(
    ("case", "name", "found"),
    [
        ("10", "metrics.jsonl", [1, 2, 3, 5, 6]),
        ("12", "complete_without_newline.jsonl", [1, 2]),
        ("13", "glued.jsonl", [1, 3, 4, 5, 6]),
        ("19", "bom.jsonl", [1, 2]),
        ("19", "utf16.jsonl", [1, 2]),
        ("19", "crlf.jsonl", [1, 2]),
        ("19", "latin1.jsonl", [1, 2]),
    ],
)
def test_cases_10_12_13_19(case: str, name: str, found: list[int]) -> None:
    reader, rows = read_whole(CASES / f"case-{case}" / name)
    assert steps(rows) == found
    assert len(reader.notes()) == (name in ("glued.jsonl", "latin1.jsonl"))
    if case == "10":
        assert bad_values(rows) == (5, 2)


@pytest.mark.parametrize(("name", "bad"), [("metrics.jsonl", 20), ("all_zero.jsonl", 0)])
def test_case_11_a_key_that_is_not_finite_is_an_alarm(name: str, bad: int) -> None:
    watch = RunWatch()
    alarms = [alarm for row in rows_of(CASES / "case-11" / name) for alarm in watch.feed(row)]
    first = next(alarm for alarm in alarms if alarm.code == "non_finite")
    assert first.evidence[0].place == bad


def test_case_29_the_whole_log_stands_in_one_line() -> None:
    path = SHARED / "inputs" / "29" / "run.log"
    if not path.is_file():
        pytest.skip("the reported inputs are not here")
    rows = rows_of(path)
    assert steps([row for row in rows if "step" in row]) == list(range(600))
    assert rows[-1]["metrics"] == {"val_score": 1.065}


@pytest.mark.parametrize(
    ("name", "form", "count"),
    [
        ("m12_pendulum_spike_recover.csv", "CSV", 2260),
        ("m15_netra_train_log.jsonl", "JSON lines", 1992),
        ("m30_autoresearch_results.tsv", "TSV", 125),
        ("m31_autoresearch_results_ragged.tsv", "TSV", 431),
        ("m33_autoresearch_run_utf16.log", "step log", 376),
        ("m36_autoresearch_run_ddp.log", "step log", 608),
    ],
)
def test_real_logs(name: str, form: str, count: int) -> None:
    reader, rows = read_whole(real(name))
    assert (reader.format, reader.runs) == (form, 1)
    assert len([row for row in rows if row.get("event") != "summary"]) == count
    assert reader.is_ledger == ("results" in name)


def test_status_files_say_what_is_not_to_be_believed() -> None:
    stale = read_whole(real("m38_status_stale_running.json"))
    assert (stale[1][0]["status"], stale[1][0]["step"], stale[1][0]["total_steps"]) == (
        "running",
        2000,
        50000,
    )
    assert "nothing shows that it still runs" in stale[0].notes()[0]
    assert len(read_whole(real("m39_status_phantom_success.json"))[0].notes()) == 3


def test_a_folder_gives_its_logs_one_a_run(tmp_path: Path) -> None:
    for run in ("version_0", "version_1"):
        (tmp_path / run).mkdir()
        written(tmp_path / run, "metrics.csv", LIGHTNING)
        written(tmp_path / run, "other.log", "text")
    for step in (10, 20):
        (tmp_path / "hf" / f"checkpoint-{step}").mkdir(parents=True)
        written(tmp_path / "hf" / f"checkpoint-{step}", "trainer_state.json", json.dumps(STATE))
    (tmp_path / "tb").mkdir()
    shutil.copy(EVENTS, tmp_path / "tb")
    found = [path.relative_to(tmp_path).as_posix() for path in find_logs(tmp_path, most=8)]
    assert found == [
        "hf/checkpoint-20/trainer_state.json",
        f"tb/{EVENTS.name}",
        "version_0/metrics.csv",
        "version_1/metrics.csv",
    ]
    assert len(find_logs(tmp_path, most=2)) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match=r"metrics\.jsonl"):
        find_logs(tmp_path / "empty", most=8)


def test_a_new_form_is_one_file_and_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Pairs(LineParser):
        name = "pairs"

        def line(self, raw: bytes) -> Iterable[Row]:
            row = make_row(pair.split("=") for pair in self.text(raw).split())  # type: ignore[misc]
            return [] if row is None else [row]

    form = LogForm(("*.pairs",), lambda head: Pairs() if b"=" in head.first else None)
    monkeypatch.setattr(formats, "FORMS", (form, *formats.FORMS))
    log = tmp_path / "run" / "a.pairs"
    log.parent.mkdir()
    log.write_text("step=1 loss=0.5\nstep=2 loss=0.25\n", "utf-8")
    assert find_logs(tmp_path, most=1) == [log]
    reader, rows = read_whole(log)
    assert reader.format == "pairs"
    assert [(row["step"], row["metrics"]) for row in rows] == [
        (1, {"loss": 0.5}),
        (2, {"loss": 0.25}),
    ]
