"""Confine this process with Landlock, then become the command. Self-contained, standard library
only: `python -I -S landlock_exec.py SPEC COMMAND ...`, or without arguments to print the kernel's
Landlock ABI (0: none).

SPEC is JSON: `read_only`, `writable` and `devices` are lists of existing paths, `held` has device
and inode of those that may have been exchanged since, `port` is the one TCP port that may be
connected to, or null; `network` true leaves TCP alone. Everything else in the
file system can be neither read nor written, TCP neither bound nor connected. Capabilities are given
up as well, so that root is not above these rules. Exit status 125: the rules could not be set up
(nothing was run); 127: the command cannot be started.

Source: linux/landlock.h and Documentation/userspace-api/landlock.rst; the system call numbers are
the same on every architecture.
"""

import ctypes
import errno
import json
import os
import stat
import struct
import sys

MINIMUM_ABI = 4  # Linux 6.7: below 3 truncate() is free, below 4 TCP is
CREATE, ADD_RULE, RESTRICT = 444, 445, 446
ASK_VERSION, PATH_BENEATH, NET_PORT = 1, 1, 2
FS_RIGHTS = {4: (1 << 15) - 1, 5: (1 << 16) - 1}  # from ABI 5 on: ioctl on devices
READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read a file, list a directory
# What a rule on a file may hold; the kernel refuses a rule with a right of folders.
FILE_RIGHTS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2  # from ABI 6 on
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 24, 47, 4
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def kernel_abi() -> int:
    """0 where the kernel has no Landlock or it is switched off."""
    return max(0, int(libc.syscall(CREATE, None, ctypes.c_size_t(0), ASK_VERSION)))


def check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def add_path(ruleset: int, path: str, rights: int, held: list[int] | None = None) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if held is not None and [found.st_dev, found.st_ino] != held:
            raise OSError(errno.ESTALE, f"{path} was exchanged before it was granted")
        if not stat.S_ISDIR(found.st_mode):
            rights &= FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor))
        check(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0), path)
    finally:
        os.close(descriptor)


def handed_terminals() -> list[str]:
    """Those of the standard streams: a program may open by name what it holds already."""
    return [f"/proc/self/fd/{number}" for number in range(3) if os.isatty(number)]


def give_up_capabilities() -> None:
    """Also from the bounding set, so that a program started by root does not get them back."""
    if os.geteuid() == 0:
        for capability in range(64):
            libc.prctl(
                PR_CAPBSET_DROP, capability, 0, 0, 0
            )  # beyond the kernel's last one: EINVAL
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0))
    check(libc.capset(header, ctypes.create_string_buffer(24)), "capset")


def confine(
    spec: dict[str, list[str]],
    port: int | None,
    *,
    network: bool = False,
    held: dict[str, list[int]] | None = None,
) -> None:
    abi = kernel_abi()
    if abi < MINIMUM_ABI:
        raise OSError(
            f"the kernel's Landlock ABI is {abi}; {MINIMUM_ABI} (Linux 6.7) or newer is needed"
        )
    everything = FS_RIGHTS[min(abi, 5)]
    scope = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if abi >= 6 else 0
    # The scope, the last 8 bytes, exists from ABI 6 on.
    size = 24 if abi >= 6 else 16
    ports = 0 if network else BIND_TCP | CONNECT_TCP
    attributes = struct.pack("=QQQ", everything, ports, scope)[:size]
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    ruleset = check(
        libc.syscall(CREATE, buffer, ctypes.c_size_t(len(attributes)), 0),
        "landlock_create_ruleset",
    )
    for name, rights in (("read_only", READ), ("writable", everything), ("devices", everything)):
        for path in spec[name]:
            add_path(ruleset, path, rights & everything, (held or {}).get(path))
    for path in handed_terminals():
        add_path(ruleset, path, FILE_RIGHTS & everything)
    if port is not None:
        rule = ctypes.create_string_buffer(struct.pack("=QQ", CONNECT_TCP, port))
        check(libc.syscall(ADD_RULE, ruleset, NET_PORT, rule, 0), f"TCP port {port}")
    # Without it only a privileged process may restrict itself: a setuid program would get out.
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    check(libc.syscall(RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
    give_up_capabilities()


def main() -> int:
    if len(sys.argv) == 1:
        sys.stdout.write(f"{kernel_abi()}\n")
        return 0
    spec, argv = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        port, network, held = (spec.pop(name) for name in ("port", "network", "held"))
        confine(spec, port, network=network, held=held)
    except OSError as error:
        sys.stderr.write(f"harness sandbox: Landlock cannot be set up: {error}\n")
        return 125
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"harness sandbox: {argv[0]} cannot be started: {error.strerror}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main())
