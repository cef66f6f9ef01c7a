"""Rows as tokens: one BOS, EOS once at the end, the prompt masked, rows without a lesson refused by
name."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.errors import UsageError
from harness.training.chat import RowRefusedError, ended, pair, prompt_ids, read_rows, turn
from harness.training.collators import labels
from harness.training.language_model import load_tokenizer
from tests.training.tiny_model import save_tiny_model

BOS, EOS = 1, 2


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(save_tiny_model(tmp_path_factory.mktemp("tiny")))


def test_a_turn_is_the_template_once(tokenizer: Any) -> None:
    found = turn(tokenizer, "Hi?", "Yes.", limit=100)
    assert (
        tokenizer.decode(found.prompt)
        == "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer.decode(found.response) == "Yes.<|im_end|>"
    assert labels(found) == [-100] * len(found.prompt) + found.response
    assert found.ids[:2].count(BOS) == 1
    assert labels(found).count(EOS) == 1  # learned, although it is the padding token, too


def test_case_39_a_bos_of_template_and_tokenizer_is_one(tokenizer: Any, tmp_path: Path) -> None:
    doubled = load_tokenizer(save_tiny_model(tmp_path))
    doubled.chat_template = "{{ '<|im_start|><|im_start|>' }}" + doubled.chat_template
    assert prompt_ids(doubled, "Hi?") == prompt_ids(tokenizer, "Hi?")


def test_without_a_template_nothing_is_guessed(tmp_path: Path) -> None:
    bare = load_tokenizer(save_tiny_model(tmp_path))
    bare.chat_template = None
    with pytest.raises(UsageError, match="no chat template"):
        prompt_ids(bare, "Hi?")


@pytest.mark.parametrize(
    ("chosen", "rejected", "limit", "reason"),
    [
        ("Yes.", "No.", 10, "response_empty_after_truncation"),
        ("Yes, sir.", "Yes, madam.", 48, "pair_equal_after_truncation"),
        ("Yes.", " Yes. ", 100, "pair_equal"),
        (" ", "No.", 100, "response_empty"),
    ],
)
def test_case_39_a_pair_without_a_lesson_is_refused(
    tokenizer: Any, chosen: str, rejected: str, limit: int, reason: str
) -> None:
    length = len(prompt_ids(tokenizer, "Hi?"))
    with pytest.raises(RowRefusedError) as caught:
        pair(tokenizer, "Hi?", chosen, rejected, limit=length + 5 if limit == 48 else limit)
    assert caught.value.reason == reason


def test_a_long_response_is_cut_and_has_no_end(tokenizer: Any) -> None:
    length = len(prompt_ids(tokenizer, "Hi?"))
    found = turn(tokenizer, "Hi?", "Yes.", limit=length + 3)
    assert (len(found.ids), found.response[-1] == EOS) == (length + 3, False)


@pytest.mark.parametrize(
    ("given", "right"),
    [([7, EOS, 9], [7, EOS]), ([7], [7, EOS]), ([7, EOS], [7, EOS]), ([], [EOS])],
)
def test_a_response_ends_once(given: list[int], right: list[int]) -> None:
    assert ended(given, EOS) == right


def test_a_template_that_changes_an_answered_prompt_is_refused(tmp_path: Path) -> None:
    changing = load_tokenizer(save_tiny_model(tmp_path))
    changing.chat_template = "{{ messages | length }}" + changing.chat_template
    with pytest.raises(RowRefusedError, match="template_changes_prompt"):
        turn(changing, "Hi?", "Yes.", limit=100)


def test_a_conversation_is_the_template_over_all_its_messages(tokenizer: Any) -> None:
    prompt = [
        {"role": "system", "content": "Brief."},
        {"role": "user", "content": "Hi?"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Go."},
    ]
    found = turn(tokenizer, prompt, "Gone.", limit=200)
    whole = tokenizer.apply_chat_template(
        [*prompt, {"role": "assistant", "content": "Gone."}], tokenize=True, return_dict=True
    )
    assert found.ids == whole["input_ids"][: len(found.ids)]
    assert tokenizer.decode(found.response) == "Gone.<|im_end|>"


def test_tools_reach_the_template_in_prompt_and_answer(tmp_path: Path) -> None:
    knowing = load_tokenizer(save_tiny_model(tmp_path))
    listed = "{% if tools %}{{ 'tools ' + tools[0]['function']['name'] }}{% endif %}"
    knowing.chat_template = listed + knowing.chat_template
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    prompt = {"messages": [{"role": "user", "content": "Hi?"}], "tools": tools}
    assert "tools ls" in knowing.decode(turn(knowing, prompt, "Yes.", limit=200).prompt)


def test_a_cut_answer_says_so(tokenizer: Any) -> None:
    assert turn(tokenizer, "Hi?", "x" * 300, limit=100).cut
    assert not turn(tokenizer, "Hi?", "x", limit=100).cut


def test_rows_of_other_layouts_are_read_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    path.write_text(json.dumps(row) + "\n")
    assert read_rows(path, "prompt").rows == [{"prompt": "a", "completion": "b"}]
