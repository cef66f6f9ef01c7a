"""Prompts and responses as tokens: the chat template once, one BOS at most, EOS after the
response."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError


class RowRefusedError(Exception):
    """The row cannot be used as it is; `reason` is the name under which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One prompt with one response, as token ids; together at most as long as the limit that they
    were made with."""

    prompt: list[int]
    response: list[int]
    """Ends with EOS unless it was cut."""

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.response

    @property
    def labels(self) -> list[int]:
        """`ids` with -100 where the prompt stands: nothing is learned there."""
        return [-100] * len(self.prompt) + self.response


def messages(prompt: str, response: str | None = None) -> list[dict[str, str]]:
    said = [{"role": "user", "content": prompt}]
    return said if response is None else [*said, {"role": "assistant", "content": response}]


def prompt_ids(tokenizer: Any, prompt: str) -> list[int]:
    """Up to the place where the answer begins. Raises UsageError where the tokenizer has no chat
    template."""
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            "The tokenizer has no chat template, so it is unknown how the model is spoken to.",
            hint=(
                "Use an instruction-tuned model, or put a chat_template.jinja into the model's"
                " folder."
            ),
            code="chat_template_missing",
        )
    return _ids(tokenizer, messages(prompt), add_generation_prompt=True)


def turn(tokenizer: Any, prompt: str, response: str, *, limit: int) -> Turn:
    """The response is cut at its end where both are longer than `limit` tokens.

    Raises RowRefusedError: `response_empty`, `response_empty_after_truncation`, or
    `template_changes_prompt`, where the template renders the prompt differently once it is
    answered, so that its end is not known.
    """
    if not response.strip():
        raise RowRefusedError("response_empty")
    before = prompt_ids(tokenizer, prompt)
    whole = _ids(tokenizer, messages(prompt, response))
    if whole[: len(before)] != before:
        raise RowRefusedError("template_changes_prompt")
    kept = ended(whole[len(before) :], tokenizer.eos_token_id)[: max(0, limit - len(before))]
    if not kept:
        raise RowRefusedError("response_empty_after_truncation")
    return Turn(prompt=before, response=kept)


def pair(
    tokenizer: Any, prompt: str, chosen: str, rejected: str, *, limit: int
) -> tuple[Turn, Turn]:
    """(chosen, rejected). Raises RowRefusedError as `turn`, and `pair_equal` or
    `pair_equal_after_truncation`."""
    if chosen.strip() == rejected.strip():
        raise RowRefusedError("pair_equal")
    better, worse = (turn(tokenizer, prompt, text, limit=limit) for text in (chosen, rejected))
    if better.response == worse.response:
        raise RowRefusedError("pair_equal_after_truncation")
    return better, worse


def ended(response: Sequence[int], eos: int) -> list[int]:
    """Up to the last EOS, with one where there is none: templates put a line end after it, which is
    no answer."""
    found = list(response)
    while eos in found and found[-1] != eos:
        found.pop()
    return found if found and found[-1] == eos else [*found, eos]


def _ids(tokenizer: Any, said: list[dict[str, str]], **more: Any) -> list[int]:
    """Tokens of the conversation; BOS once at the start where template or tokenizer want one."""
    found = list(
        tokenizer.apply_chat_template(said, tokenize=True, return_dict=True, **more)["input_ids"]
    )
    bos = tokenizer.bos_token_id
    if bos is None:
        return found
    while found[:2] == [
        bos,
        bos,
    ]:  # the template wrote one, and the tokenizer put another before it
        found.pop(0)
    wanted = tokenizer("a").input_ids[:1] == [bos]
    return [bos, *found] if wanted and found[:1] != [bos] else found
