"""Damaged and hostile files of every form, from a fixed seed: `FORMS` names what reads them.

`make fuzz` reads 10,000 a form.
"""

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts.content import content_hash, hash_path
from harness.artifacts.jsonl import LineFeed, parse_line
from harness.errors import UsageError
from harness.evaluation.predictions import NAME, read_predictions
from harness.evaluation.problems import Unscorable
from harness.plans.tables import Table, read_table
from harness.runs.checkpoint_watch import Tellings, epoch_of, final, place_of, shape_of
from tests.fuzz.properties import PROPERTIES, answered
from tests.fuzz.starting_inputs import SEEDS

MANY = 10_000
LIMIT = 1 << 20
_ROWS = 5
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_DESCRIPTIONS = (
    "<f8",
    "<i4",
    ">i2",
    "|b1",
    "<U3",
    "|S2",
    "<U0",
    "|O",
    "<c16",
    "<M8[D]",
    "x",
    "f,f",
)
_MARKS = (
    b"\0",
    b"\xff" * 4,
    b"\xff" * 8,
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"\n",
    b'"',
)
_NAMES = (
    *("checkpoints/w", "checkpoints", "../w", "/etc/passwd", "", ".", "a\0b", "link", "w" * 300),
    *("\ud800", "checkpoints/../checkpoints/w", "pipe", 3, None, [], {"a": 1}),
)


def a_table(folder: Path, data: bytes, suffix: str) -> None:
    """A table that is read has columns of its length, of plain values."""
    path = folder / f"table{suffix}"
    path.write_bytes(data)
    found: Table | None = answered(lambda: read_table(path, max_bytes=LIMIT))
    if found is not None:
        assert {len(column) for column in found.columns.values()} == {found.n}
        assert all(column.dtype.kind in "biufSU" for column in found.columns.values())
        repr([column.tolist() for column in found.columns.values()]).encode()


def predictions(folder: Path, data: bytes) -> None:
    """Predictions that are read are columns of one length; else the finding says why not."""
    (folder / NAME).write_bytes(data)
    try:
        columns = read_predictions(folder, rows=_ROWS, limit=LIMIT)
    except Unscorable as error:
        finding = error.finding
    else:
        assert len({len(values) for values in columns.values()}) == 1
        json.dumps(columns).encode()
        return
    assert finding.code.startswith("predictions_")
    finding.message.encode()


def checkpoints(folder: Path, data: bytes) -> None:
    """Rows that tell of checkpoints name a place, or what is wrong with it."""
    run = folder / "run"
    if not run.exists():
        (run / "checkpoints").mkdir(parents=True)
        (run / "checkpoints/w").write_text("w")
        (run / "link").symlink_to("/etc/passwd")
    told = [row for line in LineFeed().feed(data + b"\n") for row in parse_line(line).rows]
    tellings = Tellings()
    for row in told:
        tellings.take(row)
    latest = tellings.newest
    assert (final(latest) is None) == (not latest)
    for name, telling in latest.items():
        epoch = epoch_of(telling.row)
        assert epoch is None or abs(epoch) < 2**53
        try:
            path = place_of(run, name)
            shape_of(path, most=10)
            hash_path(path)
        except (UsageError, OSError, ValueError, RuntimeError):
            continue
        assert path.resolve().is_relative_to(run.resolve())
        recorded = content_hash(folder, path.relative_to(folder).as_posix())
        assert recorded is not None or ".." in path.parts, "the gate finds what the run recorded"


def an_archive(chance: random.Random) -> bytes:
    """An npz, whole or wrong in one of the ways that a writer of archives can choose."""
    stream = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(stream, "w") as target:
        for number in range(chance.randint(0, 4)):
            name = chance.choice(["id.npy", "prediction.npy", f"c{number}.npy", "", "../x", "a\0"])
            method = chance.choice(_METHODS if chance.random() < 0.5 else _METHODS[:2])
            target.writestr(zipfile.ZipInfo(name or "x"), an_array(chance), method)
    return stream.getvalue()


