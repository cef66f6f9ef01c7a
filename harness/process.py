"""Processes of this machine: how we start; start, limit, kill with all below, identify."""

import contextlib
import functools
import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/run/current-system/sw/bin")
"""Where the programs lie that judging uses: git, bwrap, nvidia-smi."""
LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
HANDED_ON = ("PATH", *LOADER)
CARRIED = "HARNESS_COMMAND_"
"""HARNESS_COMMAND_PATH is the PATH of the commands that train and predict, and so on."""
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
MACHINE = (
    *THREADS,
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("NVIDIA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG"),
)
"""Variables that state a fact of the machine: no key, nothing that makes a program load code."""
OURS = ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "USER", "LOGNAME")
"""Where the state is, and whose."""
_SAME_START_S = 2.0
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.02


# Ourselves


def module_command(module: str, *words: str) -> list[str]:
    """The one way in which a module of ours is started in a process of its own."""
    # -I: no variable PYTHON*, no user site. -P, which -I implies, says why: `-m` looks into the
    # folder that it stands in, and a json.py planted there would run in place of Python's own.
    return [sys.executable, "-P", "-I", "-m", module, *words]


def harness_command(*words: str) -> list[str]:
    """`harness WORDS`, run by this interpreter and the package installed in it."""
    return module_command("harness", *words)


def judge_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """All that a process of ours gets which no agent may bend: a closed list of names, programs
    from the system's folders, no key. PATH and library folders of `inherited` are carried for the
    commands that train and predict, which domain.commands.passed_on gives back to them."""
    kept = {name: inherited[name] for name in (*MACHINE, *OURS) if name in inherited}
    return {**kept, "PATH": os.pathsep.join(SYSTEM_FOLDERS), **carried(inherited)}


def carried(inherited: Mapping[str, str]) -> dict[str, str]:
    """What a process of ours does not use itself and hands on, each under a name of its own."""
    found = {name: inherited.get(CARRIED + name, inherited.get(name)) for name in HANDED_ON}
    return {CARRIED + name: value for name, value in found.items() if value is not None}


@functools.cache
def system_program(name: str) -> str | None:
    """The absolute path of a program that nobody but root could have put there; else None."""
    places = (os.path.join(folder, name) for folder in SYSTEM_FOLDERS)
    return next((place for place in places if is_roots(place)), None)


def is_roots(path: str) -> bool:
    """Whether `path` leads to a program that is root's, in folders of root, and not ours to write;
    root itself may write everything, so then owner and permissions decide alone."""
    real = os.path.realpath(path)
    for place in (real, os.path.dirname(real), os.path.dirname(path)):
        try:
            status = os.stat(place)
        except OSError:
            return False
        writable = os.geteuid() != 0 and os.access(place, os.W_OK)
        if status.st_uid != 0 or status.st_mode & stat.S_IWOTH or writable:
            return False
    return os.access(real, os.X_OK)


# Identity


@functools.cache
def boot_id() -> str:
    """A name of this boot of the machine: after the next one, process ids are other processes'."""
    linux = Path("/proc/sys/kernel/random/boot_id")
    if linux.exists():
        return linux.read_text("ascii").strip()
    if sys.platform == "darwin":
        answer = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip()
    return f"booted-{int(psutil.boot_time())}"


def identity(pid: int | None = None) -> dict[str, Any]:
    """{pid, boot, started, booted} of a process, by default of this one, in seconds since 1970 as
    the clock stood then. Raises psutil.NoSuchProcess."""
    process = psutil.Process(pid)
    times = {"started": process.create_time(), "booted": psutil.boot_time()}
    return {"pid": process.pid, "boot": boot_id(), **times}


def is_same_alive(known: Mapping[str, Any]) -> bool:
    """Whether the process that had this identity still runs; a zombie does not."""
    return _same_process(known) is not None


def _same_process(known: Mapping[str, Any]) -> psutil.Process | None:
    pid = known.get("pid")
    if None in (pid, known.get("started")) or known.get("boot") != boot_id():
        return None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        same = abs(process.create_time() - _as_now(known)) <= _SAME_START_S
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def _as_now(known: Mapping[str, Any]) -> float:
    """When it started, by the clock of now: setting one moves the boot and all starts."""
    now: float = psutil.boot_time()
    return float(known.get("started") or 0.0) + now - float(known.get("booted") or now)


_ADOPTS = {"systemd", "launchd", "init"}
"""Processes to which one falls whose parent has ended."""


