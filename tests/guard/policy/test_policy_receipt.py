"""Receipts: one whole line each, no content, one file a session, links not followed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.guard.policy.decide import decide
from harness.guard.policy.receipt import append_receipt, digest, receipt

SECRET = "a secret that stands in the input"


def made(project, tool="Write", **given):
    call = {
        "tool_name": tool,
        "tool_input": given,
        "cwd": str(project.root),
        "tool_use_id": "toolu_1",
    }
    return receipt(
        call, decide(call, project.snapshot), time="t", session="s-1", role="r", event="PreToolUse"
    )


def test_receipt_says_what_was_decided_and_holds_no_content(project):
    line = made(project, file_path="plan.md", content=SECRET)
    assert {
        key: line[key]
        for key in (
            "time",
            "session",
            "role",
            "event",
            "tool",
            "tool_use_id",
            "permission",
            "rule",
        )
    } == {
        "time": "t",
        "session": "s-1",
        "role": "r",
        "event": "PreToolUse",
        "tool": "Write",
        "tool_use_id": "toolu_1",
        "permission": "deny",
        "rule": "protected_path",
    }
    assert line["paths"] == ["plan.md"]
    assert line["reason"]
    assert SECRET not in json.dumps(line)
    assert "reason" not in made(project, file_path="model.py", content=SECRET)


def test_digest_depends_on_the_value_only():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest("\ud800")
    assert digest({1: object()})


def test_session_names_make_safe_file_names(project, tmp_path):
    for session in ("../../etc/x", "a/b", "", ".hidden", "x" * 500, "a b\n"):
        path = append_receipt(str(tmp_path / "r"), {"session": session})
        assert Path(path).parent == tmp_path / "r"
        assert not Path(path).name.startswith(".")


def test_link_in_the_place_of_a_receipt_is_not_followed(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "s.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match=r"s\.jsonl"):
        append_receipt(str(tmp_path), {"session": "s"})
    assert (tmp_path / "target").read_text() == ""


def test_parallel_writers_leave_whole_lines(tmp_path):
    program = (
        "import sys; from harness.guard.policy.receipt import append_receipt\nfor n in"
        " range(200):\n    append_receipt(sys.argv[1], {'session': 's', 'who': sys.argv[2], 'n': n,"
        " 'pad': 'x' * 300})"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "abc"
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert sorted((line["who"], line["n"]) for line in lines) == [
        (who, n) for who in "abc" for n in range(200)
    ]
