"""The dashboard beside the pane of tmux in which a command runs."""

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.errors import UsageError

_PASSED = ("XDG_STATE_HOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "NO_COLOR")
"""tmux starts a pane with its server's environment: these come from ours."""


def split(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Open `harness watch WORDS` in a pane of its own; returns tmux's id of it. Raises UsageError
    outside tmux."""
    if not environ.get("TMUX"):
        raise UsageError(
            "This is no pane of tmux: the variable TMUX is not set.",
            hint="Start tmux first, or call `harness watch` in another terminal.",
            code="no_tmux",
        )
    given = [f"{name}={environ[name]}" for name in _PASSED if name in environ]
    command = ["env", *given, sys.executable, "-m", "harness", "watch", *words]
    where = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
    size = ["-l", "45%"]
    answer = _tmux(
        ["split-window", "-h", "-d", "-P", "-F", "#{pane_id}", *size, *where, shlex.join(command)],
        environ,
    )
    return answer.strip()


@contextlib.contextmanager
def watched_beside(project: Path, environ: Mapping[str, str], *, wanted: bool) -> Iterator[None]:
    """Inside tmux, a pane that follows the project's runs for as long as the block lasts. Without
    tmux, or where it refuses, nothing: a run does not depend on being watched."""
    if not wanted or not environ.get("TMUX"):
        yield
        return
    pane = None
    try:
        pane = split(["--follow", "--project", str(project.resolve())], environ)
    except UsageError as error:
        sys.stderr.write(f"no dashboard: {error.message}\n")
    try:
        yield
    finally:
        if pane is not None:
            with contextlib.suppress(UsageError):  # a person has closed it
                _tmux(["kill-pane", "-t", pane], environ)


def _tmux(words: Sequence[str], environ: Mapping[str, str]) -> str:
    try:
        ended = subprocess.run(
            ["tmux", *words],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"tmux did not answer: {error}.", hint="Check that tmux is installed.", code="no_tmux"
        ) from error
    if ended.returncode:
        raise UsageError(
            f"tmux refused: {ended.stderr.strip()}.", hint="Make the window wider.", code="no_tmux"
        )
    return ended.stdout
