"""What an evaluation does with a checkpoint's bytes: a copy that is hashed while it is written, and
two looks at its marks; against a copy, and three times the hash of all of it.

    python bench/checkpoint_copy.py [--mib 128] [--repeats 3] [--folder DIR] [--record]

Both in the same run, in turns, after a round that warms the disk's cache; one line of JSON ends the
output. With --record it writes docs/evidence/checkpoint_copy.json. On a file system that shares
blocks (btrfs, xfs) the copy is a reflink.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from _record import record, wants_record

from harness.artifacts.content import hash_path
from harness.evaluation.checkpoint_copy import copy_checkpoint, marks_of

_BLOCK = 1 << 20


def before(source: Path, folder: Path, digest: str) -> None:
    copy = folder / digest
    with source.open("rb") as reading, copy.open("xb") as writing:
        shutil.copyfileobj(reading, writing, _BLOCK)
    for _ in ("the copy", "predict", "predict again"):
        assert hash_path(copy) == digest


def after(source: Path, folder: Path, digest: str) -> None:
    copy = copy_checkpoint(source, folder, root=source.parent, expected=digest)
    marks = marks_of(copy)
    for _ in ("predict", "predict again"):
        assert marks_of(copy) == marks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        source = Path(name) / "model.pt"
        with source.open("wb") as stream:
            for _ in range(options.mib):
                stream.write(os.urandom(_BLOCK))
        digest = hash_path(source)
        for turn in range(options.repeats + 1):
            for way in (before, after):
                folder = Path(name) / "copies"
                folder.mkdir()
                start = time.perf_counter()
                way(source, folder, digest)
                if turn:
                    seconds[way.__name__].append(time.perf_counter() - start)
                shutil.rmtree(folder)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = round(medians["after"] / medians["before"], 3)
    for name, values in seconds.items():
        print(f"{name}: {medians[name]:.2f} s ({min(values):.2f} to {max(values):.2f})")
    print(f"{options.mib} MiB: {ratio} x a copy and three hashes")
    if wants_record():
        record("checkpoint_copy", "python bench/checkpoint_copy.py --record", {"ratio": ratio})
    print(json.dumps({"bench": "checkpoint_copy", "mib": options.mib, "ratio": ratio}))
    return int(ratio > 1)


if __name__ == "__main__":
    sys.exit(main())
