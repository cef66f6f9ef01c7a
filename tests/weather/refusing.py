"""Ends in the command it is called with, in a process whose system calls of some kinds are refused,
as a network disk without locks, or a disk whose quota is spent, refuses them.

    python refusing.py no-locks|no-quota COMMAND WORD ...

Linux on x86-64 or ARM64: a seccomp filter, which needs no rights and which children inherit.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_CALLS = {"x86_64": {"flock": 73, "fcntl": 72, "pwrite64": 18}}
_CALLS["aarch64"] = {"flock": 32, "fcntl": 25, "pwrite64": 68}
WORKS = sys.platform == "linux" and platform.machine() in _CALLS
_LOCKS = (5, 6, 7, 36, 37, 38)
"""fcntl's commands F_GETLK, F_SETLK, F_SETLKW and the same of open file descriptions."""
_LOAD, _EQUAL, _ANSWER = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000


def program(what: str) -> list[tuple[int, int, int, int]]:
    """Of the classic packet filter: (operation, jump where true, where false, operand). The
    number of the call stands at 0, its second argument at 24."""
    calls = _CALLS[platform.machine()]
    if what == "no-quota":  # SQLite writes by pwrite64, Python's files do not
        answer = _REFUSE | errno.EDQUOT
        return [
            (_LOAD, 0, 0, 0),
            (_EQUAL, 0, 1, calls["pwrite64"]),
            (_ANSWER, 0, 0, answer),
            (_ANSWER, 0, 0, _ALLOW),
        ]
    answer = _REFUSE | errno.ENOLCK
    asked = [(_EQUAL, len(_LOCKS) - place, 0, number) for place, number in enumerate(_LOCKS)]
    return [
        (_LOAD, 0, 0, 0),
        (_EQUAL, len(_LOCKS) + 3, 0, calls["flock"]),
        (_EQUAL, 0, len(_LOCKS) + 1, calls["fcntl"]),
        (_LOAD, 0, 0, 24),
        *asked,
        (_ANSWER, 0, 0, _ALLOW),
        (_ANSWER, 0, 0, answer),
    ]


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def refuse(what: str) -> None:
    packed = b"".join(struct.pack("=HBBI", *line) for line in program(what))
    code = ctypes.create_string_buffer(packed, len(packed))
    given = _Filter(len(packed) // 8, ctypes.cast(code, ctypes.c_void_p).value)
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    for words in (
        (no_new_privileges, 1, 0, 0, 0),
        (seccomp, by_filter, ctypes.byref(given), 0, 0),
    ):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
