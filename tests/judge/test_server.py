"""A request that is refused is answered in words, and one refusal of the system ends no judge."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.domain.statuses import SandboxKind
from harness.judge import client, server
from harness.judge.requests import read_request
from harness.judge.server import JudgeServer


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[JudgeServer]:
    with Path(os.devnull).open("rb") as proof:
        told = {"environment": {}, "sandbox": SandboxKind.BWRAP, "descriptor": proof.fileno()}
        made = JudgeServer(
            SimpleNamespace(root=tmp_path, readable=()),  # type: ignore[arg-type]
            tmp_path / "receipts",
            tmp_path / "socket",
            SimpleNamespace(**told),  # type: ignore[arg-type]
            {},
            ask=lambda request: 0,
            is_inside=lambda pid: True,
        )
        yield made
        made.close()


def asked(folder: Path, request: Any) -> tuple[int, str]:
    """(exit code, all that was said)."""
    with client.connect(str(folder / "socket")) as place:
        place.settimeout(20)
        client.send(place, client.REQUEST, json.dumps(request).encode())
        said = b""
        while frame := client.receive(place):
            kind, data = frame
            if kind == client.EXIT:
                return int(data), said.decode("utf-8")
            said += data
    raise AssertionError("no answer")


@pytest.mark.parametrize("request_", [{}, {"argv": "status"}, {"argv": [1]}, []])
def test_what_is_no_request_is_told_so(judge: JudgeServer, tmp_path: Path, request_: Any) -> None:
    code, said = asked(tmp_path, request_)
    assert (code, "is no request" in said) == (2, True)


def test_a_plan_is_read_from_a_copy_and_keeps_its_name(judge: JudgeServer, tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "a.draft.md").write_text("x")
    asked_for = read_request(["plan", "check", "plans/a.draft.md"], cwd=tmp_path, root=tmp_path)
    with judge._words(asked_for) as words:
        *_, option, dashes, name = words
        assert (dashes, name) == ("--", "plans/a.draft.md")
        assert Path(option.removeprefix("--copy=")).read_text() == "x"


def test_the_most_at_a_time_is_said(
    judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST", 0)
    code, said = asked(tmp_path, {"argv": ["status", "--json"], "cwd": str(tmp_path)})
    assert (code, json.loads(said)["error"]["code"]) == (2, "judge_busy")


def test_what_was_asked_is_shown_as_plain_text(judge: JudgeServer, tmp_path: Path) -> None:
    for more in ([], ["--json"]):
        code, said = asked(tmp_path, {"argv": ["plan\x1b[2J\u202e", *more], "cwd": "/"})
        assert code == 2
        assert "plan" in said
        assert not {"\x1b", "\u202e"} & set(said)


def test_a_failed_accept_ends_no_judge(
    judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, failed = judge._listener.accept, threading.Event()

    class Listener:
        def accept(self) -> tuple[socket.socket, Any]:
            if not failed.is_set():
                failed.set()
                raise OSError(24, "Too many open files")
            return accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(listener, name)

    listener, judge._listener = judge._listener, Listener()  # type: ignore[assignment]
    assert asked(tmp_path, {})[0] == 2  # the accept that waits already
    assert asked(tmp_path, {})[0] == 2
    assert failed.is_set()


def test_who_asks_nothing_is_let_go(
    judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_FIRST_FRAME_SECONDS", 0.1)
    with client.connect(str(tmp_path / "socket")) as place:
        place.settimeout(20)
        assert client.receive(place) is None


def test_a_child_stands_in_the_project_whatever_becomes_of_the_folder_of_who_asks(
    judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    program = "import os, sys; print(os.getcwd(), *sys.argv[1:])"
    monkeypatch.setattr(
        server, "harness_command", lambda *words: [sys.executable, "-c", program, *words]
    )
    line = {"argv": ["posttrain", "spec", "--dataset", "rows.jsonl"]}
    code, said = asked(tmp_path, {**line, "cwd": str(tmp_path / "sub")})
    where, *words = said.split()
    assert (code, where) == (0, str(tmp_path))
    assert "--dataset=sub/rows.jsonl" in words


def led(script: str) -> tuple["subprocess.Popen[bytes]", socket.socket, threading.Thread]:
    """A child that the judge leads; the other side of what it is sent through, which holds little;
    and the thread that sends."""
    theirs, ours = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    child = subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def lead() -> None:
        with ours:
            client.send(ours, client.EXIT, b"%d" % server._led(ours, child))

    leading = threading.Thread(target=lead, daemon=True)
    leading.start()
    return child, theirs, leading


def received(place: socket.socket) -> dict[bytes, bytes]:
    """By stream all until the child's exit code."""
    said = {client.STDOUT: b"", client.STDERR: b""}
    while frame := client.receive(place):
        if frame[0] == client.EXIT:
            return said
        said[frame[0]] += frame[1]
    raise AssertionError(f"no exit code after {len(said[client.STDOUT])} bytes")


def test_a_slow_reader_gets_all_that_an_ended_child_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SILENT_SECONDS", 0.01)
    child, place, leading = led("head -c 50000 /dev/zero")  # a pipe holds it, the socket does not
    with place:
        place.settimeout(20)
        assert child.wait(20) == 0
        leading.join(0.3)
        assert leading.is_alive()
        assert received(place)[client.STDOUT] == b"\0" * 50_000


def test_what_a_child_leaves_behind_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SILENT_SECONDS", 0.1)
    for program in ("sleep 60", "yes"):
        _, place, leading = led(f"{program} & echo $! >&2")
        with place:
            place.settimeout(20)
            os.kill(int(received(place)[client.STDERR]), signal.SIGKILL)
        leading.join(20)
        assert not leading.is_alive()
