"""Standard output of a program whose answer stands there alone: what libraries print goes to
standard error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import BinaryIO


@contextmanager
def answers_only() -> Iterator[BinaryIO]:
    """The real standard output; inside the block descriptor 1 is standard error, for C code and
    children, too."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr), os.fdopen(kept, "wb", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(kept, 1)
        os.close(kept)
