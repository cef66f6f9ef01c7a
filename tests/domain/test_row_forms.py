"""The layouts of TRL and Hugging Face, each made the same row."""

from typing import Any

import pytest

from harness.domain.row_forms import TEMPLATE_MARKS, flat, layout_of, one_form

ASK, YES, NO = (
    {"role": "user", "content": "Is it?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "assistant", "content": "No."},
)
PAIR = {"prompt": "Is it?", "chosen": "Yes.", "rejected": "No."}
SAME: dict[str, dict[str, Any]] = {
    "text": PAIR,
    "conversational": {"prompt": [ASK], "chosen": [YES], "rejected": [NO]},
    "prompt in the answers": {"chosen": [ASK, YES], "rejected": [ASK, NO]},
    "hh": {
        "chosen": "\n\nHuman: Is it?\n\nAssistant: Yes.",
        "rejected": "\n\nHuman: Is it?\n\nAssistant: No.",
    },
}


@pytest.mark.parametrize("layout", SAME)
def test_each_layout_of_a_pair_is_the_same_row(layout: str):
    row = {"id": "r1", "score": 4, **SAME[layout]}
    assert one_form(row) == {"id": "r1", "score": 4, **PAIR}
    assert layout_of(row) == layout


def test_ultrafeedback_with_its_prompt_beside_the_conversations():
    row = {"prompt": "Is it?", "chosen": [ASK, YES], "rejected": [ASK, NO], "messages": [ASK, YES]}
    made = one_form(row)
    assert {name: made[name] for name in PAIR} == PAIR


def test_messages_are_a_prompt_and_what_the_last_answer_says():
    made = one_form({"messages": [ASK, YES, {"role": "user", "content": "Sure?"}, NO]})
    assert made["prompt"] == [ASK, YES, {"role": "user", "content": "Sure?"}]
    assert made["completion"] == "No."
    assert layout_of({"messages": [ASK, YES]}) == "messages"


def test_a_shared_first_answer_is_of_the_prompt_and_a_different_one_is_not():
    more = {"role": "user", "content": "Sure?"}
    made = one_form({"chosen": [ASK, YES, more, YES], "rejected": [ASK, YES, more, NO]})
    assert made["prompt"] == [ASK, YES, more]
    made = one_form({"chosen": [ASK, YES, more, YES], "rejected": [ASK, NO, more, YES]})
    assert made["prompt"] == "Is it?"
    assert made["chosen"] == [YES, more, YES]


def test_system_and_tools_stay_with_the_prompt():
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    made = one_form({**PAIR, "system": "Be brief.", "tools": tools})
    assert made["prompt"] == {
        "messages": [{"role": "system", "content": "Be brief."}, ASK],
        "tools": tools,
    }
    assert flat(made["prompt"]) == "Be brief.\nIs it?"


def test_a_call_of_a_tool_is_an_answer():
    assert flat([{"role": "assistant", "content": "a", "tool_calls": 5}]) == "a"
    assert flat([1.5, None, [], {"role": "user", "content": "q"}]) == "q"
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "ls"}}]}
    made = one_form({"prompt": [ASK], "completion": [call]})
    assert made["completion"] == [call]
    assert "ls" in flat(made["completion"])


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"prompt": 3, "chosen": []},
        {"messages": [ASK]},
        {"messages": "text"},
        {"prompt": [{"role": "nobody"}]},
        {"chosen": [{"content": "x"}], "rejected": [5]},
    ],
)
def test_what_is_no_layout_stays_as_it_is(row: dict[str, Any]):
    assert one_form(row) == row


def test_equal_answers_still_have_a_prompt():
    made = one_form({"chosen": [ASK, YES], "rejected": [ASK, YES]})
    assert made == {"prompt": "Is it?", "chosen": "Yes.", "rejected": "Yes."}


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>user\nHi<|im_end|>",
        "[INST] Hi [/INST]",
        "<start_of_turn>user",
        "<|begin_of_text|><|start_header_id|>",
    ],
)
def test_what_a_template_wrote_is_seen(text: str):
    assert TEMPLATE_MARKS.search(text)
    assert TEMPLATE_MARKS.search("a [list] of <tags> | and INST") is None
