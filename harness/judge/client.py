"""`harness` inside the sandbox: what is asked goes to the judge outside, its answer comes back.

Self-contained, standard library only, Python 3.9 and newer: `python -I -S client.py WORDS`. It
decides nothing and knows no rule: whoever replaces it gains what a request may ask for, no more.

Over the socket go frames, both ways: a kind, a length and bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import sys
import threading
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST, STDIN, INTERRUPT = b"r", b"i", b"c"
"""From inside: what is asked; what it reads (an empty one ends it); Ctrl-C."""
STDOUT, STDERR, EXIT = b"o", b"e", b"x"
"""From outside; the last frame is EXIT, with the exit code in decimal."""
LARGEST = 1 << 20
"""Bytes of one frame."""
BLOCK = 1 << 16
SOCKET = "HARNESS_JUDGE"
"""The judge's socket; set for all that runs inside the sandbox."""
SESSION = "CLAUDE_CODE_SESSION_ID"
READS = "mcp", "-"
"""Words of a request that reads standard input."""
INTERRUPTED, FAILED = 130, 3
_HEAD = struct.Struct(">cI")


class BrokenFrame(Exception):
    """What came is no frame of ours."""


def send(place: socket.socket, kind: bytes, data: bytes = b"") -> None:
    """Raises OSError when the other side is gone."""
    place.sendall(_HEAD.pack(kind, len(data)) + data)


def receive(place: socket.socket) -> tuple[bytes, bytes] | None:
    """(kind, data) of the next frame; None when the other side is gone. Raises BrokenFrame."""
    head = _exactly(place, _HEAD.size)
    if head is None:
        return None
    kind, size = _HEAD.unpack(head)
    if size > LARGEST:
        raise BrokenFrame(f"a frame of {size} bytes; at most {LARGEST}")
    data = _exactly(place, size)
    return None if data is None else (kind, data)


def _exactly(place: socket.socket, size: int) -> bytes | None:
    blocks = []
    while size:
        try:
            block = place.recv(min(size, BLOCK))
        except OSError:
            return None
        if not block:
            return None
        blocks.append(block)
        size -= len(block)
    return b"".join(blocks)


def connect(path: str) -> socket.socket:
    """A connection to the judge. Raises OSError."""
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        place.connect(path)
    except OSError:
        place.close()
        raise
    return place


def ask(words: list[str], environment: Mapping[str, str]) -> int:
    """Ask for `harness WORDS`; returns its exit code."""
    try:
        words, text = _words(words)
    except OSError as error:
        return _fail(f"{error.filename} cannot be read: {error.strerror}.")
    try:
        place = connect(environment.get(SOCKET, ""))
    except OSError as error:
        return _fail(
            f"The judge of this session cannot be reached ({error.strerror}); it ends with the"
            " `harness claude` that started it."
        )
    with place:
        asked = {"argv": words, "cwd": os.getcwd(), "session": environment.get(SESSION, "")}
        with contextlib.suppress(OSError):  # the answer says why
            send(place, REQUEST, json.dumps(asked).encode("ascii"))
        if text is not None or any(word in words for word in READS):
            threading.Thread(target=_feed, args=(place, text), daemon=True).start()
        return _answer(place)


def _words(words: list[str]) -> tuple[list[str], bytes | None]:
    """(words, text): the file of a hand-off is read here, as whoever asks may read it."""
    for number, word in enumerate(words if words[:1] == ["handoff"] else ()):
        name, joined, value = word.partition("=")
        if name == "--file" and (joined or words[number + 1 :]):
            rest = words[number + (1 if joined else 2) :]
            text = Path(value if joined else words[number + 1]).read_bytes()
            return [*words[:number], *rest, "-"], text
    return words, None


def _feed(place: socket.socket, text: bytes | None) -> None:
    try:
        for start in range(0, len(text or b""), BLOCK):
            send(place, STDIN, (text or b"")[start : start + BLOCK])
        while text is None:
            block = os.read(0, BLOCK)
            if not block:
                break
            send(place, STDIN, block)
        send(place, STDIN)
    except OSError:
        pass  # the judge is gone; the answer says so


def _answer(place: socket.socket) -> int:
    interrupts = []

    def interrupt(_number: int, _frame: object) -> None:
        interrupts.append(1)
        if len(interrupts) > 2:
            os._exit(INTERRUPTED)
        send(place, INTERRUPT)

    signal.signal(signal.SIGINT, interrupt)
    while True:
        try:
            frame = receive(place)
        except BrokenFrame:
            frame = None
        if frame is None:
            return _fail("The judge of this session ended before it answered.")
        kind, data = frame
        if kind == EXIT:
            return int(data)
        _write(1 if kind == STDOUT else 2, data)


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        os._exit(0)  # the reader is gone; with the connection, what was asked is interrupted


def _fail(text: str) -> int:
    sys.stderr.write(f"harness: {text}\n")
    return FAILED


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1:], os.environ))
