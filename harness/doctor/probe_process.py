"""Starts a probe with a new environment and folders of its own, and ends all that it started."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import process

MARK = "HARNESS_DOCTOR_PROBE"
"""In the environment of every process of a probe."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a program ended; `code` is None after a time-out."""

    code: int | None
    stdout: str
    stderr: str


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder outside the project, removed afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="harness-doctor-", ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder).resolve()


def clean_environment(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a probe. Of ours it has PATH only: no key, home or Claude switch."""
    for name in ("home", "config", "tmp", "state"):
        (folder / name).mkdir(exist_ok=True, mode=0o700)
    return {
        "PATH": environment.get("PATH") or SYSTEM_PATH,
        "HOME": str(folder / "home"),
        "XDG_STATE_HOME": str(folder / "state"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    given: bytes = b"",
    timeout_s: float,
) -> Ended:
    """Run `command`; none of its processes is left. Raises OSError if it cannot start."""
    # Its processes are known by a mark in their environment: a process id may be reused.
    mark = process.Mark(variable=MARK, value=secrets.token_hex(16))
    finished = process.run(
        command, cwd=cwd, environment=environment, seconds=timeout_s, mark=mark, stdin=given
    )
    return Ended(
        code=None if finished.timed_out else finished.code,
        stdout=finished.stdout.decode("utf-8", "replace"),
        stderr=finished.stderr.decode("utf-8", "replace"),
    )
