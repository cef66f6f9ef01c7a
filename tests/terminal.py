"""Commands run as in a person's terminal: what stands at their input is a terminal of their own."""

import os
import pty
import select
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


def talk_in_terminal(
    words: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    asked: str,
    typed: str,
    silence: float = 60.0,
) -> tuple[int, str]:
    """(exit code, all that was shown) of `words` on a terminal where `typed` is typed once `asked`
    stands there. Ends when nothing comes for `silence` seconds."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(word) for word in words],
        cwd=cwd,
        env=dict(env),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    try:
        while select.select([ours], [], [], silence)[0]:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # it has ended
                break
            if asked.encode() in seen and typed:
                os.write(ours, typed.encode())
                typed = ""
        return process.wait(30), seen.decode("utf-8", "replace")
    finally:
        process.kill()
        os.close(ours)
