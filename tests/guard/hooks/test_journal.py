"""Receipts of a session, written and read back."""

import json
import time
from pathlib import Path

import pytest
from hook_project import HookProject
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.guard.hooks.projects import HookedProject
from harness.guard.hooks.session_receipts import lines_back, note, said, session_of, stamp


@pytest.fixture
def place(project: HookProject) -> HookedProject:
    return HookedProject(str(project.root), str(project.root), by_plugin=False)


def test_what_is_noted_is_found_newest_first(place: HookedProject):
    for number in range(3):
        call = {"session_id": "s", "tool_name": "Bash", "tool_use_id": f"t{number}"}
        note(
            place,
            call,
            said(None, "no_rule"),
            event="PreToolUse",
            role="main",
            now=0.0,
            more=number,
        )
    found = list(lines_back(place, "s"))
    assert [(line["tool_use_id"], line["more"]) for line in found] == [
        ("t2", 2),
        ("t1", 1),
        ("t0", 0),
    ]
    assert found[0]["time"] == "1970-01-01T00:00:00.000Z"
    assert list(lines_back(place, "another")) == []


def test_time_is_utc_with_milliseconds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert stamp(1_790_000_000.0625) == "2026-09-21T14:13:20.062Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("name", [None, 3, "", []])
def test_a_call_without_a_session(name):
    assert session_of({"session_id": name}) == "unknown"
    assert session_of({}) == "unknown"


LINES = st.lists(
    st.integers(0, 3).map(lambda n: json.dumps({"n": n, "x": "y" * (n * 40_000)}).encode())
    | st.sampled_from([b"", b"torn {", b"[]", b"\xff\xfe", b"3"]),
    max_size=8,
)


@given(lines=LINES, ending=st.sampled_from([b"\n", b""]))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_file_is_read_back_as_its_whole_lines(
    place: HookedProject, lines: list[bytes], ending: bytes
):
    path = Path(place.receipts) / "fuzz.jsonl"
    path.write_bytes(b"\n".join(lines) + ending)
    whole = [json.loads(line)["n"] for line in lines if line.startswith(b'{"n"')]
    assert [line["n"] for line in lines_back(place, "fuzz")] == whole[::-1]


def test_a_torn_line_costs_nothing_but_itself(place: HookedProject):
    call = {"session_id": "s"}
    note(place, call, said(None, "first"), event="Stop", role="main", now=0.0)
    with (Path(place.receipts) / "s.jsonl").open("ab") as file:
        file.write(b'{"rule": "tor')
    note(place, call, said(None, "second"), event="Stop", role="main", now=0.0)
    assert [line["rule"] for line in lines_back(place, "s")] == ["second", "first"]
