"""Case 16: several processes append through the run logger, and no record is mixed with another."""

import json
import multiprocessing
from pathlib import Path

from harness.run_logger.run_files import RowFile

WRITERS, RECORDS = 8, 200


def write(path: Path, writer: int) -> None:
    rows = RowFile(path)
    for index in range(RECORDS):
        pad = chr(ord("a") + writer) * 9_000
        rows.append(json.dumps({"writer": writer, "index": index, "pad": pad}).encode() + b"\n")


def test_case_16_concurrent_writers_do_not_mix_records(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(path, number)) for number in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * WRITERS
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    rows = [json.loads(line) for line in lines]
    assert len(rows) == WRITERS * RECORDS
    assert all(
        set(row["pad"]) == {chr(ord("a") + row["writer"])} and len(row["pad"]) == 9_000
        for row in rows
    )
    order = [
        [row["index"] for row in rows if row["writer"] == writer] for writer in range(WRITERS)
    ]
    assert order == [list(range(RECORDS))] * WRITERS


def test_case_13_a_torn_last_line_is_closed_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    rows = RowFile(path)
    rows.append(b'{"c": 3}\n')
    rows.append(b'{"d": 4}\n')
    assert path.read_bytes() == b'{"a": 1}\n{"b"\n{"c": 3}\n{"d": 4}\n'
