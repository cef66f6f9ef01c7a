"""Around every program that loads a language model: its environment, and standard output for its
answer alone. Importing this module sets the environment, so it comes before the libraries that read
it. A variable that is set already stays."""

import os
import sys
from collections.abc import Iterator
from contextlib import (
    contextmanager,
    redirect_stdout,
)
from typing import BinaryIO

_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Two threads that spin on two shared cores run seven times slower.
    "OMP_WAIT_POLICY": "passive",
}
for _name, _value in _SETTINGS.items():
    os.environ.setdefault(_name, _value)


@contextmanager
def answers_only() -> Iterator[BinaryIO]:
    """The real standard output; inside the block what libraries print goes to standard error."""
    # The descriptor, not only sys.stdout: C code and child processes write to descriptor 1.
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr), os.fdopen(kept, "wb", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(kept, 1)
        os.close(kept)