def may_come_from(known: Mapping[str, Any], began: float) -> bool:
    """Whether this process could be what `known`, which began at `began` where it does not say,
    left behind: on no terminal, as a person's is, and below nothing older, as a job of cron is,
    also one that it left there."""
    if known and known.get("boot") != boot_id():
        return False
    process = psutil.Process()
    try:
        above = [process, *process.parents()]
        while len(above) > 1 and (above[-1].pid <= 1 or above[-1].name() in _ADOPTS):
            above.pop()
        eldest = above[-1].create_time()
    except psutil.Error:
        eldest = process.create_time()
    since = _as_now(known) if known.get("started") else began
    # Starts are counted from the boot, which the kernel tells in whole seconds.
    return process.terminal() is None and eldest >= since - _SAME_START_S


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An environment variable that everything started with it inherits.

    A child may leave its parent, process group and session, but its first environment stays
    readable: the mark finds what a process tree no longer shows.
    """

    variable: str
    value: str
    hashed: bool = False
    """`value` is the SHA-256 of the variable's value, so a reader of it cannot forge the mark."""

    def processes(self) -> list[psutil.Process]:
        """Living processes that carry the mark."""
        marked = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                ours = self._is_on(process.environ().get(self.variable))
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    marked.append(process)
        return marked

    def kill_all(self, seconds: float = _KILL_SECONDS) -> int:
        """Kill all that carries the mark; returns how many are left after `seconds`."""
        deadline = time.monotonic() + seconds
        # Repeat until none is left: a dying process may fork.
        while left := self.processes():
            if time.monotonic() > deadline:
                return len(left)
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(_POLL_SECONDS)
        return 0

    def _is_on(self, value: str | None) -> bool:
        if value is None or not self.hashed:
            return value == self.value
        return hashlib.sha256(value.encode()).hexdigest() == self.value


# Start, limit, kill


@dataclass(frozen=True, kw_only=True)
class Finished:
    code: int
    """Negative after a signal, as subprocess has it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own; `environment` is all that it gets, beside the three
    standard streams and `descriptors`. Raises OSError."""
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=dict(environment),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=descriptors,
        # A session, and so a process group, of its own: a Ctrl-C meant for us does not reach it,
        # and one killpg reaches all of it that stayed in the group.
        start_new_session=True,
    )


class StoppedError(Exception):
    """Another thread asked this one to end what it runs."""


_ASKED: ContextVar[threading.Event | None] = ContextVar("asked", default=None)
_LOOK_S = 0.1


@contextlib.contextmanager
def stopping_at(asked: threading.Event) -> Iterator[None]:
    """What `run` starts in this thread meanwhile ends once `asked` is set, with all that it
    started; StoppedError is raised then."""
    token = _ASKED.set(asked)
    try:
        yield
    finally:
        _ASKED.reset(token)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """As `ended`. Raises StoppedError."""
    asked = _ASKED.get()
    if asked is None:
        return ended(process, seconds)
    limit = time.monotonic() + seconds
    while not asked.is_set():
        left = limit - time.monotonic()
        if ended(process, max(0.0, min(left, _LOOK_S))):
            return True
        if left <= 0:
            return False
    raise StoppedError


def ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ends within `seconds`."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the process group that `start` made."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def end_group(process: subprocess.Popen[bytes], *, grace: float = 0.0) -> None:
    """TERM to the group of a running process, KILL after `grace` seconds, at once without grace."""
    # Only while it runs: once it was waited for, its id may be another process's group.
    if grace > 0 and process.poll() is None:
        signal_group(process, signal.SIGTERM)
        ended(process, grace)
    if process.poll() is None:
        signal_group(process, signal.SIGKILL)
        process.wait()


def end_tree(known: Mapping[str, Any], mark: Mark) -> tuple[int, int]:
    """Kill what is left of a process that another process started: (found, still there)."""
    # Each way misses some: the tree a daemon whose parent is gone, the mark a child that was
    # started with another environment.
    root = _same_process(known)
    processes = {process.pid: process for process in mark.processes()}
    if root is not None:
        tree = [root]
        with contextlib.suppress(psutil.Error):
            tree += root.children(recursive=True)
        processes |= {process.pid: process for process in tree}
    for process in processes.values():
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(list(processes.values()), timeout=_KILL_SECONDS)
    return len(processes), mark.kill_all()


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    grace: float = 0.0,
    mark: Mark | None = None,
    stdin: bytes = b"",
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    most_bytes: int | None = None,
) -> Finished:
    """Run `argv` to its end or its limit, then kill its process group and all that carries `mark`.
    Raises OSError, and StoppedError below `stopping_at`.

    Args:
        grace: seconds between TERM and KILL at the limit.
        mark: put into its environment.
        most_bytes: more output than this, a stream, is read and dropped.
    """
    process = start(
        argv,
        cwd=cwd,
        environment=environment if mark is None else {**environment, mark.variable: mark.value},
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )
    # A thread for each pipe: a child that fills one pipe while we wait on another never ends.
    outputs = (bytearray(), bytearray())
    streams = zip((process.stdout, process.stderr), outputs, strict=True)
    threads = [
        threading.Thread(target=_read, args=(stream, kept, most_bytes), daemon=True)
        for stream, kept in streams
        if stream is not None
    ]
    if process.stdin is not None:
        threads.append(threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True))
    try:
        for thread in threads:
            thread.start()
        timed_out = not _ended(process, seconds)
    finally:
        end_group(process, grace=grace)
        signal_group(process, signal.SIGKILL)  # also what it left in its group
        if mark is not None:
            mark.kill_all()
    # A process that could not be killed may hold a pipe open for ever: do not wait for it.
    for thread in threads:
        thread.join(timeout=5)
    return Finished(
        code=process.returncode,
        stdout=bytes(outputs[0]),
        stderr=bytes(outputs[1]),
        timed_out=timed_out,
    )


def _read(stream: IO[bytes], kept: bytearray, most: int | None) -> None:
    with stream:
        while block := os.read(stream.fileno(), 1 << 16):
            kept += block if most is None else block[: most - len(kept)]


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), stream:
        stream.write(data)
