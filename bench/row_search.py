"""What looking for held-out rows costs, against reading all the same bytes with SHA-256.

A project of many small files (code, JSON, csv, arrays) and a history of many blobs, none of which
holds held-out rows. Prints seconds and the ratio. Exits with 1 beyond the aim.

    python bench/row_search.py [--files 10000] [--blobs 1000] [--record]

--record writes docs/evidence/row_search.json.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _record import record, wants_record

from harness.artifacts.git import git_line, object_reader, objects
from harness.files import walk_files
from harness.plans.row_search import Limits, Secret, search

AIM = 60.0
"""The largest ratio to reading and hashing."""
MOST_S = 20.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--blobs", type=int, default=1_000)
    given = parser.parse_known_args()[0]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _history(root, given.blobs)
        _project(root, given.files)
        train, held_out = _table(1, 2_000), _table(2, 500)
        begin = time.process_time()
        size = _hashed(root)
        plain = time.process_time() - begin
        secret = Secret(
            name="held-out", columns=held_out, inputs=["x"], label="y", id="id", known=[train]
        )
        begin = time.process_time()
        # Processor time counts: a busy machine must not end the search.
        found = search(root, [secret], Limits(seconds=600))
        looked = time.process_time() - begin
    ratio = looked / plain
    print(f"{found.files} files, {found.blobs} blobs, {size / 1e6:.1f} MB")
    print(f"read and hashed   {plain:8.2f} s")
    print(f"rows looked for   {looked:8.2f} s = {ratio:.1f}x   (aim: at most {AIM:g}x)")
    wrong = bool(found.places) or "the time was over" in found.missed.names
    print(f"found {len(found.places)}, not looked at {sum(map(len, found.missed.names.values()))}")
    if wants_record():
        figures = {"files": found.files, "blobs": found.blobs, "ratio": round(ratio, 1)}
        figures |= {"seconds": round(looked, 1), "megabytes": round(size / 1e6, 1)}
        record("row_search", "python bench/row_search.py --record", figures, seed=0)
    return int(wrong or ratio > AIM or looked > MOST_S)


def _table(seed: int, rows: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        "id": np.arange(rows) + seed * 10_000,
        "x": draw.normal(size=(rows, 9)),
        "y": draw.integers(0, 3, rows),
    }


_CODE = "def f{0}(a, b):\n    # step {0} of 17\n    return a * {0} + b / 2.5\n\n\n"


def _text(number: int, draw: np.random.Generator) -> tuple[str, bytes]:
    kind = number % 5
    if kind < 2:
        return "py", "".join(_CODE.format(number + line) for line in range(20)).encode()
    if kind == 2:
        rows = [{"step": row, "loss": float(draw.random()), "lr": 1e-3} for row in range(15)]
        return "jsonl", "\n".join(map(json.dumps, rows)).encode()
    if kind == 3:
        lines = [",".join(map(repr, row)) for row in draw.normal(size=(12, 9)).tolist()]
        return "csv", "\n".join(["a,b,c,d,e,f,g,h,i", *lines]).encode()
    return "json", json.dumps(
        {"name": f"run {number}", "values": draw.random(20).tolist()}
    ).encode()


def _project(root: Path, files: int) -> None:
    draw = np.random.default_rng(3)
    for number in range(files):
        suffix, data = _text(number, draw)
        folder = root / f"part-{number // 500}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.{suffix}").write_bytes(data)


def _history(root: Path, blobs: int) -> None:
    draw = np.random.default_rng(4)
    subprocess.run(git_line("init", "-q"), cwd=root, check=True)
    names = []
    for number in range(blobs):
        path = root / f"blob-{number}"
        path.write_bytes(_text(number + 1_000_000, draw)[1])
        names.append(path)
    listed = "\n".join(map(str, names)).encode()
    words = git_line("hash-object", "-w", "--stdin-paths")
    subprocess.run(words, cwd=root, input=listed, check=True, capture_output=True)
    for path in names:
        path.unlink()


def _hashed(root: Path) -> int:
    size = 0
    for path in walk_files(root):
        if ".git" not in path.parts and path.is_file():
            data = path.read_bytes()
            hashlib.sha256(data).hexdigest()
            size += len(data)
    with object_reader(root) as read:
        for _, name, _ in objects(root):
            data = read(name)
            hashlib.sha256(data).hexdigest()
            size += len(data)
    return size


if __name__ == "__main__":
    sys.exit(main())
