"""Run one command so that nothing of it outlives its caller. Self-contained: `python -I -S front.py
SPEC COMMAND ...`.

SPEC is JSON: `grace` (seconds between a passed-on TERM and KILL), `memory` (bytes or null:
RLIMIT_DATA of each process, because RLIMIT_AS counts address space that PyTorch only reserves),
`gateway` (TCP port or null).

Three processes: the front, whose pid the caller knows; the guardian, which adopts every orphan of
the command (subreaper) and ends it; the command, in a session of its own, with descriptors 0 to 2
only. TERM, INT, HUP and QUIT sent to the front reach all processes of the command but bwrap's
helpers. When the command ends, what it left behind is killed. When the front is killed or loses its
parent, everything is killed. Exit status: the command's, 128 + n after signal n, 127 when it cannot
be started.

With `gateway`, the command's end of a socket pair is descriptor 3: gateway_listen.py sends a
listening socket of the sandboxed network namespace through it, and the guardian joins what connects
there to 127.0.0.1:gateway outside.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import time

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
END_NOW = signal.SIGUSR1
LINUX = sys.platform.startswith("linux")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GATEWAY_DESCRIPTOR = 3
POLL_S = 0.5


def control(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def listen(signals: tuple[signal.Signals, ...]) -> int:
    """A descriptor from which the numbers of arrived signals are read, one byte each."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def arrived(reader: int) -> bytes:
    ready, _, _ = select.select([reader], [], [], POLL_S)
    return os.read(reader, 256) if ready else b""


def exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def content(path: str) -> str:
    """Its first part. Every sandboxed command waits for the imports above: pathlib is too slow."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def parents() -> dict[int, tuple[int, str]]:
    """pid -> (parent's pid, name) of every visible process; empty outside Linux."""
    table = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                text = content(f"/proc/{name}/stat")
                # `pid (name) state parent ...`; the name may hold spaces and brackets itself.
                head, _, rest = text.rpartition(")")
                table[int(name)] = (int(rest.split()[1]), head.partition("(")[2])
    return table


def descendants() -> list[tuple[int, str]]:
    """(pid, name) of everything below this process, parents first."""
    table = parents()
    processes: list[tuple[int, str]] = []
    level = {os.getpid()}
    while level:
        below = [(pid, name) for pid, (parent, name) in table.items() if parent in level]
        processes += below
        level = {pid for pid, _ in below}
    return processes


def send(number: int, pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def pass_on(number: int, command: int) -> None:
    """Send to all processes of the command."""
    # Not to bwrap: it would kill the command instead of passing the signal on.
    pids = [pid for pid, name in descendants() if name != "bwrap"] if LINUX else []
    if pids:
        send(number, pids)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(command, number)


def kill_rest(command: int, seconds: float = 10.0) -> None:
    """Kill until no descendant is left, or for `seconds`: one may hang in the kernel."""
    end = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command, signal.SIGKILL)
    while time.monotonic() < end:
        # Repeat until none is left: a process may fork between the listing and the signal.
        send(signal.SIGKILL, [pid for pid, _ in descendants()])
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def start(argv: list[str], memory: int | None, gateway: socket.socket | None) -> None:
    """In the child: become the command. Returns only when that fails."""
    os.setsid()
    # If the guardian is killed, the kernel kills the command; nobody else would.
    control(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    for number in (*PASSED_ON, END_NOW, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        # Only root may raise a hard limit.
        memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    kept = 3
    if gateway is not None:
        os.dup2(gateway.fileno(), GATEWAY_DESCRIPTOR)
        kept = 4
    os.closerange(kept, max(kept, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"harness sandbox: {argv[0]} cannot be started: {error.strerror}\n".encode())


def join(left: socket.socket, right: socket.socket) -> None:
    """Copy one direction until it ends, then tell the other side so."""
    with contextlib.suppress(OSError):
        while block := left.recv(65536):
            right.sendall(block)
    with contextlib.suppress(OSError):
        right.shutdown(socket.SHUT_WR)


def serve_gateway(pair: socket.socket, port: int) -> None:
    """Join each connection made in the sandbox to the gateway outside."""
    _, descriptors, _, _ = socket.recv_fds(pair, 1, 1)
    if not descriptors:
        return
    listener = socket.socket(fileno=descriptors[0])
    while True:
        inside, _ = listener.accept()
        try:
            outside = socket.create_connection(("127.0.0.1", port), timeout=10)
        except OSError:
            inside.close()
            continue
        outside.settimeout(None)
        for left, right in ((inside, outside), (outside, inside)):
            threading.Thread(target=join, args=(left, right), daemon=True).start()


def guard(spec: dict[str, int | float | None], argv: list[str], front: int) -> int:
    """The guardian: start the command, pass signals on, leave nothing running."""
    # Out of the front's process group: a KILL to that group must not take the guardian along, which
    # ends the command and its orphans then.
    os.setsid()
    reader = listen((*PASSED_ON, END_NOW, signal.SIGCHLD))
    # A process that leaves its parent becomes a child of the guardian, so it stays a descendant.
    control(PR_SET_CHILD_SUBREAPER, 1)
    control(PR_SET_PDEATHSIG, END_NOW)
    port = spec["gateway"]
    ours, theirs = socket.socketpair() if port is not None else (None, None)
    command = os.fork()
    if command == 0:
        start(argv, None if spec["memory"] is None else int(spec["memory"]), theirs)
        os._exit(127)
    if ours is not None and theirs is not None and port is not None:
        theirs.close()
        threading.Thread(target=serve_gateway, args=(ours, int(port)), daemon=True).start()
    status = watch(reader, command, front, float(spec["grace"] or 0))
    kill_rest(command)
    return status


def watch(reader: int, command: int, front: int, grace: float) -> int:
    """Until the command has ended by itself or by what was passed on."""
    deadline: float | None = None
    while True:
        numbers = arrived(reader)
        for number in numbers:
            if number in PASSED_ON:
                deadline = deadline or time.monotonic() + grace
                pass_on(number, command)
        while True:
            # No ECHILD: the command is there until this loop has waited for it.
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == command:
                return exit_code(status)
            if pid == 0:
                break
        # The parent is compared as well: PDEATHSIG is lost when the front dies before it is set,
        # and it does not exist outside Linux.
        late = deadline is not None and time.monotonic() > deadline
        if late or END_NOW in numbers or os.getppid() != front:
            kill_rest(command)
            return 128 + signal.SIGKILL


def main() -> int:
    spec, argv = json.loads(sys.argv[1]), sys.argv[2:]
    parent, front = os.getppid(), os.getpid()
    reader = listen((*PASSED_ON, signal.SIGCHLD))
    guardian = os.fork()
    if guardian == 0:
        status = 127
        try:
            status = guard(spec, argv, front)
        finally:
            os._exit(status)
    while True:
        for number in arrived(reader):
            if number in PASSED_ON:
                send(number, [guardian])
        pid, status = os.waitpid(guardian, os.WNOHANG)
        if pid:
            return exit_code(status)
        if os.getppid() != parent:
            return 128 + signal.SIGHUP  # the guardian sees us go and kills the rest


if __name__ == "__main__":
    os._exit(main())
