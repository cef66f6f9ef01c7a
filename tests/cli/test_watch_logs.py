"""`harness watch PATH` where there is no terminal, a poor one, one that goes away, and in tmux."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.terminal import run_in_terminal

WATCH = [sys.executable, "-m", "harness", "watch"]
PATIENCE_S = 60.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a run.jsonl"
    rows = [{"event": "start", "run": "r", "total_epochs": 600}]
    rows += [
        {"event": "epoch", "run": "r", "epoch": epoch, "metrics": {"loss": 3 - epoch / 300}}
        for epoch in range(600)
    ]
    rows.append({"event": "end", "run": "r", "status": "completed"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_case_29_without_a_terminal_there_are_lines_and_no_escapes(
    log: Path, environment: dict[str, str]
) -> None:
    for more in ({"TERM": "dumb"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        ended = run_in_terminal([*WATCH, log], cwd=log.parent, env=environment | more)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "\x1b" not in ended.stdout
        assert "\r" not in ended.stdout
        lines = ended.stdout.splitlines()
        assert lines[0] == (
            "a run.jsonl · r  590 rows before"
            if "TERM" in more
            else "a run.jsonl ? r  590 rows before"
        )
        assert "epoch 599  loss 1.003" in lines[10]
        assert "epoch 599 of 599" in ended.stdout


def answered(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    """(exit code, stdout, stderr) of the verb in this process."""
    with pytest.raises(SystemExit) as stop:
        main(["watch", *words])
    said = capsys.readouterr()
    return stop.value.code, said.out, said.err


def test_json_is_one_document(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, errors = answered([str(log), "--json"], capsys)
    document = json.loads(said)
    assert (code, errors, document["state"], document["evidence"]) == (0, "", "ended", "logged")
    assert (document["runs"][0]["status"], document["runs"][0]["epoch"]) == ("completed", 599)


def test_case_29_a_reader_that_goes_away_ends_it_quietly(
    log: Path, environment: dict[str, str]
) -> None:
    with subprocess.Popen(
        [*WATCH, log], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watching:
        assert watching.stdout is not None
        watching.stdout.close()
        _, errors = watching.communicate(timeout=PATIENCE_S)
    assert errors == b""
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *WATCH, str(log)],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (closed.returncode, b"Traceback" in closed.stderr) == (0, False)


def test_what_is_neither_a_log_nor_an_experiment_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TMUX", raising=False)
    (tmp_path / "empty").mkdir()
    for word in ("frob", "empty"):
        code, said, _ = answered([word, "--json"], capsys)
        assert (code, json.loads(said)["error"]["code"]) == (2, "no_log")
    code, _, errors = answered(["--split"], capsys)
    assert (code, "Start tmux first" in errors) == (2, True)


@pytest.fixture
def tmux(environment: dict[str, str], tmp_path: Path) -> Iterator[list[str]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    sockets = tempfile.mkdtemp(prefix="hx-", dir="/tmp")
    environment["TMUX_TMPDIR"] = sockets
    command = ["tmux", "-L", f"harness-{uuid.uuid4().hex[:12]}", "-f", "/dev/null"]
    start = ["new-session", "-d", "-s", "main", "-x", "170", "-y", "30", "-c", str(tmp_path), "sh"]
    subprocess.run([*command, *start], env=environment, check=True)
    try:
        yield command
    finally:
        subprocess.run([*command, "kill-server"], env=environment, check=False)
        shutil.rmtree(sockets, ignore_errors=True)


def test_in_tmux_it_waits_for_the_log_beside_and_then_draws_it(
    log: Path, environment: dict[str, str], tmux: list[str]
) -> None:
    def screen(pane: str) -> str:
        words = [*tmux, "capture-pane", "-p", "-t", pane]
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False
        ).stdout

    def wait_for(words: str) -> str:
        end = time.monotonic() + PATIENCE_S
        while words not in (found := screen("main:0.1")):
            assert time.monotonic() < end, (
                f"{words!r} did not come:\n{found}\n{screen('main:0.0')}"
            )
            time.sleep(0.2)
        return found

    later = log.with_name("later.jsonl")
    command = f"'{sys.executable}' -m harness watch ./later.jsonl --follow --split"
    subprocess.run(
        [*tmux, "send-keys", "-t", "main", command, "Enter"], env=environment, check=True
    )
    assert str(later.name) in wait_for("waiting for the first row at")
    log.rename(later)
    found = wait_for("epoch 599 of 599")
    assert "completed" in found
    assert "best     1.003" in found
