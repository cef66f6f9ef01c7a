"""What holds for every foreign log: names, units, positions, headers, damage, rotation, ends."""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.foreign.formats import find_logs
from harness.foreign.names import Kind, meaning
from harness.foreign.printed_lines import cleaned
from harness.foreign.printed_values import values
from harness.foreign.reader import LogReader, read_whole
from harness.views.dashboard import draw
from harness.views.follow_logs import LogFollower
from harness.views.watching import read_all


def rows_of(folder: Path, name: str, text: str | bytes) -> list[dict[str, Any]]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [row for row in read_whole(path)[1] if row.get("metrics")]


def watched(path: Path) -> list[dict[str, Any]]:
    os.utime(path, (1_700_000_000, 1_700_000_000))
    follower = LogFollower(find_logs(path, most=8), SystemClock())
    read_all(follower)
    return follower.document()["runs"]  # type: ignore[no-any-return]


def run_of(folder: Path, name: str, text: str) -> dict[str, Any]:
    path = folder / name
    path.write_text(text, "utf-8")
    (run,) = watched(path)
    return run


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("step 1 Loss: 2.3316: done", {"Loss": 2.3316}),
        ("step 1 loss=2.3316; next", {"loss": 2.3316}),
        ("step 1 train loss: 2.5 val loss: 3.5", {"train loss": 2.5, "val loss": 3.5}),
        ("Epoch 1/3, Train Loss: 2.5, Val Acc: 40.5%", {"Train Loss": 2.5, "Val Acc": 40.5}),
        ("train loss 2.5 | validation loss 3.5", {"train loss": 2.5, "validation loss": 3.5}),
        (
            "Test set: Average loss: 0.5, Accuracy: 95/100 (95%)",
            {
                "Test Average loss": 0.5,
                "Test Accuracy": 0.95,
            },
        ),
        ("[val] loss 2.5, acc 0.5", {"val loss": 2.5, "val acc": 0.5}),
        ("Train: loss 2.5 | Val: loss 3.5", {"loss": 2.5, "Val loss": 3.5}),
        ("loss: 2.33x lr: 3e-4", {"lr": 3e-4}),
        ("tokens: 12.5k mem: 3.1GB used: 40%", {"tokens": 12500.0, "mem_GB": 3.1, "used": 40}),
        ("Peak mem 5.5 GB, dt: 50.5 ms", {"Peak mem_GB": 5.5, "dt_ms": 50.5}),
        ("lr: 0,93 at 10:15:30 on 2025-01-02 v1.2.3", {}),
        ("loss: tensor(2.5, grad_fn=<NllLossBackward0>)", {"loss": 2.5}),
        ("loss is 2.5", {"loss": 2.5}),
        ("Total rewards in is 2.5 total number of steps are 3626", {"Total rewards": 2.5}),
        ("Validation loss at : 2.5", {"Validation loss": 2.5}),
        ("val Loss: 2.5 Acc: 0.5", {"val Loss": 2.5, "val Acc": 0.5}),
        ("Game number: 5100  Frame number: 198  Average reward: 2.5", {"Average reward": 2.5}),
        ("损失: 2.5 精度 0.5", {"损失": 2.5, "精度": 0.5}),
        ("train.py:123 node-7:8080 localhost:29500 loss=2.5", {"loss": 2.5}),
        ("eta: 0:01:00 v_num=7, percentage: 4.5, loss=2.5", {"loss": 2.5}),
        ("loss: 1\ufffd5.25", {}),
        ("loss: nan, grad_norm: inf", {"loss": math.nan, "grad_norm": math.inf}),
        ("use_amp: True, loss: 2.5", {"loss": 2.5}),
        ("saved 3 checkpoints in 12.5 seconds", {}),
        ("Training:  45%|████      | 45/100", {}),
    ],
)
def test_values_of_a_line(line: str, found: dict[str, float]) -> None:
    assert repr(dict(values(line))) == repr(found)


