"""The judge of one `harness claude`: answers requests from inside its sandbox, a child each.

The child is `harness VERB` with an environment of its own. It is an agent's, and knows so; that it
came through here it proves by a secret (identity.py). Nothing that a request says becomes a
variable, a program or an option of it but what requests.py lets pass.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import (
    UTC,
    datetime,
)
from pathlib import Path
from typing import (
    IO,
    Any,
)

from harness.clock import iso
from harness.domain.claude_folder import CONFIG_DIR
from harness.domain.commands import for_supervisors
from harness.domain.plain_text import (
    plain,
    plain_json,
)
from harness.errors import (
    HarnessError,
    RefusedError,
)
from harness.files import pretty_json
from harness.guard.policy.receipt import append_receipt
from harness.judge import client
from harness.judge.handed_files import copied
from harness.judge.handing import SESSION_ID, HandOffs
from harness.judge.identity import Announcement
from harness.judge.requests import (
    Request,
    read_request,
)
from harness.process import harness_command
from harness.settings import Settings

SESSION = client.SESSION
_MOST = 64
"""Requests at the same time."""
_FIRST_FRAME_SECONDS = 30.0
"""For whoever connected to say what it asks."""
_AGAIN_SECONDS = 0.2
_SILENT_SECONDS = 2.0
"""In which something comes of what an ended child wrote, if there is more of it."""
_PIPE = 1 << 20
"""No pipe holds more, by the kernel's default limit."""
_CLOSING_SECONDS = 40.0
"""For children to record how they ended, once the session has."""
_PEER = struct.Struct("3i")
_REFUSED = 2
_ASKED = "AskedPerson"
"""The event of a receipt: what a session asked a person for, and what became of it."""


