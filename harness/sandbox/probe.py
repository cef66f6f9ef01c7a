"""Try, inside a sandbox, what must fail there, and one thing that must work. Self-contained:
`python -I -S probe.py SPEC`.

SPEC is JSON: `granted` (a file to read), `secret` (a file that was not granted), `outside` (a file
to make where nothing was granted), `port` (a listening loopback port), and for a sandbox with
namespaces of its own `socket` (a listening Unix socket) and `process` ([pid, start] of the process
outside), else null. Prints {"granted": its text or null, "through": what was possible}.
"""

import contextlib
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path


def read(path: str) -> str:
    with Path(path).open(encoding="utf-8") as stream:
        return stream.read()


def write(path: str) -> None:
    with Path(path).open("w", encoding="utf-8") as stream:
        stream.write("written")


def connect(family: socket.AddressFamily, address: tuple[str, int] | str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.settimeout(5)
        end.connect(address)


def see(process: list[str]) -> None:
    """Raises OSError unless this very process is visible. Its number alone says nothing: inside,
    the numbers are others."""
    pid, start = process
    if read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19] != start:
        raise OSError(pid)


def main() -> int:
    spec = json.loads(sys.argv[1])
    attempts: list[tuple[str, Callable[[], object]]] = [
        ("read a file that was not granted", lambda: read(spec["secret"])),
        ("write outside what was granted", lambda: write(spec["outside"])),
        (
            "connect to a port of this machine",
            lambda: connect(socket.AF_INET, ("127.0.0.1", spec["port"])),
        ),
    ]
    if spec["socket"]:
        attempts += [
            ("connect to a Unix socket outside", lambda: connect(socket.AF_UNIX, spec["socket"])),
            ("see the process that started it", lambda: see(spec["process"])),
        ]
    through = []
    for what, attempt in attempts:
        with contextlib.suppress(OSError, IndexError):
            attempt()
            through.append(what)
    granted = None
    with contextlib.suppress(OSError):
        granted = read(spec["granted"])
    sys.stdout.write(json.dumps({"granted": granted, "through": through}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
