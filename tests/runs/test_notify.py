"""`notify` of config.toml: a command, a webhook, which notices, and what a failure does."""

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from runs_support import GOOD, Trainer

from harness.domain.notices import Notice, Notify, read_notify
from harness.domain.statuses import RunStatus
from harness.errors import ConfigError
from harness.ledger.project import Project
from harness.runs.notify import AlarmNotices, Notifier
from harness.settings import CONFIG, load_settings

SECRET = "T0KEN-in-the-address"
DIVERGING = GOOD.replace('{"loss": 1 / (epoch + 1)}', '{"loss": float("nan")}')


class Hook(HTTPServer):
    """A loopback webhook that keeps what it gets."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{SECRET}"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.headers["content-type"] == "application/json"
        self.server.got.append(json.loads(body))
        self.send_response(self.server.status)
        self.send_header("location", f"{self.server.address}/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    """What the command was told, a JSON document a line."""
    return tmp_path / "heard.jsonl"


@pytest.fixture
def program(tmp_path: Path, heard: Path) -> Path:
    path = tmp_path / "tell.py"
    path.write_text(
        "import json, os, sys\n"
        "told = json.load(sys.stdin) | {'key': os.environ.get('ANTHROPIC_API_KEY'),"
        " 'cwd': os.getcwd()}\n"
        f"open({str(heard)!r}, 'a').write(json.dumps(told) + '\\n')\n"
    )
    return path


@pytest.fixture
def root(root: Path, hook: Hook, program: Path) -> Path:
    with (root / CONFIG).open("a") as stream:
        words = json.dumps([sys.executable, str(program)])
        stream.write(f'notify = {{command = {words}, webhook = "{hook.address}"}}\n')
    return root


def test_an_alarm_is_told_once_by_both_ways(
    project: Project,
    run_training: Trainer,
    hook: Hook,
    heard: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of nobody")
    run = run_training(code=DIVERGING, seeds=[1]).runs[0]
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    codes = {alarm.alarm["code"] for alarm in project.ledger.alarms("exp-0001", run.id)}
    assert codes >= {"non_finite"}
    for documents in (hook.got, told):
        (first,) = (one for one in documents if one["alarm"]["code"] == "non_finite")
        assert (first["event"], first["experiment"], first["run"]) == (
            "alarm",
            "exp-0001",
            f"exp-0001/{run.id}",
        )
        assert first["project"] == project.settings.project_id
        assert "non_finite" in first["text"]
        assert first["next"] == "harness experiment show exp-0001"
    assert {one["key"] for one in told} == {None}
    assert not any(Path(one["cwd"]).is_relative_to(project.settings.root) for one in told)


def test_a_failure_is_told_without_the_address_and_stops_nothing(
    project: Project, run_training: Trainer, hook: Hook, program: Path
) -> None:
    hook.status = 500
    program.write_text("import sys; sys.exit('no mail today')")
    events: list[dict[str, Any]] = []
    run = run_training(code=DIVERGING, seeds=[1], on_event=events.append).runs[0]
    said = " ".join(event["text"] for event in events if event["kind"] == "notify")
    assert "exit code 1: no mail today" in said
    assert "http://127.0.0.1 answered 500; the work goes on" in said
    assert SECRET not in said
    assert run.status in (RunStatus.COMPLETED, RunStatus.KILLED)


def test_a_server_that_is_gone_and_a_program_that_is_not_there(
    project: Project, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.shutdown()
    hook.server_close()
    notify = Notify(command=("no-such-program",), webhook=hook.address)
    monkeypatch.setattr("harness.runs.notify._approved", lambda _project: notify)
    said: list[str] = []
    notifier = Notifier(project, said.append)
    notifier.send(Notice.END, "over")
    notifier.close()
    assert [text.split(";")[0] for text in said] == [
        "notify: no-such-program cannot be started: No such file or directory",
        "notify: http://127.0.0.1 was not reached: ConnectionRefusedError",
    ]


def test_a_redirect_is_followed_to_nobody(
    project: Project, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.status = 307
    notify = Notify(webhook=hook.address)
    monkeypatch.setattr("harness.runs.notify._approved", lambda _project: notify)
    said: list[str] = []
    notifier = Notifier(project, said.append)
    notifier.send(Notice.END, "over")
    notifier.close()
    assert said == ["notify: http://127.0.0.1 answered 307; the work goes on"]
    assert len(hook.got) == 1


def test_a_slow_answer_is_waited_for_so_long_in_all(
    project: Project, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends a byte now and then: no single wait is long."""
    over = threading.Event()

    def trickle(handler: _Handler) -> None:
        while not over.wait(0.05):
            with contextlib.suppress(OSError):
                handler.wfile.write(b"H")

    monkeypatch.setattr(_Handler, "do_POST", trickle)
    monkeypatch.setattr("harness.runs.notify.SECONDS", 0.5)
    notify = Notify(webhook=hook.address)
    monkeypatch.setattr("harness.runs.notify._approved", lambda _project: notify)
    notifier = Notifier(project, lambda _text: None)
    assert notifier.trial() == ["http://127.0.0.1 took longer than 0.5 s"]
    over.set()


