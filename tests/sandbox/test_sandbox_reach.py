"""What a sandboxed process tries in order to reach the vault, the ledger and the outside; each must
fail."""

import os
import socket
import sys
import threading

import pytest

from harness.sandbox.landlock_exec import kernel_abi

SECRET = b"held-out label 4711"


def leaks(completed) -> bool:
    return SECRET in completed.stdout or SECRET in completed.stderr


READERS = {
    "cat": "cat {file}",
    "open": "{python} -c \"print(open('{file}').read())\"",
    "dots": "cat ../state/vault/held_out.csv",
    "proc self root": "cat /proc/self/root{file}",
    "proc 1 root": "cat /proc/1/root{file}",
    "proc self cwd": "cat /proc/self/cwd/../state/vault/held_out.csv",
    "outside process root": "cat /proc/{pid}/root{file}",
    "outside process cwd": "cat /proc/{pid}/cwd{file}",
    "symbolic link": "ln -s {file} link; cat link",
    "folder link": "ln -s {state} gateway; cat gateway/vault/held_out.csv",
    "hard link": "ln {file} copy; cat copy",
    "rename": "mv {file} taken; cat taken",
    "copy": "cp -r {state} taken; cat taken/vault/held_out.csv",
    "bind mount": "mkdir here; mount --bind {state} here; cat here/vault/held_out.csv",
    "own namespace": "unshare -rm sh -c 'mount --bind {state} . ; cat vault/held_out.csv'",
    "umount": "umount -l {state}; umount -l /tmp; cat {file}",
    "namespace umount": "unshare -Um sh -c 'umount -l {state}; umount -l /tmp; cat {file}'",
    "nsenter": "nsenter -t {pid} -m cat {file}; nsenter -t 1 -m cat {file}",
    "chroot": "chroot /proc/{pid}/root cat {file}; chroot /proc/1/root cat {file}",
    "disk": "mknod disk b $(stat -c '%Hd %Ld' {state}) && head -c 1 disk && echo {secret}",
}


@pytest.mark.parametrize("attempt", READERS)
def test_the_vault_cannot_be_read(sandboxed, outsider, attempt):
    script = READERS[attempt].format(
        file=sandboxed.vault_file,
        state=sandboxed.state,
        pid=outsider,
        python=sys.executable,
        secret=SECRET.decode(),
    )
    completed = sandboxed.sh(script)
    assert not leaks(completed)
    assert completed.stderr, "it should have been told that this is not possible"
    assert sandboxed.vault_file.read_bytes() == SECRET


@pytest.mark.parametrize(
    "attempt", ["cat", "open", "dots", "proc self root", "symbolic link", "hard link"]
)
def test_the_same_attempts_succeed_without_a_sandbox(unsandboxed, outsider, attempt):
    script = READERS[attempt].format(
        file=unsandboxed.vault_file,
        state=unsandboxed.state,
        pid=outsider,
        python=sys.executable,
        secret="",
    )
    assert leaks(unsandboxed.sh(script))


def test_a_child_left_behind_cannot_read_it_either(sandboxed):
    script = (
        "import os, sys, time\n"
        "if os.fork(): sys.exit()\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "time.sleep(0.3)\n"
        f"open('late', 'w').write(open({str(sandboxed.vault_file)!r}).read())\n"
    )
    sandboxed.python(script)
    assert (
        not (sandboxed.project / "late").exists()
        or (sandboxed.project / "late").read_bytes() == b""
    )


WRITERS = {
    "shell": "echo x >> {ledger}",
    "truncate": "{python} -c \"import os; os.truncate('{ledger}', 0)\"",
    "open for writing": "{python} -c \"open('{ledger}', 'r+b').write(b'x')\"",
    "remove": "rm -f {ledger}; test ! -e {ledger} && echo unseen >&2",
    "replace": "echo x > new; mv -f new {ledger}",
    "proc self root": "echo x > /proc/self/root{ledger}",
    "link": "ln -s {ledger} l; echo x > l",
    "new file": "echo x > {state}/new",
}


@pytest.mark.parametrize("attempt", WRITERS)
def test_the_ledger_cannot_be_written(sandboxed, attempt):
    completed = sandboxed.sh(
        WRITERS[attempt].format(
            ledger=sandboxed.ledger, state=sandboxed.state, python=sys.executable
        )
    )
    assert sandboxed.ledger.read_bytes() == b"ledger"
    assert not (sandboxed.state / "new").exists()
    assert completed.stderr


