"""Logs that go away or turn into something else while `harness watch` follows them, packed ones,
and names that no disk takes."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.clock import ManualClock
from harness.views.follow_logs import LogFollower
from harness.views.watching import in_lines, read_all

ROWS = "".join(f"step {i} loss: 2.{i}\n" for i in range(1, 10))
LATER = "step 50 loss: 1.5\n"
NO_FILE = "run.log: run.log is not a regular file. Name a file, or put one in its place."


class Enough(Exception):
    """The script is over."""


class Scripted(ManualClock):
    """Between two looks something happens."""

    def __init__(self, *happens: Callable[[Path], object], log: Path) -> None:
        super().__init__()
        self._happens, self._log = [*happens, lambda _: None, _enough], log

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._happens.pop(0)(self._log)


def _enough(_log: Path) -> None:
    raise Enough


def to_folder(log: Path) -> None:
    log.unlink()
    log.mkdir()


def to_pipe(log: Path) -> None:
    log.unlink()
    os.mkfifo(log)


def again(log: Path) -> None:
    log.write_text(LATER)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ([Path.unlink], ["run.log: run.log is gone; it is waited for"]),
        (
            [Path.unlink, again],
            ["run.log: run.log is gone; it is waited for", "run.log  step 50  loss 1.5"],
        ),
        ([to_folder], [NO_FILE]),
        ([to_pipe], [NO_FILE]),
        (
            [to_pipe, Path.unlink, again],
            [
                NO_FILE,
                "run.log: run.log is gone; it is waited for",
                "run.log  step 50  loss 1.5",
            ],
        ),
        ([lambda log: log.write_text(""), again], ["run.log  step 50  loss 1.5"]),
    ],
    ids=["gone", "gone and back", "folder", "pipe", "pipe and back", "emptied and written anew"],
)
def test_what_happens_to_a_log_is_told_once_and_nothing_is_lost(
    tmp_path: Path, happens: list[Callable[[Path], object]], said: list[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(ROWS)
    lines: list[str] = []
    clock = Scripted(*happens, log=log)
    with pytest.raises(Enough):
        in_lines(LogFollower([log], clock), clock, lines.append, ends=False)
    assert lines[:9] == [f"run.log  step {i}  loss 2.{i}" for i in range(1, 10)]
    named = [line.replace(f"{log}", log.name) for line in lines[9:]]
    told = [line for line in named if "was replaced" not in line]
    assert told == said


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["watch", *words, "--once"])
    said = capsys.readouterr()
    assert (stop.value.code, said.out) == (2, "")
    return said.err


@pytest.mark.parametrize(
    ("pack", "program"),
    [(gzip.compress, "gunzip -k"), (bz2.compress, "bunzip2 -k"), (lzma.compress, "unxz -k")],
)
def test_a_packed_log_is_no_log_yet(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pack: Callable[[bytes], bytes],
    program: str,
) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(pack(ROWS.encode()))
    assert f"run.log is compressed. Unpack it first: {program} run.log" in refused(
        [str(log)], capsys
    )


def test_a_name_that_no_disk_takes_is_shown_short(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["x" * 5000 + ".log"], capsys)
    assert "cannot be read: File name too long." in said
    assert len(said) < 300


@pytest.mark.parametrize("width", ["0", "-5", "wide", ""])
def test_a_width_that_is_none_is_the_usual_one(tmp_path: Path, width: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(ROWS)
    shown = [
        subprocess.run(
            [sys.executable, "-m", "harness", "watch", log, "--once"],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb", **more},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ({}, {"COLUMNS": width, "LINES": width})
    ]
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize(
    ("name", "head", "part", "last"),
    [
        ("run.log", "step 1 loss: 2.5\n", "loss: 9.5 step 7 ", "step 2 loss: 2.25\n"),
        ("run.jsonl", '{"step": 1, "loss": 2.5}\n', '"a": 7, ', '{"step": 2, "loss": 2.25}\n'),
        ("run.csv", "step,loss\n1,2.5\n", "7,", "2,2.25\n"),
    ],
)
def test_a_line_without_end_is_left_out_once_and_as_a_whole(
    tmp_path: Path, name: str, head: str, part: str, last: str
) -> None:
    log = tmp_path / name
    log.write_text(head + part * ((30 << 20) // len(part)) + "\n" + last)
    clock = ManualClock()
    follower = LogFollower([log], clock)
    read_all(follower)
    (run,) = follower.document()["runs"]
    assert (run["rows"], run["step"], run["metrics"]) == (2, 2, {"loss": 2.25})
    assert run["notes"] == [
        f"line {head.count(chr(10)) + 1} is longer than 8 MiB; it was left out"
    ]


def test_a_table_row_of_a_million_cells_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "run.csv"
    log.write_text("step,loss\n1,2.5\n" + "7," * 1_000_000 + "\n2,2.25\n")
    follower = LogFollower([log], ManualClock())
    read_all(follower)
    (run,) = follower.document()["runs"]
    assert (run["rows"], run["metrics"]) == (2, {"loss": 2.25})
    assert run["notes"] == ["line 3 has 50,000 cells or more; it was left out"]


def test_a_file_that_was_never_written_says_so_until_there_is_a_row(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(bytes(3 << 20))
    follower = LogFollower([log], ManualClock())
    read_all(follower)
    assert follower.document()["runs"][0]["notes"] == [
        "so far it has nothing but blanks and NUL bytes"
    ]
    with log.open("ab") as stream:
        stream.write(ROWS.encode())
    read_all(follower)
    (run,) = follower.document()["runs"]
    assert (run["rows"], run["step"], run["notes"]) == (9, 9, [])
