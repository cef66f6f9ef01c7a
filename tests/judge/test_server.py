"""A request that is refused is answered in words, and one refusal of the system ends no judge."""

import json
import socket
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
    made = JudgeServer(
        SimpleNamespace(root=tmp_path, readable=()),  # type: ignore[arg-type]
        tmp_path / "receipts",
        tmp_path / "socket",
        SimpleNamespace(environment={}, sandbox=SandboxKind.BWRAP),  # type: ignore[arg-type]
        {},
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
