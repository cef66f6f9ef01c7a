"""Rows of prompts and responses: read, as tokens, and compared with the right answer.

As tokens: the chat template once, one BOS at most, EOS after the response.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.row_forms import flat, one_form
from harness.errors import UsageError
from harness.files import sha256_bytes

Prompt = str | list[dict[str, Any]] | dict[str, Any]
"""One question, a conversation, or {messages, tools}: as `domain.row_forms` gives it."""
Response = str | list[dict[str, Any]]
_EDGE = " \t\r\n.,;:!?\"'`*"


class RowRefusedError(Exception):
    """The row cannot be used as it is; `reason` is the name under which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class ChatTurn:
    """One prompt with one response, as token ids; together they keep the limit of `turn`."""

    prompt: list[int]
    response: list[int]
    """Ends with EOS unless it was cut."""
    cut: bool = False

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.response


@dataclass(frozen=True, kw_only=True)
class DatasetRows:
    rows: list[dict[str, Any]]
    sha256: str
    """Of the bytes that the rows were read from."""


def read_rows(path: Path, *texts: str) -> DatasetRows:
    """The JSON objects of a file, one a line, with the hash of the same bytes. Raises UsageError
    for a line that is not an object, or has no text under one of the keys `texts`."""
    data = path.read_bytes()
    rows = []
    for number, line in enumerate(data.decode("utf-8-sig").split("\n"), 1):
        if line.strip():
            rows.append(one_form(_row(line, number, path.name)))
            _require(rows[-1], number, path.name, texts)
    if not rows:
        raise UsageError(
            f"{path.name} holds no rows.",
            hint="Give a file with at least one.",
            code="dataset_empty",
        )
    return DatasetRows(rows=rows, sha256=sha256_bytes(data))


def _row(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _bad(name, number, f"is not JSON ({error})") from error
    if not isinstance(row, dict):
        raise _bad(name, number, "is not a JSON object")
    return row


def _require(row: dict[str, Any], number: int, name: str, texts: tuple[str, ...]) -> None:
    missing = [key for key in texts if not (isinstance(row.get(key), str) or flat(row.get(key)))]
    if missing:
        raise _bad(name, number, f"has no text under {', '.join(missing)}")


def _bad(name: str, number: int, what: str) -> UsageError:
    return UsageError(
        f"Line {number} of {name} {what}.",
        hint="Fix it; docs/training-programs.md has the format.",
        code="dataset_row",
    )


def messages(prompt: Prompt, response: Response | None = None) -> list[dict[str, Any]]:
    """The conversation; one text is one user's message, one answer one assistant's."""
    asked = _of("user", prompt["messages"] if isinstance(prompt, dict) else prompt)
    return asked if response is None else [*asked, *_of("assistant", response)]


def _of(role: str, said: Response) -> list[dict[str, Any]]:
    return [{"role": role, "content": said}] if isinstance(said, str) else list(said)


def _tools(prompt: Prompt) -> dict[str, Any]:
    """What the template gets besides the messages."""
    return {"tools": prompt["tools"]} if isinstance(prompt, dict) else {}


def prompt_ids(tokenizer: Any, prompt: Prompt) -> list[int]:
    """Tokens up to where the answer begins. Raises UsageError without a chat template."""
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            "The tokenizer has no chat template, so the form of a prompt is unknown.",
            hint=(
                "Use an instruction-tuned model, or put a chat_template.jinja into the model's"
                " folder."
            ),
            code="chat_template_missing",
        )
    return _ids(tokenizer, messages(prompt), add_generation_prompt=True, **_tools(prompt))


def turn(tokenizer: Any, prompt: Prompt, response: Response, *, limit: int) -> ChatTurn:
    """Prompt and response as tokens; the response's end is cut to keep both within `limit`.

    Raises RowRefusedError: `response_empty`, `response_empty_after_truncation`, or
    `template_changes_prompt`, when the template renders an answered prompt differently, so that
    the prompt's end is unknown.
    """
    if not flat(response).strip():
        raise RowRefusedError("response_empty")
    # The response's tokens are the rest of the whole conversation's. Tokens of the response alone
    # would differ: a tokenizer may join characters across the border.
    before = prompt_ids(tokenizer, prompt)
    whole = _ids(tokenizer, messages(prompt, response), **_tools(prompt))
    if whole[: len(before)] != before:
        raise RowRefusedError("template_changes_prompt")
    answer = ended(whole[len(before) :], tokenizer.eos_token_id)
    kept = answer[: max(0, limit - len(before))]
    if not kept:
        raise RowRefusedError("response_empty_after_truncation")
    return ChatTurn(prompt=before, response=kept, cut=len(kept) < len(answer))


def pair(
    tokenizer: Any, prompt: Prompt, chosen: Response, rejected: Response, *, limit: int
) -> tuple[ChatTurn, ChatTurn]:
    """(chosen, rejected). Raises RowRefusedError as `turn`, and `pair_equal` or
    `pair_equal_after_truncation`."""
    if flat(chosen).strip() == flat(rejected).strip():
        raise RowRefusedError("pair_equal")
    better, worse = (turn(tokenizer, prompt, text, limit=limit) for text in (chosen, rejected))
    if better.response == worse.response:
        raise RowRefusedError("pair_equal_after_truncation")
    return better, worse


def ended(response: Sequence[int], eos: int) -> list[int]:
    """The response up to its last EOS, which is added where there is none."""
    # Templates put a line end after EOS, which is no part of the answer.
    tokens = list(response)
    while eos in tokens and tokens[-1] != eos:
        tokens.pop()
    return tokens if tokens and tokens[-1] == eos else [*tokens, eos]


def is_answer(response: str, answer: str) -> bool:
    """Whether they are equal up to case, white space and punctuation at both ends."""
    return _normal(response) == _normal(answer)


def contains_answer(response: str, answer: str) -> bool:
    """Whether the answer stands in the response as whole words."""
    words = _normal(answer)
    # \b would not do: an answer may begin or end with a character that is not part of a word.
    pattern = rf"(?<!\w){re.escape(words)}(?!\w)"
    return bool(words) and re.search(pattern, _normal(response)) is not None


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_EDGE)


def _ids(tokenizer: Any, conversation: list[dict[str, str]], **more: Any) -> list[int]:
    """Tokens of the conversation; BOS once at the start where template or tokenizer want one."""
    encoded = tokenizer.apply_chat_template(conversation, tokenize=True, return_dict=True, **more)
    ids = list(encoded["input_ids"])
    bos = tokenizer.bos_token_id
    if bos is None:
        return ids
    # The template wrote one, and the tokenizer put another before it.
    while ids[:2] == [bos, bos]:
        ids.pop(0)
    wanted = tokenizer("a").input_ids[:1] == [bos]
    return [bos, *ids] if wanted and ids[:1] != [bos] else ids