def test_the_ledger_can_be_written_without_a_sandbox(unsandboxed):
    unsandboxed.sh(WRITERS["shell"].format(ledger=unsandboxed.ledger))
    assert unsandboxed.ledger.read_bytes() == b"ledgerx\n"


def test_the_environment_and_memory_of_an_outside_process_stay_closed(sandboxed, outsider):
    script = (
        "import ctypes, os\n"
        f"pid = {outsider}\n"
        "for name in ('environ', 'maps', 'mem', 'fd/0', 'auxv'):\n"
        "    path = f'/proc/{pid}/{name}'\n"
        "    try:\n"
        "        open(path, 'rb').read(1)\n"
        "        print('opened', name)\n"
        "    except OSError: pass\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print('ptrace', libc.ptrace(16, pid, 0, 0))\n"  # PTRACE_ATTACH
    )
    completed = sandboxed.python(script)
    assert completed.stdout == b"ptrace -1\n", completed


def test_an_outside_process_cannot_be_killed(sandboxed, outsider):
    if sandboxed.sandbox.kind == "landlock" and kernel_abi() < 6:
        pytest.skip("signals are confined from Landlock ABI 6 (Linux 6.12) on")
    completed = sandboxed.sh(f"kill -9 {outsider}; sleep 0.1")
    assert completed.stderr or completed.exit_code != 0
    os.kill(outsider, 0)


def test_there_are_no_capabilities(sandboxed):
    status = sandboxed.sh("cat /proc/self/status").stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == int(fields["CapInh"], 16) == 0
    assert fields["NoNewPrivs"] == "1"


def test_kernel_settings_cannot_be_written(sandboxed):
    names = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj")
    script = (  # opened only, never written: on success this would harm the machine
        "import os, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: os.close(os.open(name, os.O_WRONLY)); print('opened', name)\n"
        "    except OSError: pass\n"
    )
    completed = sandboxed.run(sys.executable, "-c", script, *names)
    assert (completed.exit_code, completed.stdout) == (0, b"")


def test_the_project_is_writable_and_python_works_in_it(sandboxed):
    completed = sandboxed.python(
        "import numpy, tempfile; open('made here', 'w').write(str(numpy.arange(3).sum()))"
    )
    assert (completed.exit_code, (sandboxed.project / "made here").read_text()) == (0, "3")


@pytest.fixture
def service():
    """A TCP service outside: it greets, and echoes what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello ")
                    while block := connection.recv(65536):
                        connection.sendall(block)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


TALK = (
    "import socket, sys\n"
    "s = socket.create_connection(('127.0.0.1', {port}), timeout=5)\n"
    "s.sendall(b'x' * 300_000); s.shutdown(socket.SHUT_WR)\n"
    "print(len(b''.join(iter(lambda: s.recv(65536), b''))))\n"
)


def test_tcp_reaches_nothing_without_a_gateway(sandboxed, service):
    completed = sandboxed.python(TALK.format(port=service))
    assert completed.exit_code == 1
    assert b"Refused" in completed.stderr or b"Permission" in completed.stderr


def test_tcp_reaches_the_gateway_and_only_the_gateway(sandboxed, service):
    through = sandboxed.python(
        TALK.format(port=service), confinement=sandboxed.confinement(gateway_port=service)
    )
    assert through.stdout == b"300006\n", through
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        past = sandboxed.python(
            TALK.format(port=port), confinement=sandboxed.confinement(gateway_port=service)
        )
    assert past.exit_code == 1
    assert b"Refused" in past.stderr or b"Permission" in past.stderr


def test_the_service_is_reached_without_a_sandbox(unsandboxed, service):
    assert unsandboxed.python(TALK.format(port=service)).stdout == b"300006\n"


def test_abstract_sockets_of_outside_processes_are_not_reached(sandboxed):
    if sandboxed.sandbox.kind == "landlock" and kernel_abi() < 6:
        pytest.skip("abstract sockets are confined from Landlock ABI 6 (Linux 6.12) on")
    name = f"\0harness-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        completed = sandboxed.python(
            f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        )
    assert completed.exit_code == 1
    assert b"Refused" in completed.stderr or b"permitted" in completed.stderr
