"""A tmux pane that shows the dashboard beside the current command."""

import contextlib
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.cli.output import tell
from harness.errors import UsageError
from harness.process import harness_command

_PASSED = ("XDG_STATE_HOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "NO_COLOR")
"""tmux starts a pane with its server's environment, so these are passed explicitly."""


def split(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Open `harness watch WORDS` in a new pane and return its tmux id.

    Raises UsageError outside tmux.
    """
    if not environ.get("TMUX"):
        raise UsageError(
            "This terminal is not a tmux pane: TMUX is not set.",
            hint="Start tmux first, or run `harness watch` in another terminal.",
            code="no_tmux",
        )
    variables = [f"{name}={environ[name]}" for name in _PASSED if name in environ]
    command = ["/usr/bin/env", *variables, *harness_command("watch", *words)]
    where = ["-t", environ["TMUX_PANE"]] if environ.get("TMUX_PANE") else []
    size = ["-l", "45%"]
    answer = _tmux(
        ["split-window", "-h", "-d", "-P", "-F", "#{pane_id}", *size, *where, shlex.join(command)],
        environ,
    )
    return answer.strip()


@contextlib.contextmanager
def watched_beside(project: Path, environ: Mapping[str, str], *, wanted: bool) -> Iterator[None]:
    """Inside tmux, show the project's runs in a pane while the block runs.

    Without tmux, or when tmux refuses, does nothing: a run must not depend on its dashboard.
    """
    if not wanted or not environ.get("TMUX"):
        yield
        return
    pane = None
    try:
        pane = split(["--follow", "--project", str(project.resolve())], environ)
    except UsageError as error:
        tell(f"no dashboard: {error.message}")
    try:
        yield
    finally:
        if pane is not None:
            with contextlib.suppress(UsageError):  # the person closed it
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
