"""Transcripts as they are found: reported cases, and files that are torn or repeat themselves.

`case_NN` in a name is the number of a reported case, a transcript that an earlier tool misread:
42 one answer on several rows, 43 compactions, 44 subagents. Its files are inputs/case-NN.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import NotFoundError
from harness.traces.events import (
    AgentKind,
    Answer,
    ApiError,
    Compaction,
    ToolCall,
    ToolResult,
    TracedSession,
    TraceEvent,
    UserPrompt,
)
from harness.traces.transcripts import read_session, session_files
from tests.traces.rows import Transcript

INPUTS = Path(__file__).parent / "inputs"
SHARED = Path(__file__).parents[3] / "shared" / "cases" / "traces"


def of(kind: type[TraceEvent], session: TracedSession) -> list[Any]:
    threads = (session.events, *(agent.events for agent in session.subagents))
    return [event for events in threads for event in events if isinstance(event, kind)]


def output_tokens(session: TracedSession) -> int:
    return sum(answer.usage.get("output_tokens", 0) for answer in of(Answer, session))


def test_case_42_one_answer_on_several_rows_is_counted_once_with_its_last_usage():
    session = read_session(INPUTS / "case-42/stream.jsonl")
    first, second = of(Answer, session)
    assert output_tokens(session) == 159 + 7
    assert [block["type"] for block in first.blocks] == ["thinking", "text", "tool_use"]
    assert [block["text"] for block in second.blocks] == ["x", "y"]
    assert [(call.id, call.tool, call.input, call.cwd) for call in of(ToolCall, session)] == [
        ("toolu_1", "Bash", {"command": "ls"}, "/tmp/p")
    ]
    assert [(result.call, result.text, result.error) for result in of(ToolResult, session)] == [
        ("toolu_1", "a", False)
    ]


def test_case_43_a_summary_is_no_prompt_and_nothing_before_it_is_lost():
    session = read_session(INPUTS / "case-43/compact.jsonl")
    assert [prompt.text for prompt in of(UserPrompt, session)] == ["first ask", "second ask"]
    assert len(of(Answer, session)) == 2
    assert len(of(Compaction, session)) == 1
    assert (session.skipped, session.damaged) == ({"user/not typed": 1}, 0)


def test_case_43_rows_that_are_written_again_after_a_compaction_count_once():
    session = read_session(INPUTS / "case-43/compact_twice_replayed.jsonl")
    assert len(of(UserPrompt, session)) == len(of(Answer, session)) == 1
    assert len(of(Compaction, session)) == 2
    assert output_tokens(session) == 5


def test_case_44_a_subagent_belongs_to_its_session_and_a_warm_up_is_no_task():
    assert list(session_files(INPUTS / "case-44")) == [INPUTS / "case-44/S.jsonl"]
    session = read_session(INPUTS / "case-44/S.jsonl")
    assert session.id == "S"
    (task,) = [agent for agent in session.subagents if agent.kind is AgentKind.TASK]
    assert (task.id, task.agent_type, task.call) == ("ag1", "x", "toolu_T")
    assert [agent.kind for agent in session.subagents] == [AgentKind.TASK, AgentKind.WARM_UP]
    assert output_tokens(session) == 54
    assert [prompt.text for prompt in of(UserPrompt, session)] == ["delegate"]


def test_a_subagent_is_joined_by_its_meta_file_then_by_the_result_that_names_it_and_else_unjoined(
    tmp_path: Path,
):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("go")
    for number in (
        1,
        2,
        3,
    ):  # the same prompt each time: only meta file and result can tell them apart
        main.call(f"t{number}", "Agent", subagent_type=f"type-{number}", prompt="look")
    main.result("t2", toolUseResult={"agentId": "two", "status": "completed"})
    for name in ("one", "two", "three"):
        Transcript(
            tmp_path / f"s/subagents/agent-{name}.jsonl", session="s", cwd="/p", agent=name
        ).prompt("look")
    (tmp_path / "s/subagents/agent-one.meta.json").write_text(
        '{"agentType": "rev", "toolUseId": "t1"}'
    )
    agents = {
        agent.id: (agent.call, agent.agent_type) for agent in read_session(main.path).subagents
    }
    assert agents == {"one": ("t1", "rev"), "two": ("t2", "type-2"), "three": (None, None)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("acompact-a94287", AgentKind.COMPACTION),
        ("aprompt_suggestion-22", AgentKind.PROMPT_SUGGESTION),
    ],
)
def test_agents_of_claude_codes_own_are_no_tasks(tmp_path: Path, name: str, kind: AgentKind):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.call("t1", "Task", prompt="x")
    Transcript(
        tmp_path / f"s/subagents/agent-{name}.jsonl", session="s", cwd="/p", agent=name
    ).prompt("x")
    (agent,) = read_session(main.path).subagents
    assert (agent.kind, agent.call) == (kind, None)


def test_a_torn_last_line_is_no_damage_and_two_rows_on_one_line_are_both_read(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    for text in ("one", "two", "three"):
        main.prompt(text)
    first, second, third = main.path.read_text().splitlines()
    main.path.write_text(f"{first}{second}\n{third[:-20]}")
    session = read_session(main.path)
    assert [prompt.text for prompt in of(UserPrompt, session)] == ["one", "two"]
    assert session.damaged == 0


def test_a_row_glued_to_a_torn_one_is_read_and_the_loss_is_counted(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.call("t1", "Bash", command="ls")
    main.prompt("two")
    first, second = main.path.read_text().splitlines()
    main.path.write_text(f"{first[: len(first) // 2 + 40]}{second}\n")
    session = read_session(main.path)
    assert [type(event) for event in session.events] == [UserPrompt]
    assert session.damaged == 1


def test_api_errors_are_no_answers_and_unknown_rows_are_counted(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    failed = {
        "id": "e",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error: 500"}],
    }
    main.row("assistant", message=failed, isApiErrorMessage=True)
    main.row("system", subtype="api_error")
    main.row("a-type-of-tomorrow")
    session = read_session(main.path)
    assert [event.text for event in of(ApiError, session)] == ["API Error: 500"]
    assert of(Answer, session) == []
    assert session.skipped == {"system/api_error": 1, "a-type-of-tomorrow": 1}


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>/clear</command-name>",
        "<local-command-stdout>x</local-command-stdout>",
        "[Request interrupted by user for tool use]",
        "<task-notification>done</task-notification>",
    ],
)
def test_echoes_and_interrupts_are_no_prompts(tmp_path: Path, text: str):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt(text)
    main.prompt("a note of the CLI", isMeta=True)
    assert of(UserPrompt, read_session(main.path)) == []


def test_what_is_said_to_an_agent_in_the_main_file_is_no_prompt_of_a_person(tmp_path: Path):
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("mine")
    main.prompt("to the agent", isSidechain=True, agentId="a1")
    assert [prompt.text for prompt in of(UserPrompt, read_session(main.path))] == ["mine"]


@pytest.mark.parametrize(
    "row",
    [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": "text", "usage": 3}},
        {
            "type": "assistant",
            "message": {
                "id": 7,
                "content": [{"type": "tool_use"}, {"type": "tool_use", "id": "t"}, 5],
            },
        },
        {"type": "user", "message": {"content": None}},
        {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "content": [{"type": "image"}]}]},
        },
        {"type": "user", "message": []},
        {"type": 3, "uuid": 4, "timestamp": 5, "cwd": [], "isSidechain": True, "agentId": 9},
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": 1, "parentUuid": {}},
        [],
        "text",
    ],
)
def test_a_row_of_any_shape_is_read(tmp_path: Path, row: Any):
    path = tmp_path / "s.jsonl"
    path.write_text(
        json.dumps(row)
        + "\n"
        + json.dumps({"type": "user", "uuid": "u", "message": {"content": "hi"}})
        + "\n"
    )
    assert [prompt.text for prompt in of(UserPrompt, read_session(path))][-1] == "hi"


def test_no_file_is_said_and_a_subagents_file_that_cannot_be_read_is_counted(tmp_path: Path):
    with pytest.raises(NotFoundError):
        read_session(tmp_path / "none.jsonl")
    main = Transcript(tmp_path / "s.jsonl", session="s", cwd="/p")
    main.prompt("x")
    (tmp_path / "s/subagents/agent-x.jsonl").mkdir(parents=True)
    assert read_session(main.path).skipped == {"subagent file": 1}


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the collected transcripts are not beside this repository"
)
def test_collected_transcripts_give_the_counted_numbers():
    with (SHARED / "oracle.tsv").open() as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len(rows) > 10
    for row in rows:
        session = read_session(SHARED / row["file"])
        counted = {
            "unique_msg_ids": len(of(Answer, session)) + len(of(ApiError, session)),
            "tool_use_unique_ids": len(of(ToolCall, session)),
            "tool_result_rows": len(of(ToolResult, session)),
            "tool_result_errors": sum(result.error for result in of(ToolResult, session)),
            "human_prompts": len(of(UserPrompt, session)),
            "compact_boundaries": len(of(Compaction, session)),
            "out_tokens_last_wins": output_tokens(session),
        }
        assert counted == {name: int(row[name]) for name in counted}, row["file"]
