"""Rows of preference and fine-tuning data, in the layouts of TRL and Hugging Face, as one form.

Ours: `prompt` and answers (`chosen`, `rejected`, `completion`, `answer`) as text. A conversation
that is more than one question stays a list of messages; with tools its prompt is {messages, tools}.
"""

import re
from collections.abc import Iterable
from typing import Any, TypeGuard

Row = dict[str, Any]
Messages = list[dict[str, Any]]
ANSWERS = ("chosen", "rejected", "completion")
ROLES = ("system", "developer", "user", "assistant", "tool")
_HH = re.compile(r"\n\n(Human|Assistant):")
TEMPLATE_MARKS = re.compile(
    r"<\|im_(?:start|end)\|>|<\|start_header_id\|>|<\|begin_of_text\|>|<\|(?:user|assistant)\|>"
    r"|<start_of_turn>|\[/?INST\]|<[｜|]User[｜|]>"
)
"""What chat templates write, and nobody asks."""


def one_form(row: Row) -> Row:
    """`row` in our form, other keys as they are; one of an unknown layout unchanged.

    Known: conversational `prompt`, `chosen`, `rejected`, `completion`; `chosen` and `rejected` with
    the prompt in them (UltraFeedback); `messages`; `system` and `tools` beside them; one text with
    "Human:" and "Assistant:" (HH).
    """
    made = _split(dict(row))
    prompt = made.get("prompt")
    if isinstance(prompt, str) and isinstance(made.get("system"), str):
        prompt = [_said("system", made["system"]), _said("user", prompt)]
    elif _is_conversation(prompt) and isinstance(made.get("system"), str):
        prompt = [_said("system", made["system"]), *prompt]
    if _is_conversation(prompt):
        prompt = _single(prompt, "user")
    tools = made.get("tools")
    if isinstance(tools, list) and tools and prompt is not None:
        messages = prompt if isinstance(prompt, list) else [_said("user", prompt)]
        prompt = {"messages": messages, "tools": tools}
    if prompt is not None:
        made["prompt"] = prompt
    for name in ANSWERS:
        if _is_conversation(made.get(name)):
            made[name] = _single(made[name], "assistant")
    return made


def layout_of(row: Row) -> str:
    """The name of a row's layout, for people."""
    if isinstance(row.get("messages"), list) and "chosen" not in row:
        return "messages"
    answers = [row[name] for name in ANSWERS if name in row]
    if any(isinstance(answer, str) and _HH.match(answer) for answer in answers):
        return "hh"
    if answers and all(_is_conversation(answer) for answer in answers):
        whole = any(message.get("role") == "user" for message in answers[0])
        return "prompt in the answers" if whole else "conversational"
    if _is_conversation(row.get("prompt")):
        return "conversational"
    return "text"


def flat(value: Any) -> str:
    """A prompt or an answer of our form as one text, without the names of roles."""
    if isinstance(value, dict):
        value = value.get("messages")
    if isinstance(value, list):
        return "\n".join(filter(None, (_text(each) for each in value if isinstance(each, dict))))
    return value if isinstance(value, str) else ""


def strange_role(value: Any) -> str | None:
    """The first role in a list of messages that is none; a message without one has `None`."""
    if isinstance(value, dict):
        value = value.get("messages")
    messages = value if isinstance(value, list) else []
    told = [each.get("role") for each in messages if isinstance(each, dict)]
    return next((str(role)[:40] for role in told if role not in ROLES), None)


def _split(row: Row) -> Row:
    """Prompt and answers apart."""
    messages = row.get("messages")
    if _is_conversation(messages) and not any(name in row for name in ANSWERS):
        last = _last_answer(messages)
        if last:
            row["prompt"], row["completion"] = messages[:last], messages[last:]
            del row["messages"]
        return row
    pair = [name for name in ("chosen", "rejected") if name in row]
    for name in pair:
        if isinstance(row[name], str) and _HH.match(row[name]) and "prompt" not in row:
            row[name] = _of_hh(row[name])
    answers = [row[name] for name in pair]
    if len(pair) == 2 and all(map(_is_conversation, answers)):
        shared = _shared(answers)
        if shared:
            row["prompt"] = answers[0][:shared]
            row |= {name: row[name][shared:] for name in pair}
    return row


def _shared(answers: list[Messages]) -> int:
    """Messages at the beginning of both, up to where the first answer that differs begins."""
    count = 0
    for one, other in zip(*answers, strict=False):
        if one != other:
            break
        count += 1
    # Equal answers: the prompt is what stands before the last one.
    shortest = min(map(len, answers))
    count = min(count, shortest - 1)
    while count and answers[0][count - 1].get("role") == "assistant":
        count -= 1
    return count


def _of_hh(text: str) -> Messages:
    parts = _HH.split(text)[1:]
    roles = {"Human": "user", "Assistant": "assistant"}
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [_said(roles[who], said.strip()) for who, said in pairs]


def _last_answer(messages: Messages) -> int:
    """Where the last answer begins; 0 when there is none after a question."""
    return next(
        (
            place
            for place in range(len(messages) - 1, 0, -1)
            if messages[place].get("role") == "assistant"
        ),
        0,
    )


def _single(messages: Messages, role: str) -> Messages | str:
    """The text of a lone message of `role` that is nothing but text."""
    if len(messages) == 1 and messages[0].get("role") == role:
        content = messages[0].get("content")
        if isinstance(content, str) and not messages[0].get("tool_calls"):
            return content
    return messages


def _is_conversation(value: Any) -> TypeGuard[Messages]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and each.get("role") in ROLES for each in value)
    )


def _said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(_texts(content))
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    called = [str(call.get("function", call)) for call in calls if isinstance(call, dict)]
    return "\n".join(filter(None, (content if isinstance(content, str) else "", *called)))


def _texts(blocks: Iterable[Any]) -> list[str]:
    return [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
