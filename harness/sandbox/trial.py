"""Whether a sandbox confines: it is believed after it kept a program from what must fail."""

import contextlib
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.domain.sandbox import (
    Completed,
    Confinement,
)
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.sandbox.behind_front import (
    FrontedSandbox,
    program,
)

_SECONDS = 20.0


def fault(sandbox: FrontedSandbox) -> str | None:
    """What is wrong with it, found by one start of probe.py; None when it confines.

    The answer is not kept beyond this process: whatever could be kept where an agent writes could
    be forged there, and one start is cheap.
    """
    with tempfile.TemporaryDirectory(prefix="harness-probe-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        try:
            return _fault(sandbox, place)
        except SandboxError as error:
            return error.message
        except OSError as error:
            return f"it could not be tried: {error}"


def _fault(sandbox: FrontedSandbox, place: Path) -> str | None:
    granted, hidden, word = place / "granted", place / "hidden", secrets.token_hex(16)
    for folder in (granted, hidden):
        folder.mkdir()
        (folder / "text").write_text(word, "utf-8")
    outside = hidden / "written"
    apart = sandbox.kind is SandboxKind.BWRAP
    with _listening(socket.AF_INET, ("127.0.0.1", 0)) as loopback, _in_folder(hidden) as unix:
        spec = {
            "granted": str(granted / "text"),
            "secret": str(hidden / "text"),
            "outside": str(outside),
            "port": loopback.getsockname()[1],
            # Landlock has no namespaces: these two are in reach there, as landlock.py says.
            "socket": str(hidden / "socket") if apart else None,
            "process": _ourselves() if apart else None,
        }
        done = sandbox.run(
            [*program("probe.py"), json.dumps(spec)],
            confinement=Confinement(read_only=(granted,)),
            cwd=granted,
            environment={},
            timeout_s=_SECONDS,
        )
        # Seen from outside as well, whatever the answer says.
        seen = {
            "write outside what was granted": outside.exists(),
            "connect to a port of this machine": _was_reached(loopback),
            "connect to a Unix socket outside": apart and _was_reached(unix),
        }
    arrived = [what for what, happened in seen.items() if happened]
    return _judged(done, word, arrived)


def _judged(done: Completed, word: str, arrived: list[str]) -> str | None:
    try:
        answer = json.loads(done.stdout)
        read, through = answer["granted"], [str(what) for what in answer["through"]]
    except (ValueError, KeyError, TypeError):
        read, through = None, []
        if not arrived:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return f"it fails here: {last[-1] if last else f'exit status {done.exit_code}'}"
    if through := list(dict.fromkeys([*through, *arrived])):
        return f"it does not confine: it let a program {', '.join(through)}"
    return None if read == word else "it fails here: a granted file could not be read"


def _ourselves() -> list[str]:
    """The pid of this process and the time of its start, as /proc has them."""
    text = Path("/proc/self/stat").read_text("utf-8", "replace")
    return [str(os.getpid()), text.rpartition(")")[2].split()[19]]


@contextlib.contextmanager
def _listening(
    family: socket.AddressFamily, address: tuple[str, int] | str
) -> Iterator[socket.socket]:
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()
        listener.setblocking(False)
        yield listener


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[socket.socket]:
    """A listening Unix socket in it."""
    # By a descriptor of the folder: a socket's own path has at most about 100 bytes.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _listening(socket.AF_UNIX, f"/proc/self/fd/{descriptor}/socket") as listener:
            yield listener
    finally:
        os.close(descriptor)


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except OSError:
        return False
    return True