@pytest.mark.parametrize(
    "before",
    [
        "2025-01-01 10:00:00,123 - root - INFO - ",
        "2025-01-01 10:00:00 INFO train.py:123 ",
        "2025-01-01 10:00:00.123 | INFO     | pkg.train:run:12 - ",
        "[2025-01-01 10:00:00,123][trainer][INFO] - ",
        "[01/31 10:00:00 d2.utils.events]: ",
        "I0101 10:00:00.123456 1234 solver.cpp:228] ",
        "INFO:root:",
        "[10:00:00] ",
        "2025-01-01T10:00:00Z ",
        "01/31/2025 10:00:00 - INFO - __main__ - ",
        "\x1b[32m2025-01-01 10:00:00\x1b[0m \x1b[1mINFO\x1b[0m ",
        "node-fin-03:0 pkg.train:979 INFO ",
        "",
    ],
)
@pytest.mark.parametrize(
    "line", ["step 10 loss=2.5", "[10] train-auc:0.5", "{'loss': 2.5, 'epoch': 1}"]
)
def test_what_a_logger_writes_before_a_line_is_no_part_of_it(before: str, line: str) -> None:
    assert cleaned(before + line).strip() == line


SOURCE = """import torch
from model import Net, loss_at
# step 100 has loss: 0.5
def train(step=10, loss=0.5):
    for step in range(1000):
        if step == 10: loss = 0.5
        print(f"step {step} loss: {loss:.4f}")
        train_step(step=5, loss=3)
Namespace(epoch=10, lr=0.1, loss='mse')
python train.py --epoch 10 --lr 0.1
steps: 1000
lr: 0.001
"""


def test_source_and_settings_are_no_values(tmp_path: Path) -> None:
    for end in ("", "=====\n", "----------------\nlr: 0.001\nbatch_size: 8\n----------------\n"):
        rows = rows_of(tmp_path, "a.log", SOURCE + end + "step 1 loss: 2.5\nstep 2 loss: 1.5\n")
        assert [(row["step"], row["metrics"]) for row in rows] == [
            (1, {"loss": 2.5}),
            (2, {"loss": 1.5}),
        ]


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("Global Step", Kind.POSITION, "step"),
        ("trainer/global_step", Kind.POSITION, "step"),
        ("time/total_timesteps", Kind.POSITION, "timestep"),
        ("TotalEnvInteracts", Kind.POSITION, "timestep"),
        ("Episode", Kind.POSITION, "episode"),
        ("num_updates", Kind.POSITION, "update"),
        ("tokens", Kind.AXIS, "tokens"),
        ("train/epoch", Kind.EPOCH, ""),
        ("val/step", Kind.METRIC, ""),
        ("step_time", Kind.METRIC, ""),
        ("max_steps", Kind.TOTAL, "step"),
        ("percentage", Kind.PROGRESS, ""),
    ],
)
def test_names(name: str, kind: Kind, unit: str) -> None:
    found = meaning(name)
    assert (found.kind, found.unit) == (kind, unit)


def test_a_program_that_prints_itself_is_read_from_its_first_rule_or_position_on(
    tmp_path: Path,
) -> None:
    source = "import os\nclass Net:\n    scale = 0.12\nlr_mul = 75.0\n"
    for begins in (f"{'=' * 60}\n", "", "loaded in 2.5 s\n"):
        rows = rows_of(tmp_path, "a.log", f"{source}{begins}step:1/9 val_loss:2.5\n")
        assert [row["metrics"] for row in rows] == [{"val_loss": 2.5}]


def test_lines_below_a_position_belong_to_its_phase(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        "a.log",
        "Epoch: [3][9/9] Loss 0.4 (0.5)\nPrec@1  91.5 (87.0)\n"
        "Test: [9/9] Loss 3.2 (3.8)\nPrec@1 001 95.8 (87.4)\n"
        "Epoch 3 - Average Loss: 0.5\nEvaluation Epoch 3 - Average Loss: 0.6\n",
    )
    found = {name: value for row in rows for name, value in row["metrics"].items()}
    assert (found["Prec@1"], found["Test Prec@1 001"]) == (91.5, 95.8)
    assert (found["Average Loss"], found["Eval Average Loss"]) == (0.5, 0.6)


@pytest.mark.parametrize(
    ("name", "text", "places", "metrics"),
    [
        ("val_loss.txt", "2.5e+00\n2.0e+00\n1.5e+00\n", [0, 1, 2], {"val_loss": 1.5}),
        ("a.log", "% mean accuracy (train)\t\n 43.5\t\n 78.2\t\n 81.4\t\n", [0, 1, 2], None),
        ("loss.log", "1.5 0\n0.5 100\n0.25 200\n", [0, 100, 200], {"loss": 0.25}),
        ("loss.log", "1.5 2.5\n1.5 2.5\n0.5 0.25\n", [0, 1, 2], {"loss 1": 0.5, "loss 2": 0.25}),
    ],
)
def test_columns_of_numbers(
    tmp_path: Path, name: str, text: str, places: list[int], metrics: dict[str, float] | None
) -> None:
    rows = rows_of(tmp_path, name, text)
    assert [row["step"] for row in rows] == places
    assert rows[-1]["metrics"] == (metrics or {"mean accuracy (train)": 81.4})


