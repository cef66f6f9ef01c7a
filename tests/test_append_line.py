"""Case 16: several processes append to one file through `append_line`, and no record is mixed with another."""

import json
import multiprocessing
from pathlib import Path

from harness.files import append_line

WRITERS, RECORDS = 8, 200


def write(path: Path, writer: int) -> None:
    for index in range(RECORDS):
        pad = chr(ord("a") + writer) * 9_000
        append_line(path, json.dumps({"writer": writer, "index": index, "pad": pad}).encode())


def test_case_16_concurrent_writers_do_not_mix_records(tmp_path: Path) -> None:
    path = tmp_path / "receipts.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(path, number)) for number in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * WRITERS
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    rows = [json.loads(line) for line in lines]
    assert len(rows) == WRITERS * RECORDS
    assert all(set(row["pad"]) == {chr(ord("a") + row["writer"])} and len(row["pad"]) == 9_000 for row in rows)
    order = [[row["index"] for row in rows if row["writer"] == writer] for writer in range(WRITERS)]
    assert order == [list(range(RECORDS))] * WRITERS


def test_case_13_a_torn_last_line_is_closed_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    append_line(path, b'{"c": 3}')
    append_line(path, b'{"d": 4}')
    assert path.read_bytes() == b'{"a": 1}\n{"b"\n{"c": 3}\n{"d": 4}\n'
