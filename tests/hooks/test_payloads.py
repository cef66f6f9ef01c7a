"""Whatever comes on stdin: a guard answers 0 or 2, in time, says why, and leaves whole receipts."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from hook_project import PYTHON, HookProject

from harness.audit.activity import read_activities
from harness.guard.hooks.table import EVENTS, GUARD

GUARDS = [event for event in EVENTS if event.kind == GUARD]
OTHERS = [event for event in EVENTS if event.kind != GUARD]
UNREADABLE = {
    "nothing": b"",
    "text": b"PreToolUse Bash ls\n",
    "half": b'{"session_id": "s-1", "tool_name": "Bash", "tool_in',
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "two objects": b"{}{}",
    "not UTF-8": b'{"tool_name": "\xff"}',
    "UTF-16": '{"tool_name": "Bash"}'.encode("utf-16"),
    "a mark before it": (
        b'\xef\xbb\xbf{"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}'
    ),
    "NUL": b"\0" * 100,
    "nested too deep": b'{"a":' * 100_000,
    "brackets without end": b"[" * 1_000_000,
}


@pytest.mark.parametrize("event", GUARDS, ids=lambda event: event.name)
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_guard_denies_what_it_cannot_read(shared: HookProject, event, name: str):
    answer = shared.start(event.name, UNREADABLE[name])
    assert answer.denied
    assert f"The payload of {event.name} cannot be read" in answer.errors
    assert "Repeat the call" in answer.errors


@pytest.mark.parametrize("event", OTHERS, ids=lambda event: event.name)
@pytest.mark.parametrize("name", ["nothing", "half", "a list"])
def test_another_hook_lets_go_with_a_receipt(shared: HookProject, event, name: str):
    answer = shared.start(event.name, UNREADABLE[name])
    assert (answer.code, answer.output) == (0, "")
    newest = shared.receipts("unknown")[-1]
    assert (newest["event"], newest["rule"], newest["permission"]) == (
        event.name,
        "hook_failed",
        None,
    )
    assert "cannot be read" in newest["error"]


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "text",
        3,
        {"command": None},
        {"command": ["rm", "plan.md"]},
        {},
        {"file_path": "plan.md"},
    ],
    ids=repr,
)
def test_a_call_without_its_arguments_is_denied(shared: HookProject, given):
    assert shared.call("Bash", given).denied
    if given != {"file_path": "plan.md"}:
        assert shared.call("Write", given).denied


@pytest.mark.parametrize("name", [None, 3, "", [], {}])
def test_a_call_without_a_name_is_denied(shared: HookProject, name):
    assert shared.call(name, {}).denied


@pytest.mark.parametrize("size", [1_000_000, 10_000_000])
def test_large_payloads_are_judged_by_what_they_name(shared: HookProject, size: int):
    content = "x = 1\n" * (size // 6)
    assert not shared.call("Write", {"file_path": "model.py", "content": content}).denied
    assert shared.call("Write", {"file_path": "plan.md", "content": content}).denied
    assert not shared.shell(f"cat > model.py <<'EOF'\n{content}EOF").denied
    assert shared.shell(f"cat > plan.md <<'EOF'\n{content}EOF").denied
    assert shared.shell(f"cat > model.py <<'EOF'\n{content}EOF\nrm .claude/settings.json").denied
    assert all(len(json.dumps(line)) < 5_000 for line in shared.receipts())


def test_a_very_long_path_or_name_leaves_a_short_receipt(shared: HookProject):
    assert shared.call("Write", {"file_path": ".claude/" + "x" * 100_000}).denied
    assert not shared.call("N" * 100_000, {"a": 1}).denied
    assert all(len(json.dumps(line)) < 5_000 for line in shared.receipts())


@pytest.mark.parametrize("path", ["\ud800", "a\0b", "plan.md\0x", "\ud83d/plan.md"])
def test_text_that_no_file_system_takes_is_denied(shared: HookProject, path: str):
    assert shared.call("Write", {"file_path": path}).denied
    assert shared.shell(f"rm '{path}' plan.md").denied


def test_stalled_and_closed_stdin_are_denied_before_the_timeout(project: HookProject):
    """All at once, because each waits for its own deadline."""
    command = [PYTHON, "-I", "-S", str(project.programs / "run.py"), "PreToolUse"]
    silent = _start(command, project)
    halting = _start(command, project)
    halting.stdin.write(b'{"session_id": "s-1", "tool_')
    halting.stdin.flush()
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command],
        capture_output=True,
        env=project.environment,
        timeout=60,
    )
    assert closed.returncode == 2
    assert b"stdin cannot be read" in closed.stderr
    for process in (silent, halting):
        assert process.wait(timeout=60) == 2
        assert b"its payload was not read to the end" in process.stderr.read()
        assert json.loads(process.stdout.read())["decision"] == "block"
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
    assert [line["rule"] for line in project.receipts("unknown")] == [
        "payload_unreadable",
        "too_late",
        "too_late",
    ]


def _start(command: list[str], project: HookProject) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=project.environment)


def test_parallel_calls_leave_whole_receipts(project: HookProject):
    long = ".claude/" + "x" * 3_000

    def one(number: int) -> bool:
        return project.call(
            "Write", {"file_path": long if number % 2 else "model.py"}, identity=f"toolu_{number}"
        ).denied

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(48)))
    assert answers == [bool(number % 2) for number in range(48)]
    calls = sorted(f"toolu_{n}" for n in range(48))
    assert sorted(line["tool_use_id"] for line in project.receipts()) == calls
    assert sorted(audited(project)) == calls


def audited(project: HookProject) -> list[str]:
    """The calls of all receipts, as the audit reads them."""
    activities, unread = read_activities(project.root / ".harness" / "receipts", [])
    assert unread == []
    return [one.call for activity in activities for one in activity.receipts]


def test_an_empty_line_between_receipts_is_passed_over(project: HookProject):
    """Under load a line that is being written looks cut off; the next one begins anew then."""
    project.call("Write", {"file_path": "model.py"}, identity="toolu_1")
    with (project.root / ".harness/receipts/s-1.jsonl").open("a") as stream:
        stream.write("\n")
    project.call("Write", {"file_path": "model.py"}, identity="toolu_2")
    assert audited(project) == ["toolu_1", "toolu_2"]


def test_output_that_nobody_reads_changes_no_answer(project: HookProject):
    command = [PYTHON, "-I", "-S", str(project.programs / "run.py"), "PreToolUse"]
    payload = {
        "tool_name": "Write",
        "tool_input": {"file_path": "plan.md"},
        "cwd": str(project.root),
    }
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command],
        input=json.dumps(payload).encode(),
        env=project.environment,
        timeout=60,
    )
    assert ended.returncode == 2


def test_a_call_that_leaves_no_receipt_is_not_let_through(project: HookProject):
    (project.root / ".harness" / "receipts" / "s-1.jsonl").mkdir(parents=True)
    answer = project.shell("ls")
    assert answer.denied
    assert "receipt" in answer.errors


def test_a_link_in_the_place_of_the_receipts_is_not_followed(project: HookProject):
    outside = project.folder / "outside"
    (project.root / ".harness" / "receipts" / "s-1.jsonl").symlink_to(outside)
    assert project.shell("ls").denied
    assert not outside.exists()
