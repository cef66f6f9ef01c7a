"""Whatever comes: an answer of 0 or 2, no crash, and no silence about a write to a protected
file."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hook_project import HookProject
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.guard.hooks.frame import UnreadablePayload, answer, payload, written
from harness.guard.hooks.projects import Projects
from harness.guard.hooks.standing import opening_line, status_line
from harness.guard.hooks.table import BY_NAME, EVENTS, PROGRAM

QUICK = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FEW = settings(QUICK, max_examples=25)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = (
    "tool_name",
    "tool_input",
    "cwd",
    "session_id",
    "agent_type",
    "source",
    "file_path",
    "tool_calls",
    "tool_use_id",
)
TOOLS = st.sampled_from(
    [
        "Write",
        "Edit",
        "Bash",
        "Read",
        "Glob",
        "mcp__x__y",
        "mcp__plugin_x_harness__open_experiment",
    ]
)
CALLS = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON) | {"tool_name": TOOLS | JSON})
SHELL = st.text(
    alphabet=st.sampled_from(list("ab .$'\"`\\(){}<>|&;#\n\t*?[]=-EOF0!~")), max_size=24
)
"""No slash: where bash runs it, it writes nothing elsewhere."""
BEFORE = (
    "",
    ": a b;",
    "false ||",
    "true &&",
    "# a comment\n",
    "a=1 b='c d'\n",
    "if true; then : ; fi;",
    "for x in 1 2; do : $x; done;",
    "f() { :; };",
    ": <<E\nrm x > y 'z\nE\n",
    ": <<'E'\n$(x\nE\n",
    ": $(: a; : b) `: c`;",
    ': "a $(: "b") c" ${a} ${b:-c} $((1+2));',
    "(( 1 + 2 ));",
    "[[ a == a ]] &&",
    "true | ",
    "{ :; };",
    "( : ) ;",
    "! false;",
    ": 2>&1 <&- >&2;",
    ": \\\n a;",
    ": $'a\\n' a\\ b;",
    "case a in a) : ;; esac;",
)
NOISE = (" :", " printf x", " : 'a # b'", " : a\\ b", " > a 2> b :", " x=1 :")
WRITE = " > .claude/settings.json"


def piped(data: bytes):
    """What `payload` makes of `data` on a pipe."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        os.close(writing)
        return payload(reading)
    finally:
        os.close(reading)


@given(data=st.binary(max_size=2_000))
@QUICK
def test_any_bytes_are_an_object_or_unreadable(data: bytes):
    with contextlib.suppress(UnreadablePayload):
        assert isinstance(piped(data), dict)


@given(call=CALLS, cut=st.integers(0, 60), noise=st.binary(max_size=4))
@QUICK
def test_damaged_json_is_never_read_as_something_else(call: dict, cut: int, noise: bytes):
    whole = json.dumps(call).encode()
    data = whole[: max(0, len(whole) - cut)] + noise
    try:
        expected = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        expected = None
    try:
        assert repr(piped(data)) == repr(expected)
    except UnreadablePayload:
        assert not isinstance(expected, dict)


@given(data=st.binary(max_size=200), event=st.sampled_from([*BY_NAME]))
@FEW
def test_any_bytes_get_an_answer_of_the_program(shared: HookProject, data: bytes, event: str):
    said = shared.start(event, data)
    assert said.code in (0, 2)
    assert "Traceback" not in said.errors
    if event in ("PreToolUse", "ConfigChange"):
        assert said.denied


@given(call=CALLS, event=st.sampled_from([*BY_NAME]))
@FEW
def test_any_object_gets_an_answer_of_the_program(shared: HookProject, call: dict, event: str):
    said = shared.start(event, json.dumps(call).encode())
    assert said.code in (0, 2)
    assert "has a fault" not in said.errors or "No receipt" in said.errors


