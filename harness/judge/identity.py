"""Who started a command: proven by a secret of the state directory, where no agent reads.

A judge's server writes the hash of a random token to `<state>/judge/<pid>.json` and hands the
token to its children in a file without a name, whose descriptor HARNESS_CALLER_FD names. The
variables alone prove nothing: whoever sets them has no token.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import tempfile
import threading
import time
from collections.abc import (
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any

import psutil

from harness.domain.late import Late, dataclass
from harness.domain.statuses import SandboxKind
from harness.files import (
    atomic_write,
    pretty_json,
    sha256_bytes,
)
from harness.process import (
    boot_id,
    identity,
    is_same_alive,
)

CALLER = "HARNESS_CALLER"
"""What the server says of its children: `isolated:bwrap`."""
DESCRIPTOR = "HARNESS_CALLER_FD"
ISOLATED, DRIVER = "isolated", "driver"
_FOLDER = "judge"
_LONGEST = 1000
_LAST_SECONDS = 60.0
"""What a child may take to close its run when its server is gone."""


@dataclass(frozen=True, kw_only=True)
class Announced(Late):
    """A living server, as its file in the state directory names it."""

    kind: str
    sandbox: SandboxKind
    server: Mapping[str, Any]
    """Its process, as process.identity gives it."""


class Announcement:
    """The file of a server that lives, and the token for its children. End it with `withdraw`."""

    def __init__(self, path: Path, token: str, kind: str, sandbox: SandboxKind) -> None:
        self._path, self._kind, self.sandbox = path, kind, sandbox
        # Without a name it cannot be opened by one, and it goes with the last who holds it. Every
        # reader starts at its beginning, so a child can hand it on to children of its own.
        # A child of a session ends with it; a supervisor of the loop outlives its driver.
        me = identity()
        server = {"server": me, "starter": me} if kind == ISOLATED else {"starter": me}
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(json.dumps({"token": token, **server}).encode("ascii"))
            file.flush()
            self.descriptor = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY)

    @property
    def environment(self) -> dict[str, str]:
        """For a child that inherits `descriptor`."""
        words = f"{self._kind}:{self.sandbox.value}"
        return {CALLER: words, DESCRIPTOR: str(self.descriptor)}

    def withdraw(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self.descriptor)


def announce(
    state: Path, *, kind: str, sandbox: SandboxKind, more: Mapping[str, Any] | None = None
) -> Announcement:
    """Make this process a server whose children are known by its token; `more` is kept beside."""
    folder = state / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    token = secrets.token_urlsafe(32)
    me = identity()
    about = {
        **(more or {}),
        "token": sha256_bytes(token.encode("ascii")),
        "kind": kind,
        "sandbox": sandbox.value,
        "server": me,
    }
    path = folder / f"{me['pid']}.json"
    atomic_write(path, pretty_json(about), durable=False, mode=0o600)
    return Announcement(path, token, kind, sandbox)


def verify(environment: Mapping[str, str], state: Path) -> Announced | None:
    """The living server that handed its token to us, or to the process that started us; None
    without one, whatever the variables say."""
    handed = _handed(environment)
    if handed is None:
        return None
    digest = sha256_bytes(str(handed.get("token")).encode("utf-8"))
    for _, about in announcements(state):
        if secrets.compare_digest(str(about.get("token")), digest) and _lives(about):
            return Announced(
                kind=str(about["kind"]),
                sandbox=SandboxKind(about["sandbox"]),
                server=about["server"],
            )
    return None


def is_orphan(environment: Mapping[str, str], state: Path) -> bool:
    """Whether who handed us its token is seen to live no more. Its file in the state directory may
    be gone while it lives: a host that shares the directory does not see its process."""
    handed = _handed(environment)
    if handed is None or verify(environment, state) is not None:
        return False
    starter = handed.get("starter")
    if not isinstance(starter, dict) or starter.get("boot") != boot_id():
        return False
    return not is_same_alive(starter)


def announcements(state: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What servers wrote, also those that were killed; a damaged file is passed over."""
    for path in sorted((state / _FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            about = json.loads(path.read_text("utf-8"))
            if isinstance(about, dict) and isinstance(about.get("server"), dict):
                yield path, about


def living(state: Path) -> list[dict[str, Any]]:
    """What the servers wrote that live."""
    return [about for _, about in announcements(state) if _lives(about)]


def forget_the_dead(state: Path) -> list[dict[str, Any]]:
    """Remove the files of servers that no longer live; returns what they said."""
    dead = [(path, about) for path, about in announcements(state) if not _lives(about)]
    for path, _ in dead:
        path.unlink(missing_ok=True)
    return [about for _, about in dead]


def handed_on(environment: Mapping[str, str]) -> tuple[dict[str, str], Sequence[int]]:
    """(variables, descriptors) by which a child of ours is known as we are. Without a token only
    what is said of us, which proves nothing; empty for others."""
    kept = {name: environment[name] for name in (CALLER, DESCRIPTOR) if name in environment}
    if _handed(environment) is None:
        kept.pop(DESCRIPTOR, None)
        return kept, ()
    return kept, (int(environment[DESCRIPTOR]),)


def end_with_server(environment: Mapping[str, str]) -> None:
    """Interrupt this process, as Ctrl-C does, when the server that it came from ends in whatever
    way."""
    handed = _handed(environment)
    if handed is not None and isinstance(handed.get("server"), dict):
        threading.Thread(target=_follow, args=(handed["server"],), daemon=True).start()


def end_with(pid: int) -> threading.Event:
    """End this process, as TERM does, when process `pid` ends, also where it has ended already. The
    event says that this was why."""
    server: dict[str, Any] = {"pid": pid}
    with contextlib.suppress(psutil.Error):
        server = identity(pid)
    # TERM: below a worker of Ray an interrupt is ignored.
    ended = threading.Event()
    words = (server, signal.SIGTERM, ended)
    threading.Thread(target=_follow, args=words, daemon=True).start()
    return ended


def _follow(
    server: dict[str, Any],
    number: int = signal.SIGINT,
    ended: threading.Event | None = None,
) -> None:
    with contextlib.suppress(OSError, KeyError):
        process = os.pidfd_open(int(server["pid"]))
        try:
            if is_same_alive(server):
                select.select([process], [], [])
        finally:
            os.close(process)
    if ended is not None:
        ended.set()
    os.kill(os.getpid(), number)
    time.sleep(_LAST_SECONDS)
    os._exit(130)


def _lives(about: Mapping[str, Any]) -> bool:
    server = about["server"]
    return isinstance(server, dict) and is_same_alive(server)


def _handed(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """What stands in the file that we were handed; None without one."""
    named = environment.get(DESCRIPTOR, "")
    if not named.isdecimal():
        return None
    with contextlib.suppress(OSError, OverflowError, ValueError):
        value = json.loads(os.pread(int(named), _LONGEST, 0))
        return value if isinstance(value, dict) else None
    return None