def test_what_stands_below_an_end_or_of_the_best_row_is_no_row(tmp_path: Path) -> None:
    text = "epoch 1 loss 0.5\nepoch 2 loss 0.4\n"
    assert len(rows_of(tmp_path, "a.log", f"{text}Best loss: 0.3 at epoch 1\n")) == 2
    assert len(rows_of(tmp_path, "b.log", f"{text}Saved best model at epoch 1, loss 0.3\n")) == 2
    done = "{'train_runtime': 9.5, 'epoch': 2}\n***** train metrics *****\n  epoch = 2\n"
    run = run_of(tmp_path, "c.log", f"{text}{done}  train_loss = 0.45\n")
    assert (run["status"], run["rows"]) == ("completed", 2)


def test_the_same_names_again_below_a_position_are_another_row(tmp_path: Path) -> None:
    text = "=== Epoch 1/3 ===\nloss is 0.5 and kl is 0.1\n[timing] 3s\nloss is 0.4 and kl is 0.2\n"
    rows = rows_of(tmp_path, "a.log", f"{text}args.loss = 1\n")
    assert [row["metrics"] for row in rows] == [{"loss": 0.5, "kl": 0.1}, {"loss": 0.4, "kl": 0.2}]


def test_without_a_counter_lines_count_that_recur_and_no_settings(tmp_path: Path) -> None:
    text = "label loss: 0.1\nTraining Loss: 0.5\nTraining Loss: 0.4\nTraining Loss: 0.3\n"
    rows = rows_of(tmp_path, "a.log", text)
    assert [row["metrics"] for row in rows] == [{"Training Loss": x} for x in (0.5, 0.4, 0.3)]
    printed = "".join(f"{name} :\t{size}\n" for name, size in zip("abcd", range(4), strict=True))
    assert rows_of(tmp_path, "b.log", printed * 2) == []
    below = rows_of(tmp_path, "c.log", f"step 1 loss 0.5\n{printed}step 2 loss 0.4\n")
    assert [row["metrics"] for row in below] == [{"loss": 0.5}, {"loss": 0.4}]


def test_experiments_of_one_size_are_a_ledger_and_a_wider_row_has_a_column_more(
    tmp_path: Path,
) -> None:
    text = "Date,Model,N Samples,R2\n2025-01-01,mlp,100,0.5\n2025-01-02,gmm,100,0.6\n"
    assert run_of(tmp_path, "a.csv", text)["status"] == "ledger"
    rows = rows_of(tmp_path, "b.csv", "epoch,loss\n0,2.5\n1,1.5,0.25\n")
    assert [row["metrics"] for row in rows] == [{"loss": 2.5}, {"loss": 1.5, "column 3": 0.25}]


def test_the_last_entry_of_a_trainers_history_says_where_it_ended(tmp_path: Path) -> None:
    history = [{"step": 500, "loss": 2.5}, {"step": 688, "train_loss": 2.7, "train_runtime": 9.5}]
    run = run_of(tmp_path, "trainer_state.json", json.dumps({"log_history": history}))
    assert (run["step"], run["status"], run["rows"]) == (688, "completed", 1)


@pytest.mark.parametrize("unit", ["iteration", "episode", "timestep", "update", "generation"])
@pytest.mark.parametrize("form", ["jsonl", "csv", "log"])
def test_units_of_the_position_are_kept_apart(tmp_path: Path, unit: str, form: str) -> None:
    text = {
        "jsonl": f'{{"{unit}": 3, "loss": 2.5}}\n{{"{unit}": 4, "loss": 1.5}}\n',
        "csv": f"{unit},loss\n3,2.5\n4,1.5\n",
        "log": f"{unit} 3: loss 2.5\n{unit} 4: loss 1.5\n",
    }[form]
    run = run_of(tmp_path, f"a.{form}", text)
    assert (run["unit"], run["step"], run["metrics"]) == (unit, 4, {"loss": 1.5})