@given(call=CALLS, event=st.sampled_from(EVENTS))
@QUICK
def test_no_handler_has_a_fault(shared: HookProject, call: dict, event):
    call = json.loads(json.dumps({**call, "session_id": "fuzz"}))
    said = answer(event, call, str(shared.programs / PROGRAM))
    assert said.code in (0, 2)
    assert said.errors == ""
    assert bool(said.block) == (said.code == 2)


@given(key=st.data(), value=JSON, tool=TOOLS)
@QUICK
def test_any_snapshot_gets_an_answer(fuzzed: HookProject, key, value, tool: str):
    whole = {**fuzzed.snapshot, "mode": "interactive", "role": None}
    name = key.draw(
        st.sampled_from([*whole, "receipts", "briefing", "policy", "elsewhere", "command"])
    )
    fuzzed.save({**whole, name: value})
    call = {
        "tool_name": tool,
        "tool_input": {"file_path": "train.py", "command": "ls"},
        "cwd": str(fuzzed.root),
    }
    said = answer(
        BY_NAME["PreToolUse"],
        {**call, "session_id": "fuzz"},
        str(fuzzed.programs / "run.py"),
    )
    assert said.code in (0, 2)
    assert bool(written(BY_NAME["PreToolUse"], said)) == (said.code == 2)


@given(value=JSON, status=JSON)
@QUICK
def test_whatever_a_run_and_the_snapshot_say_the_lines_for_the_person_are_short(
    fuzzed: HookProject, value, status
):
    runs = ".harness/experiments/*/runs/*/training_status.json"
    known = [{"name": "status", "glob": runs, "writer": "harness"}]
    whole = {**fuzzed.snapshot, "mode": "interactive", "role": None, "artifacts": known}
    fuzzed.save({**whole, "standing": value})
    fuzzed.write(runs.replace("*", "exp-0002", 1).replace("*", "run-01"), json.dumps(status))
    home = Projects().at(str(fuzzed.root))
    for line in (status_line(home), opening_line(home)):
        assert "exp-0002" in line
        assert len(line) <= 200


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> HookProject:
    return HookProject(tmp_path_factory.mktemp("fuzz"))


def judged(project: HookProject, command: str):
    call = {
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "cwd": str(project.root),
        "session_id": "fuzz",
    }
    return answer(BY_NAME["PreToolUse"], call, str(project.programs / "run.py"))


@given(before=SHELL, after=SHELL)
@settings(QUICK, max_examples=500)
def test_what_bash_would_write_is_denied(
    shared: HookProject, scratch: Path, before: str, after: str
):
    """bash itself says whether a plain write amid anything is one; without programs, in a folder of
    its own."""
    command = before + WRITE + after
    said = judged(shared, command)
    assert said.code in (0, 2)
    if writes(scratch, command):
        assert said.code == 2, command


@given(before=st.sampled_from(BEFORE), noise=st.sampled_from(NOISE), after=SHELL)
@settings(QUICK, max_examples=300)
def test_a_plain_write_after_a_whole_command_is_denied(
    shared: HookProject, before: str, noise: str, after: str
):
    assert judged(shared, f"{before}{noise}{WRITE}\n{after}").code == 2


@pytest.mark.parametrize("before", BEFORE)
def test_a_plain_write_is_one_for_bash_too(scratch: Path, before: str):
    assert writes(scratch, before + NOISE[0] + WRITE)


@given(before=st.sampled_from(BEFORE), noise=st.sampled_from(NOISE), after=SHELL)
@FEW
def test_a_plain_write_is_denied_by_the_program(
    shared: HookProject, before: str, noise: str, after: str
):
    assert shared.shell(f"{before}{noise}{WRITE}\n{after}").denied


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scratch")
    (folder / ".claude").mkdir()
    return folder


def writes(folder: Path, command: str) -> bool:
    target = folder / ".claude" / "settings.json"
    target.write_text("before")
    environment = {"PATH": "/nowhere", "HOME": str(folder)}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
        )
    return not target.exists() or target.read_text() != "before"
