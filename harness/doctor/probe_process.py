"""What the doctor starts gets an environment made from nothing and folders of its own, and all of
it is ended."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import process

MARK = "HARNESS_DOCTOR_PROBE"
"""In the environment of all that a probe starts."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a started program ended; `code` is None when it ran past its time and was ended."""

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
    """All that a started program sees. From ours it takes PATH alone: no key, no home, no switch of
    Claude Code."""
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
    """Run `command` to its end; nothing that it started is left then. Raises OSError when it does
    not start.

    What it started is known by a mark in its environment, so that a reused process id is never
    ours.
    """
    mark = process.Mark(variable=MARK, value=secrets.token_hex(16))
    finished = process.run(
        command, cwd=cwd, environment=environment, seconds=timeout_s, mark=mark, stdin=given
    )
    return Ended(
        code=None if finished.timed_out else finished.code,
        stdout=finished.stdout.decode("utf-8", "replace"),
        stderr=finished.stderr.decode("utf-8", "replace"),
    )