def test_that_predict_fails_is_told_and_no_other_note(
    project: Project, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify = Notify(webhook=hook.address)
    monkeypatch.setattr("harness.runs.notify._approved", lambda _project: notify)
    notifier = Notifier(project, lambda _text: None)
    notices = AlarmNotices(notifier, "exp-0001/run-01")
    note = {"severity": "note", "recovered": False, "message": "m"}
    for code in ("value_rises", "predict_fails", "predict_fails"):
        notices.tell({**note, "code": code})
    notifier.close()
    assert [one["alarm"]["code"] for one in hook.got] == ["predict_fails"]


def test_only_what_is_wanted_is_told(
    project: Project, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify = Notify(webhook=hook.address, on=frozenset({Notice.END}))
    monkeypatch.setattr("harness.runs.notify._approved", lambda _project: notify)
    notifier = Notifier(project, lambda _text: None)
    notifier.send(Notice.ALARM, "an alarm")
    notifier.send_any((Notice.BUDGET, Notice.END), "spent\nwhole", reason="budget")
    notifier.close()
    (one,) = hook.got
    assert (one["event"], one["text"], one["reason"]) == ("budget", "spent whole", "budget")


def test_a_config_that_nobody_approved_starts_nothing(project: Project, hook: Hook) -> None:
    path = project.layout.project("config_toml")
    path.write_text(path.read_text() + "# an agent was here\n")
    notifier = Notifier(project, lambda _text: None)
    notifier.send(Notice.END, "over")
    notifier.close()
    assert hook.got == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"mail"', "expected a table"),
        ("{}", "neither a command nor a webhook"),
        ('{command = "mail me"}', "expected a list of words"),
        ('{command = ["mail", 3]}', "expected a list of words"),
        ('{command = ["bin/tell"]}', "a program's name or whole path"),
        ('{command = ["python", "./train.py"]}', "lies in the project, where agents write"),
        ('{command = ["python", "../other/new.py"]}', "lies in the project, where agents write"),
        ('{command = ["HERE/new"]}', "lies in the project, where agents write"),
        ('{command = ["python", "HERE/train.py"]}', "lies in the project, where agents write"),
        ('{webhook = "example.org/x"}', "expected http:// or https://"),
        ('{webhook = "https://"}', "expected http:// or https://"),
        (
            '{webhook = "https://a.org", on = ["gates"]}',
            "expected some of gate, alarm, budget, end",
        ),
        ('{webhook = "https://a.org", on = []}', "notify.on is empty"),
        ('{webhook = "https://a.org", to = "me"}', "unknown key 'to'"),
        ('{command = ["a\\u0000b"]}', "NUL"),
    ],
)
def test_a_wrong_value_is_named(
    tmp_path: Path, value: str, expected: str, environment: dict[str, str]
) -> None:
    folder = tmp_path / "other"
    (folder / ".harness").mkdir(parents=True)
    (folder / "train.py").write_text("")
    (folder / CONFIG).write_text(
        f'project_id = "abc-1"\nnotify = {value.replace("HERE", str(folder))}\n'
    )
    with pytest.raises(ConfigError, match=r"config\.toml") as caught:
        load_settings(folder, environment)
    assert expected in str(caught.value)


@pytest.mark.parametrize("made", ["curl", "harness", "now"])
def test_a_file_that_an_agent_makes_is_no_word_of_the_command(tmp_path: Path, made: str) -> None:
    (tmp_path / made).write_text("")
    value = {"command": ["curl", "-d", "harness", "../elsewhere", "now"]}
    notify = read_notify(value, where="config.toml", root=tmp_path)
    assert notify is not None
    assert notify.command == tuple(value["command"])


def test_words_name_no_secret() -> None:
    value = {"command": ["notify-send", "harness"], "webhook": f"https://hooks.example/{SECRET}"}
    notify = read_notify(value, where="config.toml", root=Path("/p"))
    assert notify is not None
    assert notify.words == ["runs notify-send harness", "posts to https://hooks.example"]
    assert notify.on == frozenset(Notice)
