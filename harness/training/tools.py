"""Functions that a model may call in its rollouts: the text of files that its specification holds.

TRL parses a call out of what the model wrote, calls the function, and lets the model go on. What it
returned is masked out of every channel (`ComposedTrainer`).
"""

from collections.abc import (
    Callable,
    Sequence,
)
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import (
    DocstringParsingException,
    TypeHintParsingException,
    get_json_schema,
)
from trl import (
    add_response_schema,
    supports_tool_calling,
)

from harness.domain.composition import FrozenFunction
from harness.errors import UsageError
from harness.training.chat import (
    Prompt,
    messages,
)
from harness.training.rewards import of_source

Tool = Callable[..., Any]


def tool_functions(wanted: Sequence[FrozenFunction], tokenizer: Any, folder: Path) -> list[Tool]:
    """Sources are written to `folder`. Raises as `rewards.of_source`, and UsageError for a function
    that is not described as transformers asks, or a chat template without a known form of calls."""
    tools = [of_source(one, folder / f"{place}.py") for place, one in enumerate(wanted)]
    for one in tools:
        try:
            get_json_schema(one)
        except (DocstringParsingException, TypeHintParsingException) as error:
            raise UsageError(
                f"The tool {one.__name__} is not described: {error}",
                hint="Give it a docstring with Args:, and every argument a type.",
                code="tool_undescribed",
            ) from error
    if tools and not _calls_known(tokenizer):
        raise UsageError(
            "The chat template of this model cannot be used with tools: it leaves calls or results"
            " out, or no way to read a call is known.",
            hint="Take a model whose tokenizer has a response_template, or one of the chat"
            " templates that TRL knows, e.g. of Qwen 2.5, Qwen 3, Llama 3.1.",
            code="template_without_tools",
        )
    return tools


def _calls_known(tokenizer: Any) -> bool:
    if not supports_tool_calling(tokenizer):
        return False
    if getattr(tokenizer, "response_template", None) is None:
        try:
            add_response_schema(tokenizer)
        except ValueError:
            return False
    return True


def asked_with(prompt: Prompt, tools: Sequence[Tool]) -> Prompt:
    """The prompt as the template gets it where there are tools."""
    return {"messages": messages(prompt), "tools": list(tools)} if tools else prompt
