"""Commands run as in a person's terminal: what stands at their input is a terminal of their own."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_in_terminal(
    words: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `words` with a terminal as stdin; nobody types. stdout and stderr are read from pipes,
    apart."""
    ours, theirs = pty.openpty()
    try:
        return subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env=dict(env),
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