@pytest.mark.parametrize(
    ("line", "unit", "place", "metrics"),
    [
        ("[DBG] it=67 micro=7/10 loss=2.5", "iteration", 67, {"loss": 2.5}),
        (
            "Game number: 0051 Frame number: 0198 Average reward: 2.5",
            "game",
            51,
            {"Average reward": 2.5},
        ),
        ("Episode no. 7 ended, return 2.5", "episode", 7, {"return": 2.5}),
        ("Total rewards in episode 73 is 2.5", "episode", 73, {"Total rewards": 2.5}),
        ("{| Epoch: 3 (9/9) | Loss: 2.5 | 1.4 steps/s | Step: 1k | }", "epoch", 3, {"Loss": 2.5}),
        (
            '{"name": "loss", "data": {"epoch": 0.5, "step": 7, "value": 2.5}}',
            "step",
            7,
            {"loss": 2.5},
        ),
    ],
)
def test_positions_in_other_words(
    tmp_path: Path, line: str, unit: str, place: float, metrics: dict[str, float]
) -> None:
    run = run_of(tmp_path, "a.log", line + "\n")
    axis = "epoch" if unit == "epoch" else "step"
    assert (run["unit"], run[axis], run["metrics"]) == (unit, place, metrics)


def test_a_table_of_one_value_a_row_names_it_by_its_tag(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "a.csv", "step,metric,value\n1,loss,2.5\n1,acc,0.5\n2,loss,1.5\n")
    assert [(row["step"], row["metrics"]) for row in rows] == [
        (1, {"loss": 2.5}),
        (1, {"acc": 0.5}),
        (2, {"loss": 1.5}),
    ]