def an_array(chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        whole = io.BytesIO()
        values = chance.choice([np.arange(_ROWS), np.array(["a", "bb", "c", "d", "e"])])
        np.save(whole, values)
        return whole.getvalue()
    shape = chance.choice([f"({_ROWS},)", "()", "(2, 3)", "(10**9,)", "(99999999999,)", "(-1,)"])
    order = chance.choice(["False", "True", "[]"])
    described = chance.choice(_DESCRIPTIONS)
    text = f"{{'descr': {described!r}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = chance.choice([len(text), len(text), 0, 65_535])
    start = b"\x93NUMPY" + bytes([chance.choice([1, 1, 2, 3, 9]), 0])
    return (
        start + length.to_bytes(2, "little") + text + b"\x01" * chance.choice([0, 5, 20, 40, 60])
    )


def a_row(chance: random.Random) -> bytes:
    row: dict[str, Any] = {
        "event": "checkpoint",
        "path": chance.choice(_NAMES),
        "epoch": chance.choice([0, 1, -1, 2**70, 1e308, "x", None, True]),
        "final": chance.choice([True, False, 1, "yes"]),
    }
    return json.dumps(row).encode() + b"\n"


def _csv(chance: random.Random) -> bytes:
    cells = ["1", "0.5", "nan", "-inf", "a", "", '"', "9" * 30, "1_0", "é", "\u2028", "x" * 200]
    rows = [",".join(chance.choices(cells, k=2)) for _ in range(chance.randint(0, _ROWS))]
    return "\n".join(["id,prediction", *rows]).encode()


def _jsonl(chance: random.Random) -> bytes:
    values = ["1", "0.5", "NaN", "null", '"a"', "[1, 2]", "[[]]", "{}", "9" * 400, '"\\ud800"']
    return "\n".join(
        f'{{"id": {chance.choice(values)}, "x": {chance.choice(values)}}}' for _ in range(3)
    ).encode()


def _seed(form: str) -> Callable[[random.Random], bytes]:
    texts = [text.encode() for text in SEEDS[form].values()]
    return lambda chance: chance.choice(texts)


Reader = Callable[[Path, bytes], Any]
FORMS: dict[str, tuple[Callable[[random.Random], bytes], Reader]] = {
    "npz": (an_archive, lambda folder, data: a_table(folder, data, ".npz")),
    "csv": (_csv, lambda folder, data: a_table(folder, data, ".csv")),
    "jsonl": (_jsonl, lambda folder, data: a_table(folder, data, ".jsonl")),
    "predictions_npz": (an_archive, predictions),
    "predictions_csv": (_csv, predictions),
    "checkpoints": (
        lambda chance: b"".join(a_row(chance) for _ in range(chance.randint(1, 4))),
        checkpoints,
    ),
} | {form: (_seed(form), PROPERTIES[form]) for form in ("metrics", "status", "result", "plan")}
"""Name -> (what makes a file of the form, whole or not; its property)."""


def damage(data: bytes, chance: random.Random) -> bytes:
    """As a torn write, a bad disk or a hostile hand leaves it; at times as it is."""
    changed = bytearray(data)
    for _ in range(chance.choice([0, 0, 1, 1, 2, 8])):
        at = chance.randrange(len(changed) + 1)
        how = chance.randrange(5)
        if how == 0:
            del changed[at:]
        elif how == 1:
            changed[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 2:
            changed[at:at] = chance.choice(_MARKS)
        elif how == 3:
            del changed[at : at + chance.randint(1, 30)]
        else:
            changed[at:at] = changed[at : at + chance.randint(1, 200)]
    return bytes(changed)


def inputs(form: str, count: int) -> Iterator[bytes]:
    """The same ones each time."""
    chance = random.Random(f"damaged {form}")
    make = FORMS[form][0]
    for _ in range(count):
        yield damage(make(chance), chance)


def read_all(form: str, count: int, folder: Path) -> None:
    """Raises AssertionError with the input that broke the reader."""
    for number, data in enumerate(inputs(form, count)):
        try:
            FORMS[form][1](folder, data)
        except Exception as error:
            raise AssertionError(f"{form}, input {number}: {data!r}") from error
