"""Reward functions, by TRL's contract: one number a completion, None where there is nothing to say.

`f(prompts=, completions=, completion_ids=, <a list for each other key of the rows>, ...)`. Those of
ours have a name; those of a project are the text of a file that its specification holds; those of
other packages are entry points, frozen by the hash of the package.
"""

from collections.abc import (
    Callable,
    Sequence,
)
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.domain.composition import FrozenFunction
from harness.errors import (
    RunError,
    UsageError,
)
from harness.files import atomic_write, sha256_bytes
from harness.training.chat import (
    contains_answer,
    is_answer,
)
from harness.training.reward_packages import entry_point, package_sha256

Reward = Callable[..., list[float | None]]


def exact_match(
    completions: Sequence[Any], answer: Sequence[str | None], **_more: Any
) -> list[float | None]:
    """1 where the completion is the answer, else 0."""
    return _each(completions, answer, is_answer)


def contains(
    completions: Sequence[Any], answer: Sequence[str | None], **_more: Any
) -> list[float | None]:
    """1 where the completion contains the answer as whole words, else 0."""
    return _each(completions, answer, contains_answer)


def nothing(completions: Sequence[Any], **_more: Any) -> list[float | None]:
    """For rollouts that nobody scores."""
    return [0.0 for _ in completions]


NAMED: dict[str, Reward] = {"exact_match": exact_match, "contains": contains}


def reward_functions(wanted: Sequence[FrozenFunction], folder: Path) -> list[Reward]:
    """Sources are written to `folder`, where a traceback finds their lines. Raises RunError for a
    source or a package that is not what its hash says, UsageError for one without the function."""
    return [_function(one, folder / f"{place}.py") for place, one in enumerate(wanted)]


def _function(wanted: FrozenFunction, path: Path) -> Reward:
    if wanted.package is not None:
        return _of_package(wanted)
    return NAMED[wanted.name] if wanted.source is None else of_source(wanted, path)


def text_of(completion: Any) -> str:
    """The completion's text; TRL gives messages where the prompt is a conversation. After calls of
    tools it is the last answer's, empty where that is another call."""
    return str(completion if isinstance(completion, str) else completion[-1].get("content") or "")


def _each(
    completions: Sequence[Any],
    answers: Sequence[str | None],
    right: Callable[[str, str], bool],
) -> list[float | None]:
    pairs = zip(completions, answers, strict=True)
    return [
        None if answer is None else float(right(text_of(completion), answer))
        for completion, answer in pairs
    ]


def _of_package(wanted: FrozenFunction) -> Reward:
    assert wanted.package is not None
    found, package = entry_point(wanted.package, wanted.name)
    if (now := package_sha256(package)) != wanted.sha256:
        raise RunError(
            f"The package {wanted.package} {package.version} has the hash {now[:12]}; expected"
            f" {(wanted.sha256 or '')[:12]} of {wanted.version}.",
            hint="Install what the specification names, or make a new specification.",
            code="reward_changed",
        )
    function = found.load()
    if not callable(function):
        raise UsageError(
            f"{found.value} of {wanted.package} is no function.",
            hint="Point the entry point to one.",
            code="reward_missing",
        )
    return named(partial(function), wanted.name)


def of_source(wanted: FrozenFunction, path: Path) -> Callable[..., Any]:
    """The function of the text that was specified, written to `path`. Raises RunError for a text of
    another hash, UsageError for one without the function."""
    data = (wanted.source or "").encode()
    if sha256_bytes(data) != wanted.sha256:
        raise RunError(
            f"The source of the function {wanted.name} has the hash"
            f" {sha256_bytes(data)[:12]}; expected {(wanted.sha256 or '')[:12]}.",
            hint="Make a new specification.",
            code="reward_changed",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, data)
    module = ModuleType(f"given_{wanted.name}")
    module.__file__ = str(path)
    # Not imported: bytecode of an earlier text of the same size and second would be taken.
    exec(compile(data, str(path), "exec"), module.__dict__)
    function = getattr(module, wanted.name, None)
    if not callable(function):
        raise UsageError(
            f"{wanted.file} has no function {wanted.name}.",
            hint="Name one of its functions: `FILE.py:FUNCTION`.",
            code="reward_missing",
        )
    return named(function, wanted.name)


def named(function: Reward, name: str) -> Reward:
    """With the name that metrics show."""
    function.__name__ = name
    return function