def test_a_step_within_epochs_is_no_position_and_a_row_of_the_epoch_is_no_other_axis(
    tmp_path: Path,
) -> None:
    rows = [{"epoch": e, "iter": i, "loss": 9 - e - i / 10} for e in (1, 2, 3) for i in (5, 9)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    run = run_of(tmp_path, "a.jsonl", text)
    assert (run["unit"], run["epoch"], run["rows"]) == ("epoch", 3, 6)
    steps = "".join(f'{{"step": {i}, "loss": {9 - i / 100}}}\n' for i in range(50, 550, 50))
    run = run_of(tmp_path, "b.jsonl", steps + '{"epoch": 5, "step": 500, "val_loss": 3.2}\n')
    assert (run["unit"], run["step"], run["rows"]) == ("step", 500, 11)
    printed = "".join(f"step {i} loss {9 - i}.5\n" for i in range(6)) + "epoch 1 loss 4.5\n"
    (only,) = [run_of(tmp_path, "c.log", printed)]
    assert (only["unit"], only["step"], only["rows"]) == ("step", 5, 7)


@pytest.mark.parametrize("name", ["metrics.json", "log.txt", "train.log", "out", "a.csv"])
def test_json_lines_are_read_whatever_the_file_is_called(tmp_path: Path, name: str) -> None:
    text = '{"iteration": 19, "total_loss": 2.5}\n{"iteration": 39, "total_loss": NaN}\n'
    first, last = rows_of(tmp_path, name, text)
    assert (first["step"], first["metrics"], last["step"]) == (19, {"total_loss": 2.5}, 39)
    path = tmp_path / f"growing-{name}"
    reader, found = LogReader(path), []
    with path.open("ab", buffering=0) as stream:
        for at in range(0, len(text), 5):
            stream.write(text.encode()[at : at + 5])
            found += reader.read_more()
    assert [row["step"] for row in found + reader.finish()] == [19, 39]


def test_header_names_in_any_characters(tmp_path: Path) -> None:
    text = (
        "epoch, mAP_0.5:0.95, Gewinn (€), 損失 %, loss[train]\n0, 0.25, 3, 4, 5\n1, 0.5, 3, 4, 2\n"
    )
    rows = rows_of(tmp_path, "a.csv", text)
    assert rows[-1]["metrics"] == {
        "mAP_0.5:0.95": 0.5,
        "Gewinn (€)": 3,
        "損失 %": 4,
        "loss[train]": 2,
    }
    prose = rows_of(tmp_path, "b.log", "Loading model, please wait\nstep 1 loss 2.5, acc 0.5\n")
    assert prose[0]["metrics"] == {"loss": 2.5, "acc": 0.5}


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("step,a,b\n1,9,8\nstep,a,b,c\n2,7,6,5\n", {"a": 7, "b": 6, "c": 5}),
        ("step,a,b\n1,9,8\nstep,b,a\n2,7,6\n", {"b": 7, "a": 6}),
        ("step,a,b\n1,9,8\nstep,a,b\n2,7,6\n", {"a": 7, "b": 6}),
        ("step,a,b,c\n1,9,8,7\nstep,a,b\n2,7,6\n", {"a": 7, "b": 6}),
    ],
)
def test_a_second_header_after_a_resume(tmp_path: Path, text: str, last: dict[str, float]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    reader, rows = read_whole(path)
    assert (reader.runs, reader.notes()) == (1, [])
    assert [row["step"] for row in rows] == [1, 2]
    assert rows[-1]["metrics"] == last


@pytest.mark.parametrize("word", ["NA", "n/a", "N/A", "", "null", "None", "-", "oops"])
def test_a_word_in_a_cell_is_missing_and_not_the_end_of_the_column(
    tmp_path: Path, word: str
) -> None:
    text = f"step,loss,val\n1,3.5,{word}\n2,{word},2.5\n3,nan,2.0\n4,1.5,{word}\n5,1.0,1.5\n"
    rows = rows_of(tmp_path, "a.csv", text)
    assert repr(
        [row["metrics"].get("loss") for row in rows]
    ) == "[3.5, None, nan, 1.5, 1]".replace(" 1]", " 1.0]")
    assert [row["metrics"].get("val") for row in rows][-1] == 1.5
    assert len([row for row in rows if "val" in row["metrics"]]) >= 2


def test_a_column_of_words_gives_no_numbers(tmp_path: Path) -> None:
    names = ["abc", "def", "8030e3", "fed", "12345678", "aaa"]
    text = "step,commit,loss\n" + "".join(f"{i},{name},2.5\n" for i, name in enumerate(names))
    assert all(row["metrics"] == {"loss": 2.5} for row in rows_of(tmp_path, "a.csv", text))


NUL = b"\0"


@pytest.mark.parametrize(
    ("name", "head", "bad"),
    [
        ("a.jsonl", b"", b'{"step": 2, "loss": 1' + NUL * 9 + b"5.25}"),
        ("a.csv", b"step,loss\n", b"2,1" + NUL * 9 + b"5.25"),
        ("a.log", b"", b"step 2 loss: 1" + NUL * 9 + b"5.25"),
        ("a.log", b"", b"step 2 loss: 1" + NUL * 9 + b" acc: 5.25"),
    ],
)
def test_a_nul_within_a_row_never_makes_a_number(
    tmp_path: Path, name: str, head: bytes, bad: bytes
) -> None:
    rows = {"jsonl": b'{"step": %d, "loss": 2.5}', "csv": b"%d,2.5", "log": b"step %d loss: 2.5"}
    row = rows[name.split(".")[1]]
    path = tmp_path / name
    lines = [row % 1, bad, NUL * 5 + row % 3 + NUL * 3, row % 4]
    path.write_bytes(head + b"\n".join(lines) + b"\n")
    reader, found = read_whole(path)
    assert [(each["step"], each["metrics"]) for each in found] == [
        (step, {"loss": 2.5}) for step in (1, 3, 4)
    ]
    assert reader.notes()


@pytest.mark.parametrize("truncates", [False, True])
def test_a_rotated_log_is_read_to_its_end(tmp_path: Path, truncates: bool) -> None:
    path, old = tmp_path / "train.log", tmp_path / "train.log.1"
    path.write_text("step 1 | loss: 3.5\n")
    reader = LogReader(path)
    found = reader.read_more()
    with path.open("a") as stream:
        stream.write("step 2 | loss: 2.5\nstep 3 | loss: 2.0\n")
    if truncates:
        shutil.copy(path, old)
        path.write_text("")
    else:
        path.rename(old)
        path.write_text("step 4 | loss: 1.5\n")
    found += reader.read_more(20)
    while reader.behind:
        found += reader.read_more(20)
    if truncates:
        path.write_text("step 4 | loss: 1.5\n")
    found += reader.read_more()
    assert [row["step"] for row in found] == [1, 2, 3, 4]
    assert (reader.runs, reader.restarts, reader.notes()) == (1, 0, [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.log", "Loading weights\nbuilding the vocabulary\nready, 12 workers\n"),
        ("a.jsonl", '{"msg": "hello"}\n{"msg": "world"}\n'),
        ("a.csv", "name,kind\nab,cd\n"),
    ],
)
def test_where_nothing_is_understood_the_first_lines_are_shown(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    follower = LogFollower([path], SystemClock())
    read_all(follower)
    (run,) = follower.document()["runs"]
    assert run["status"] == "waiting"
    (note,) = run["notes"]
    assert "none understood as a row with values; the first: " in note
    shown = "\n".join(line.plain for line in draw(follower, width=400))
    for line in text.splitlines()[:3]:
        assert line in note
        assert line in shown


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("=====\nstep 1 loss: 2.5\nstep 2 loss: 1.5\n", "stopped"),
        ("step 1 loss: 2.5\n==========\nbest loss: 2.5\n", "stopped"),
        ("step 1 loss: 2.5\n---\nval_bpb: 1.25\n", "completed"),
        ("step 1 loss: 2.5\n---\nval_bpb: 1.25\nstep 2 loss: 1.5\n", "stopped"),
        ("step 1 loss: 2.5\nTraining is nearly finished\n", "stopped"),
        ("[1]\ta:0.5\nEarly stopping, best iteration is:\n[1]\ta:0.5\n", "completed"),
    ],
)
def test_completed_is_only_what_the_form_says_at_its_end(
    tmp_path: Path, text: str, status: str
) -> None:
    assert run_of(tmp_path, "a.log", text)["status"] == status


