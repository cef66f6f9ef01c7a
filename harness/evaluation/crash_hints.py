"""What to do about a predict command that crashed, by the last words of its stderr."""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from harness.evaluation.problems import last_lines, quoted

_NO_FILE = re.compile(r"(?:FileNotFoundError: .*?|can't open file )'([^'\n]+)'")
"""Python's own words, for a file that the program opens and for the program itself."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'\n]+)'")


def hint_of(
    stderr: bytes, *, code: Path, held: Collection[str], left_out: Sequence[str], interpreter: str
) -> str:
    """The next step.

    Args:
        code: the folder in which the command ran; it holds the snapshot's files.
        held: the snapshot's files, relative.
        left_out: the plan's data files, which it does not hold on purpose.
        interpreter: the Python that ran it.
    """
    said = last_lines(stderr)
    if (absent := _absent_file(said, code, held, left_out)) is not None:
        return (
            "predict runs the code snapshot taken when the run was registered, and"
            f" {quoted(absent)} was not in it: git ignores it, or it was made later. Commit it or"
            " stop ignoring it, then train again."
        )
    if modules := _NO_MODULE.findall(said):
        top = modules[-1].partition(".")[0]
        return (
            f"predict runs with {interpreter}, which has no {quoted(top)}: install the package"
            f" there (`{interpreter} -m pip install {top}`, if the package has that name) and"
            f" evaluate again. If {quoted(top)} is a file of the project, git ignores it: stop"
            " ignoring it, then train again."
        )
    return (
        "Run it by hand with HARNESS_CHECKPOINT, HARNESS_INPUTS and HARNESS_PREDICTIONS set; it"
        " sees the code snapshot of the run, not the project's data, and may write only beside"
        " HARNESS_PREDICTIONS."
    )


def _absent_file(
    said: str, code: Path, held: Collection[str], left_out: Sequence[str]
) -> str | None:
    """The file, relative to the code folder, that Python last said was not there, when the snapshot
    does not hold it.

    The plan's data is left out on purpose, and a path elsewhere is no file of the project: None for
    both.
    """
    found = _NO_FILE.findall(said)
    if not found:
        return None
    path = PurePosixPath(os.path.relpath(code / found[-1], code))
    elsewhere = path.parts[:1] in ((), (os.pardir,))
    kept_out = not {path, *path.parents}.isdisjoint(map(PurePosixPath, left_out))
    return None if elsewhere or kept_out or str(path) in held else str(path)
