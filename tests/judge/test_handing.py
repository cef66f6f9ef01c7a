"""Hand-offs of sessions inside: who is waited for, what waits its turn, what leaves a receipt."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.domain.statuses import SandboxKind
from harness.judge import handing
from harness.judge.handing import ENDED, SUMMARISED, HandOffs

COMPACT = {"event": "SessionStart", "source": "compact", "session": "s-1"}
END = {"event": "SessionEnd", "session": "s-1"}
CHILD = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
with (folder / "told").open("a") as told:
    told.write(sys.argv[-1] + "\\n")
while not (folder / "go").exists():
    time.sleep(0.01)
if (folder / "fail").exists():
    sys.exit("the ledger is gone")
"""


@pytest.fixture
def offs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandOffs]:
    """Its command writes why to `told`, then waits until there is `go`."""
    words = [sys.executable, "-I", "-S", "-c", CHILD, str(tmp_path)]
    monkeypatch.setattr(handing, "harness_command", lambda *more: [*words, *more])
    with Path(os.devnull).open("rb") as proof:
        told: Any = SimpleNamespace(sandbox=SandboxKind.BWRAP, descriptor=proof.fileno())
        made = HandOffs(tmp_path, dict(os.environ), told, tmp_path / "receipts")
        yield made
        (tmp_path / "go").touch()
        made.close(20)


def until(told: Path, count: int) -> list[str]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        lines = told.read_text().splitlines() if told.exists() else []
        if len(lines) >= count:
            return lines
        time.sleep(0.01)
    raise AssertionError(lines)


def faults(folder: Path) -> list[tuple[str, str, str]]:
    path = folder / "receipts" / "s-1.jsonl"
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return [(line["event"], line["rule"], line["error"]) for line in lines]


def test_only_a_compaction_is_waited_for_and_one_more_waits_its_turn(
    offs: HandOffs, tmp_path: Path
) -> None:
    offs.after(END)  # it would not return before `go`
    assert until(tmp_path / "told", 1) == [ENDED]
    waiting = threading.Thread(target=offs.after, args=(COMPACT,), daemon=True)
    waiting.start()
    while len(offs._due["s-1"]) < 2:
        time.sleep(0.01)
    offs.after(END)  # tells what the one that waits would
    assert waiting.is_alive()
    (tmp_path / "go").touch()
    waiting.join(20)
    assert not waiting.is_alive()
    offs.close(20)
    assert until(tmp_path / "told", 2) == [ENDED, ENDED]
    assert faults(tmp_path) == []


def test_what_is_not_recorded_leaves_a_receipt(
    offs: HandOffs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("go", "fail"):
        (tmp_path / name).touch()
    offs.after(COMPACT)
    failed = "`harness handoff --left` ended with 1: the ledger is gone"
    assert faults(tmp_path) == [("SessionStart", "hook_failed", failed)]
    assert until(tmp_path / "told", 1) == [SUMMARISED]
    monkeypatch.setattr(handing, "harness_command", lambda *_more: ["/nowhere/harness"])
    offs.after(COMPACT)
    assert "No such file" in faults(tmp_path)[1][2]
    offs.close(20)
    offs.after(END)
    assert faults(tmp_path)[2][::2] == (
        "SessionEnd",
        "the judge is closing, or too many sessions hand over",
    )


def test_one_that_does_not_end_is_ended_with_the_judge(offs: HandOffs, tmp_path: Path) -> None:
    offs.after(END)
    until(tmp_path / "told", 1)
    offs.close(0.1)
    assert faults(tmp_path)[0][2].startswith("`harness handoff --left` ended with -9")
