"""What tests need not find out twice, nor wait for: answers that the same bytes always have, and a
disk.

Most projects of tests are the same small tables, and approving a plan searches their rows for woven
labels: most of what an approval takes. Here the same columns are searched once a process (and its
warm server); others are searched as ever. That bytes have reached the disk is seen only after power
is lost, which no test does: a killed process loses none. Tests of `fsync` itself bring their own.
"""

import contextlib
import hashlib
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from harness.guard import judge_files
from harness.plans import leaks
from harness.plans.woven import Woven


@contextlib.contextmanager
def found_once(folder: Path) -> Iterator[None]:
    """Answers are kept in `folder`: a fork has those of the forks before it."""
    found = sorted(judge_files._found())
    signature, signed = judge_files._signature, judge_files._signature(found)
    search = leaks.woven

    def woven(
        columns: Sequence[tuple[str, NDArray[Any]]], target: NDArray[Any], classes: int
    ) -> list[Woven]:
        digest = hashlib.sha256(repr(classes).encode())
        for name, values in [*columns, ("", target)]:
            head = (name, values.dtype.str, values.shape)
            content = values.tolist() if values.dtype.hasobject else values.tobytes()
            digest.update(repr((head, content)).encode())
        kept = folder / digest.hexdigest()
        with contextlib.suppress(FileNotFoundError):
            told: list[Woven] = pickle.loads(kept.read_bytes())
            return told
        told = search(columns, target, classes)
        written = folder / f"{kept.name}.{os.getpid()}"
        with contextlib.suppress(OSError):  # a call that may not write here searches anew
            written.write_bytes(pickle.dumps(told))
            written.replace(kept)
        return told

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_files, "_found", lambda: iter(found))
        patch.setattr(
            judge_files, "_signature", lambda seen: signed if seen == found else signature(seen)
        )
        patch.setattr(leaks, "woven", woven)
        patch.setattr(os, "fsync", os.fstat)  # a wrong descriptor is an error still
        yield
