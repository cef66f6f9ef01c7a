"""A PostgreSQL server of this machine's programs, for the tests that need one: in a temporary
folder, on a Unix socket only."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.domain.team_ledger import TeamLedger, schema_of

_USERS = ("postgres", "nobody")  # initdb refuses root
_PATIENCE = 60.0


def programs() -> Path | None:
    """The newest folder with initdb and postgres in it."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    whole = (one for one in folders if (one / "initdb").exists() and (one / "postgres").exists())
    return next(whole, None)


def require_programs() -> Path:
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed here (initdb, postgres)")
    return folder


class Postgres:
    """One cluster; `start`, `kill` and `start` again keep its data."""

    def __init__(self, folder: Path, bin_: Path) -> None:
        self._bin, self.folder, self.data = bin_, folder, folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(mode=0o755)
        self._user = next(user for user in _USERS if _known(user)) if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(folder, self._user)
        words = ["-D", self.data, "-U", "harness", "-A", "trust", "-E", "UTF8", "--locale=C"]
        self._run("initdb", *words, "-N")

    def url(self, user: str = "harness", database: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def place(self, folder: Path, user: str = "harness") -> TeamLedger:
        """A schema for what the tests keep in `folder`."""
        return TeamLedger(self.url(user), schema_of(f"{folder}"), folder)

    def start(self) -> None:
        words = ["-D", self.data, "-k", self.folder, "-c", "listen_addresses="]
        words += ["-c", "max_connections=60", "-c", "shared_buffers=32MB"]
        # in its own folder: what a killed server leaves goes with that
        words += ["-c", "dynamic_shared_memory_type=mmap"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                cwd=self.folder,
                start_new_session=True,
            )
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < end, "the server did not start in time"
            time.sleep(0.02)

    def _answers(self) -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.sql("SELECT 1")
            return True
        return False

    def sql(self, text: str, user: str = "harness") -> str:
        words = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.url(user)]
        done = subprocess.run(
            words, input=text, text=True, capture_output=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def kill(self) -> None:
        """kill -9 of the server, which is all that a power cut leaves of it."""
        if self._process is None:
            return
        # Its children lead sessions of their own, and end when they see that it is gone; a new
        # server waits for them.
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """At once, without a checkpoint."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=_PATIENCE)
            self._process = None

    def _run(self, program: str, *words: object) -> None:
        subprocess.run(
            [self._bin / program, *map(str, words)],
            check=True,
            capture_output=True,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
            cwd=self.folder,
            timeout=120,
        )


def _known(user: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    bin_ = require_programs()
    # Short: a Unix socket's path has 107 characters. In memory: each schema is a hundred files,
    # which the server syncs.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pg-", dir=memory, ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        server = Postgres(Path(name) / "s", bin_)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running() as server:
        yield server