@pytest.mark.parametrize(
    ("name", "text", "best"),
    [
        (
            "a.jsonl",
            '{"trial_number": 1, "params": {}, "results": {"bpb": 1.5, "status": "ok"}}\n'
            '{"trial_number": 2, "params": {}, "results": {"bpb": Infinity, "status":"crash"}}\n',
            1.5,
        ),
        ("a.tsv", "commit\tbpb\tstatus\nab\t1.5\tkeep\ncd\t0\tcrash\n", 1.5),
        (
            "a.log",
            "[I 2025-01-01 10:00:00,000] Trial 0 finished with value: 1.5 and parameters:"
            " {'lr': 0.1}. Best is trial 0 with value: 1.5.\n",
            1.5,
        ),
    ],
)
def test_a_ledger_of_trials_is_no_training(
    tmp_path: Path, name: str, text: str, best: float
) -> None:
    run = run_of(tmp_path, name, text)
    assert (run["status"], run["alarms"]) == ("ledger", [])
    assert best in run["metrics"].values()
    assert not any(math.isinf(value) for value in run["metrics"].values())


def test_reinforcement_learning_tables_are_trainings(tmp_path: Path) -> None:
    monitor = '#{"t_start": 1.5, "env_id": "Demo"}\nr,l,t\n' + "".join(
        f"{n}.5,50,{n}.25\n" for n in range(5)
    )
    run = run_of(tmp_path, "monitor.csv", monitor)
    assert (run["status"], run["unit"], run["step"], run["rows"]) == ("stopped", "episode", 4, 5)
    progress = "rollout/ep_rew_mean,time/total_timesteps\n1.5,2048\n2.5,4096\n"
    run = run_of(tmp_path, "progress.csv", progress)
    assert (run["status"], run["unit"], run["step"]) == ("stopped", "timestep", 4096)


def test_a_folder_with_a_file_for_each_metric_is_one_run(tmp_path: Path) -> None:
    metrics = tmp_path / "dvclive" / "plots" / "metrics"
    for name in ("train/loss", "train/acc", "val/loss"):
        path = (metrics / name).with_suffix(".tsv")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{i}\t{4 - i / 2}\n" for i in range(4))
        path.write_text(f"step\t{path.stem}\n{lines}")
    (run,) = watched(tmp_path / "dvclive")
    assert (run["rows"], run["step"]) == (4, 3)
    assert run["metrics"] == {"train/loss": 2.5, "train/acc": 2.5, "val/loss": 2.5}
    follower = LogFollower(find_logs(metrics, most=8), SystemClock())
    read_all(follower)
    with (metrics / "val" / "loss.tsv").open("a") as stream:
        stream.write("4\t1.5\n")
    read_all(follower)
    (grown,) = follower.document()["runs"]
    assert (grown["rows"], grown["step"], grown["metrics"]["val/loss"]) == (5, 4, 1.5)


def test_the_folder_of_mlflow_is_one_run(tmp_path: Path) -> None:
    run_folder = tmp_path / "mlruns" / "0" / "abc"
    (run_folder / "metrics").mkdir(parents=True)
    (run_folder / "meta.yaml").write_text("name: x\n")
    for name in ("loss", "val_loss"):
        lines = "".join(f"17000000000{i}0 {4 - i}.5 {i}\n" for i in range(3))
        (run_folder / "metrics" / name).write_text(lines)
    (run,) = watched(tmp_path / "mlruns")
    assert (run["rows"], run["step"]) == (3, 2)
    assert run["metrics"] == {"loss": 2.5, "val_loss": 2.5}