class JudgeServer:
    """Listens at `place` until `close`. `ask` puts a person's verb to the person, who runs it:
    question.py. `is_inside` says whether a process is in the sandbox."""

    def __init__(
        self,
        settings: Settings,
        receipts: Path,
        place: Path,
        announcement: Announcement,
        inherited: Mapping[str, str],
        *,
        ask: Callable[[Request], int],
        is_inside: Callable[[int], bool],
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._root, self._receipts = settings.root, receipts
        self._readable = tuple(Path(os.path.realpath(item)) for item in settings.readable)
        self._announcement, self._is_inside, self._on_stop = announcement, is_inside, on_stop
        self._ask = ask
        self._environment = {
            **for_supervisors(inherited),
            **announcement.environment,
            **{name: inherited[name] for name in (CONFIG_DIR,) if name in inherited},
            # An agent asked: no child of ours is a person.
            "CLAUDECODE": "1",
        }
        self._hand_offs = HandOffs(settings.root, self._environment, announcement, receipts)
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closing = False
        self._slots = threading.BoundedSemaphore(4 * _MOST)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(place))
        place.chmod(0o600)
        self._listener.listen(_MOST)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Interrupt what still runs and wait for it: a training closes its run as cancelled."""
        with self._lock:
            self._closing = True
            children = list(self._children)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for child in children:
            _interrupt(child)
        deadline = time.monotonic() + _CLOSING_SECONDS
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            if child.poll() is None:
                child.kill()
                child.wait()
        self._hand_offs.close(_CLOSING_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing:
                    return
                time.sleep(_AGAIN_SECONDS)  # no descriptor was free, say
                continue
            self._slots.acquire()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._serve_one(connection)
        finally:
            self._slots.release()

    def _serve_one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, client.BrokenFrame):
            if not self._may_ask(connection):
                return
            connection.settimeout(_FIRST_FRAME_SECONDS)
            frame = client.receive(connection)
            connection.settimeout(None)
            if frame is None or frame[0] != client.REQUEST:
                return
            try:
                asked = json.loads(frame[1])
            except (ValueError, RecursionError):
                asked = None
            code = self._answer(connection, asked if isinstance(asked, dict) else {})
            client.send(connection, client.EXIT, b"%d" % code)

    def _may_ask(self, connection: socket.socket) -> bool:
        """Only what runs in this sandbox: another session of the same user has no judge here."""
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        pid, user, _ = _PEER.unpack(data)
        return bool(user == os.getuid() and self._is_inside(pid))

    def _answer(self, connection: socket.socket, asked: dict[str, Any]) -> int:
        if "receipt" in asked:
            return self._receipt(asked["receipt"])
        if "stopped" in asked:
            self._on_stop()
            return 0
        argv, cwd = asked.get("argv"), asked.get("cwd")
        if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
            _tell(connection, _unread(), as_json=False)
            return _REFUSED
        try:
            place = self._place(cwd)
            request = read_request(argv, cwd=place, root=self._root, readable=self._readable)
            if request.asked:
                return self._asked(
                    connection, request, asked.get("session"), as_json="--json" in argv
                )
            with self._words(request) as words:
                return self._run(connection, request, words, asked.get("session"))
        except HarnessError as error:
            _tell(connection, error, as_json="--json" in argv)
            return error.exit_code

    def _asked(
        self, connection: socket.socket, request: Request, session: object, *, as_json: bool
    ) -> int:
        """Of a person's verb the session learns that it ran, and how it ended."""
        answer: dict[str, Any] = {"asked": request.asked}
        try:
            answer |= {"rule": "person_ran", "exit_code": self._ask(request)}
        except RefusedError as error:
            answer |= {"rule": error.code, "exit_code": error.exit_code}
            raise
        finally:
            known = isinstance(session, str) and SESSION_ID.match(session)
            note = {"time": iso(datetime.now(UTC)), "session": session if known else "unknown"}
            with contextlib.suppress(OSError):
                self._receipt({**note, "event": _ASKED, **answer})
        code: int = answer["exit_code"]
        text = f"A person ran `{request.asked}` on their terminal: exit {code}."
        if code:
            text += " What it said stands on their screen; `harness status` says what holds."
        document = {"asked": request.asked, "exit_code": code}
        said = plain_json(pretty_json(document)) if as_json else plain(f"{text}\n")
        client.send(connection, client.STDOUT, said.encode("utf-8"))
        return code

    @contextlib.contextmanager
    def _words(self, request: Request) -> Iterator[list[str]]:
        """The request's words, with a copy in place of each file that it names."""
        with tempfile.TemporaryDirectory(prefix="harness-asked-") as name:
            copies = {text: self._copied(path, Path(name)) for text, path in request.files.items()}
            if request.copy_option:
                options = [f"{request.copy_option}={copy}" for copy in copies.values()]
                rest = len(copies) + bool(copies)  # the words, and the `--` before them
                at = len(request.words) - rest
                yield [*request.words[:at], *options, *request.words[at:]]
            else:
                yield [copies.get(word, word) for word in request.words]

    def _copied(self, path: Path, folder: Path) -> str:
        real = Path(os.path.normpath(path))
        place = next(item for item in (self._root, *self._readable) if real.is_relative_to(item))
        return str(copied(place, real.relative_to(place), folder))

    def _place(self, cwd: object) -> Path:
        """Where whoever asks stands, in the project: what its words are relative to. No child
        stands there, for the folder may be another one, or a link, by then."""
        place = Path(os.path.realpath(str(cwd)))
        return place if place.is_relative_to(self._root) and place.is_dir() else self._root

    def _receipt(self, line: object) -> int:
        """What a hook inside noted. Appended from outside: no session rewrites what it left."""
        if not isinstance(line, dict) or not isinstance(line.get("session"), str):
            return _REFUSED
        sandbox = self._announcement.sandbox.value
        append_receipt(str(self._receipts), {**line, "sandbox": sandbox})
        self._hand_offs.after(line)
        return 0

    def _run(
        self,
        connection: socket.socket,
        request: Request,
        words: Sequence[str],
        session: object,
    ) -> int:
        environment = dict(self._environment)
        if isinstance(session, str) and SESSION_ID.match(session):
            environment[SESSION] = session
        with self._lock:
            if self._closing or len(self._children) >= _MOST:
                raise _busy(closing=self._closing)
            child = subprocess.Popen(
                harness_command(*words),
                cwd=self._root,
                env=environment,
                stdin=subprocess.PIPE if request.stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(self._announcement.descriptor,),
                start_new_session=True,
            )
            self._children.add(child)
        try:
            return _led(connection, child)
        finally:
            with self._lock:
                self._children.discard(child)


