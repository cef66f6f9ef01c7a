"""Trajectories of other agents, each form in a small example."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.traces.forms.table import FORMS, form_of
from harness.traces.ingest import Reading, sources
from harness.traces.states import State

CALL = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
OPENAI = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "list it"},
    {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a b"},
    {"role": "assistant", "content": "a and b"},
]
USE = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "a b"}
ANTHROPIC = [
    {"role": "user", "content": "list it"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, USE]},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": [{"type": "text", "text": "a and b"}]},
]
HISTORY = [
    {"role": "system", "content": "be brief", "message_type": "system_prompt"},
    {"role": "user", "content": "list it", "message_type": "observation"},
    {
        "role": "assistant",
        "content": "I list.\n```\nls\n```",
        "thought": "I list.",
        "action": "ls",
    },
    {"role": "user", "content": "a b", "message_type": "observation"},
    {"role": "assistant", "content": "a and b", "action": ""},
]
SWE = {"trajectory": [], "history": HISTORY, "info": {"exit_status": "submitted"}}
STEPS = [
    {"query": HISTORY[:2], "response": "I list.", "action": "ls", "observation": "a b"},
    {"response": "a and b", "action": "", "observation": ""},
]
MINI_TEXT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "list it"},
    {"role": "assistant", "content": "THOUGHT: hm\n```mswea_bash_command\nls\n```"},
    {"role": "user", "content": "a b"},
    {"role": "assistant", "content": "a and b"},
]
ATIF = {
    "schema_version": "ATIF-v1.6",
    "session_id": "run-7",
    "agent": {"name": "terminus", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "list it"},
        {
            "step_id": 2,
            "source": "agent",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": "I list.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
            ],
            "observation": {"results": [{"source_call_id": "c1", "content": "a b"}]},
            "metrics": {"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4},
        },
        {"step_id": 3, "source": "agent", "message": "a and b"},
    ],
}
EXAMPLES: dict[str, tuple[str, str, str]] = {
    "openai": ("messages", "x.jsonl", json.dumps({"messages": OPENAI, "id": "one"})),
    "openai, a message a line": (
        "messages",
        "x.jsonl",
        "".join(f"{json.dumps(message)}\n" for message in OPENAI),
    ),
    "a list of conversations": ("messages", "x.json", json.dumps([{"messages": OPENAI}])),
    "anthropic": (
        "messages",
        "x.jsonl",
        json.dumps({"system": "be brief", "messages": ANTHROPIC}),
    ),
    "swe-agent": ("swe-agent", "task-1.traj", json.dumps(SWE, indent=2)),
    "swe-agent, steps only": (
        "swe-agent",
        "task-1.traj",
        json.dumps({"trajectory": STEPS, "info": {}}),
    ),
    "mini-swe-agent, text": (
        "mini-swe-agent",
        "task-1.traj.json",
        json.dumps({"messages": MINI_TEXT, "trajectory_format": "mini-swe-agent-1", "info": {}}),
    ),
    "mini-swe-agent, tool calls": (
        "mini-swe-agent",
        "task-1.traj.json",
        json.dumps({"messages": OPENAI, "trajectory_format": "mini-swe-agent-1.1", "info": {}}),
    ),
    "atif": ("atif", "trajectory.json", json.dumps(ATIF, indent=1)),
}


def states_of(path: Path) -> tuple[list[State], Reading]:
    reading = Reading(sources([path]))
    return [state for _, _, state in reading.states()], reading


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_form_gives_the_same_two_states(tmp_path: Path, name: str):
    form, file, held = EXAMPLES[name]
    (tmp_path / file).write_text(held)
    (first, second), reading = states_of(tmp_path)
    assert [tally.form for tally in reading.tallies] == [form]
    assert "list it" in [message["content"] for message in first.added]
    (call,) = [block for block in first.action if block["type"] == "tool_use"]
    assert (call["name"], call["input"]) == ("bash", {"command": "ls"})
    assert [result["content"] for result in first.results] == ["a b"]
    assert (second.after, second.action) == (first.id, [{"type": "text", "text": "a and b"}])
    (tally,) = reading.tallies
    assert (tally.unique_msg_ids, tally.tool_use_without_result) == (2, 0)
    assert sum(notes.prompts for notes in reading.book.sessions.values()) == 1


def test_every_form_of_the_table_has_an_example():
    assert {form.name for form in FORMS} == {form for form, _, _ in EXAMPLES.values()} | {
        "claude-code"
    }


def test_reasoning_is_thinking_usage_and_the_end_are_kept(tmp_path: Path):
    (tmp_path / "trajectory.json").write_text(json.dumps(ATIF))
    first, _ = states_of(tmp_path)[0]
    assert first.action[0] == {"type": "thinking", "thinking": "hm"}
    assert (first.model, first.thread.session) == ("m", "run-7")
    assert first.usage == {
        "input_tokens": 6,
        "output_tokens": 3,
        "cache_read_input_tokens": 4,
    }
    (tmp_path / "task-1.traj").write_text(json.dumps(SWE))
    (tmp_path / "trajectory.json").unlink()
    assert states_of(tmp_path)[0][-1].outcome == {"exit": "submitted", "then": "end"}


def test_a_copy_and_a_common_beginning_count_once(tmp_path: Path):
    longer = [
        *OPENAI,
        {"role": "user", "content": "thanks"},
        {"role": "assistant", "content": "!"},
    ]
    for name, messages in {"a": OPENAI, "b": OPENAI, "c": longer}.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"messages": messages}))
    states, reading = states_of(tmp_path)
    assert len(states) == 3
    assert states[2].after == states[1].id
    assert sum(tally.copied for tally in reading.tallies) == 4


@pytest.mark.parametrize(
    "held",
    ["", "{", "[]", "7", '{"a": 1}', '{"messages": 3}', '{"steps": [], "schema_version": "1"}'],
)
def test_what_is_no_trajectory_has_no_form(tmp_path: Path, held: str):
    path = tmp_path / "x.json"
    path.write_text(held)
    assert form_of(path)[0] is None


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant"},
        {"role": "assistant", "content": 3, "tool_calls": [4, {"function": 5}]},
        {"role": "tool", "content": [{"type": "image"}, None]},
        {"role": "user", "content": [{"type": "tool_result"}]},
        {"role": 5},
        "text",
    ],
)
def test_a_message_of_any_shape_is_read(tmp_path: Path, message: Any):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"messages": [OPENAI[1], message, OPENAI[-1]]}))
    assert states_of(path)[0][-1].action[-1]["text"] == "a and b"


@pytest.mark.parametrize("odd", [5, "many", [], {}, None, True, -1, 1e300])
@pytest.mark.parametrize("name", ["metrics", "tool_calls", "observation", "prompt_tokens"])
def test_a_step_of_any_shape_is_read(tmp_path: Path, name: str, odd: Any):
    step = {**ATIF["steps"][1], "metrics": {"prompt_tokens": 10}}
    inner = step["metrics"] if name == "prompt_tokens" else step
    inner[name] = odd
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({**ATIF, "steps": [ATIF["steps"][0], step, ATIF["steps"][2]]}))
    states, _ = states_of(path)
    assert states[-1].action[-1]["text"] == "a and b"
    assert all(type(count) is int and count >= 0 for count in states[0].usage.values())


def test_messages_a_line_of_several_conversations_are_kept_apart(tmp_path: Path):
    path = tmp_path / "x.jsonl"
    rows = [
        {"conversation_id": name, "id": f"{name}{number}", **message}
        for number, message in enumerate((OPENAI[1], OPENAI[-1]))
        for name in ("a", "b")
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    states, reading = states_of(path)
    assert {state.thread.session for state in states} <= {"a", "b"}
    assert sorted(reading.book.sessions) == ["a", "b"]
    (tally,) = reading.tallies
    assert (tally.sessions, tally.copied, len(states)) == (2, 1, 1)
