"""What a model may call in its rollouts: functions, and the methods of an environment, from the
text of files that its specification holds.

TRL parses a call out of what the model wrote, calls the function, and lets the model go on. What it
returned is masked out of every channel (`ComposedTrainer`).
"""

import inspect
from collections.abc import (
    Callable,
    Iterable,
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

from harness.domain.composition import FrozenFunction, is_action
from harness.errors import RunError, UsageError
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
    _require_described(tools)
    if tools:
        _require_calls(tokenizer)
    return tools


def environment_class(
    wanted: FrozenFunction | None, tokenizer: Any, folder: Path
) -> type[Any] | None:
    """What TRL makes an instance of for each rollout of a batch. Raises as `tool_functions`."""
    if wanted is None:
        return None
    made = of_source(wanted, folder / "environment.py")
    if not (isinstance(made, type) and callable(getattr(made, "reset", None))):
        raise UsageError(
            f"{wanted.file} has no class {wanted.name} with a method reset.",
            hint="Give it `reset(self, **row)`, which gets the row's keys.",
            code="environment_without_reset",
        )
    _require_described(actions_of(made))
    _require_calls(tokenizer)
    return made


def actions_of(environment: type[Any] | None) -> list[Tool]:
    """The methods that the model is told of, of no instance."""
    if environment is None:
        return []
    found = inspect.getmembers(environment, inspect.isfunction)
    return [one.__get__(object()) for name, one in found if is_action(name)]


def require_one_start(prompts: Sequence[Any], group: int) -> None:
    """Raises UsageError where the rollouts of one row, `group` of them, were told different things:
    rewards are compared within a row, and one may be shown another's answer."""
    for first in range(0, len(prompts), group):
        if any(one != prompts[first] for one in prompts[first : first + group]):
            raise UsageError(
                "The environment told two rollouts of one row different things.",
                hint="What reset does must follow from the row alone.",
                code="environment_differs",
            )


def require_room(prompts: Iterable[Sequence[int]], generated: int, longest: int) -> None:
    """Raises RunError where a prompt with what an environment added leaves no room."""
    if (most := max(map(len, prompts)) + generated) > longest:
        raise RunError(
            f"A prompt with the environment's words and an answer may have {most} tokens; at most"
            f" {longest} are trained on.",
            hint="Say less in reset, or set max_tokens lower or max_seq_length higher.",
            code="prompt_too_long",
        )


def _require_described(tools: Iterable[Tool]) -> None:
    for one in tools:
        try:
            get_json_schema(one)
        except (DocstringParsingException, TypeHintParsingException) as error:
            raise UsageError(
                f"The tool {one.__name__} is not described: {error}",
                hint="Give it a docstring with Args:, and every argument a type.",
                code="tool_undescribed",
            ) from error


def _require_calls(tokenizer: Any) -> None:
    if not _calls_known(tokenizer):
        raise UsageError(
            "The chat template of this model cannot be used with tools: it leaves calls or results"
            " out, or no way to read a call is known.",
            hint="Take a model whose tokenizer has a response_template, or one of the chat"
            " templates that TRL knows, e.g. of Qwen 2.5, Qwen 3, Llama 3.1.",
            code="template_without_tools",
        )


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