def _unread() -> RefusedError:
    return RefusedError(
        "What was sent is no request; expected the words of a `harness` command as `argv`.",
        hint="Ask with the `harness` of this session.",
        code="not_a_request",
    )


def _busy(*, closing: bool) -> RefusedError:
    if closing:
        return RefusedError(
            "The session is ending, so nothing more is begun.",
            hint="Ask again in the next session.",
            code="judge_closing",
        )
    return RefusedError(
        f"{_MOST} requests of this session run already, the most at the same time.",
        hint="Wait until one has ended, then ask again.",
        code="judge_busy",
    )


def _led(connection: socket.socket, child: subprocess.Popen[bytes]) -> int:
    """Copy both ways until the child has ended; returns its exit code."""
    sending = threading.Lock()
    outputs = [
        _Output(connection, sending, kind, stream)
        for kind, stream in ((client.STDOUT, child.stdout), (client.STDERR, child.stderr))
        if stream is not None
    ]
    threading.Thread(target=_copy_in, args=(connection, child), daemon=True).start()
    code = child.wait()
    for output in outputs:
        output.finish()
    with sending:
        for output in outputs:
            output.gone = True  # a frame of what was left behind would break the one that ends all
    return code if code >= 0 else 128 - code


class _Output:
    """A stream of a child, sent to whoever asked."""

    def __init__(
        self, connection: socket.socket, sending: threading.Lock, kind: bytes, stream: IO[bytes]
    ) -> None:
        self._connection, self._sending, self._kind = connection, sending, kind
        self._stream, self._read, self._holds = stream, 0, False
        self.gone = False
        """Nothing more is sent; set while `sending` is held."""
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait, once the child has ended, until all that it wrote is sent, however slow the reader
        is. A process that it left behind may hold the pipe open: neither its silence is waited for,
        nor more than the pipe may still have held of the child."""
        most, before = self._read + _PIPE, -1
        while self._thread.is_alive() and self._read < most:
            if not self._holds and self._read == before:
                return
            before = self._read
            self._thread.join(_SILENT_SECONDS)

    def _copy(self) -> None:
        with self._stream:
            while block := os.read(self._stream.fileno(), client.BLOCK):
                self._read += len(block)
                self._holds = not self.gone
                with self._sending:
                    if self.gone:
                        continue  # read on, so that the child can end as it likes
                    try:
                        client.send(self._connection, self._kind, block)
                    except OSError:
                        self.gone = True
                self._holds = False


def _copy_in(connection: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """What comes from inside while the child runs; who asked is gone when nothing more does."""
    for kind, data in _frames(connection):
        if kind == client.INTERRUPT:
            _interrupt(child)
        elif kind == client.STDIN and child.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                if data:
                    child.stdin.write(data)
                    child.stdin.flush()
                else:
                    child.stdin.close()
    _interrupt(child)


def _frames(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    with contextlib.suppress(OSError, client.BrokenFrame):
        while frame := client.receive(connection):
            yield frame


def _interrupt(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)


def _tell(connection: socket.socket, error: HarnessError, *, as_json: bool) -> None:
    """As the command itself would."""
    if as_json:
        document = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        text = plain_json(pretty_json(document))
        client.send(connection, client.STDOUT, text.encode("utf-8"))
    else:
        text = f"harness: {error.message}\n  {error.hint}\n"
        client.send(connection, client.STDERR, plain(text).encode("utf-8"))
