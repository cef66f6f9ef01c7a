"""What can be wrong with plan.md, in words that tell the person who wrote it what to do."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from harness.artifacts.front_matter import FrontMatter
from harness.errors import PlanError

_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|\A\s*<[^<>]*>\s*\Z|\A\s*(?:\.\.\.|…)\s*\Z")
_MOST = 50
"""So many problems are told at once; a person fixes them from the top."""
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys",
    "too_short": "a list with at least one entry",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong; `path` is the key path."""

    line: int
    path: tuple[str | int, ...]
    found: str
    expected: str
    next_step: str

    @classmethod
    def about(
        cls,
        front: FrontMatter,
        path: tuple[str | int, ...],
        expected: str,
        *,
        known: Iterable[str] = (),
    ) -> "Problem":
        """A problem with the value at `path`; a value close to one of `known` is suggested."""
        value, present = _value_at(front.data, path)
        close = (
            difflib.get_close_matches(str(value), list(known), n=1)
            if isinstance(value, str)
            else []
        )
        step = f"Did you mean {close[0]!r}?" if close else f"Correct {dotted(path)}."
        found = shown(value) if present else "nothing"
        return cls(
            line=front.line_of(*path), path=path, found=found, expected=expected, next_step=step
        )

    def text(self, where: str) -> str:
        return (
            f"{where}:{self.line}: {dotted(self.path)}: found {self.found}, expected"
            f" {self.expected}. {self.next_step}"
        )


def as_error(front: FrontMatter, problems: list[Problem], *, untold: int = 0) -> PlanError:
    """One error that lists the problems in the order of the file, at most 50 of them; `untold` more
    were found."""
    ordered = sorted(problems, key=lambda problem: (problem.line, dotted(problem.path)))
    total = len(ordered) + untold
    count = "1 problem" if total == 1 else f"{total} problems"
    lines = "\n".join(f"  {problem.text(front.where)}" for problem in ordered[:_MOST])
    if total > _MOST:
        lines += f"\n  and {total - _MOST} more"
    return PlanError(
        f"{front.where} has {count}:\n{lines}\n",
        hint="Correct the lines that are named, then run `harness plan check`.",
    )


def unusable(front: FrontMatter) -> list[Problem]:
    """Values that a template left to be filled in, for a plan full of TODO is not a plan, and those
    with a NUL character, which no command and no path can hold."""
    nul = [
        Problem.about(front, path, "text without a NUL character")
        for path, text in front.texts.items()
        if "\0" in text
    ]
    return nul + [
        Problem(
            line=front.line_of(*path),
            path=path,
            found=shown(text),
            expected="a real value instead of the template's",
            next_step=f"Fill in {dotted(path)}.",
        )
        for path, text in front.texts.items()
        if _PLACEHOLDER.search(text)
    ]


def from_pydantic(
    error: ValidationError, front: FrontMatter, model: type[BaseModel]
) -> tuple[list[Problem], int]:
    """The first 50 in the order of the file, and how many more there are: suggesting a key takes
    time."""
    items = sorted(error.errors(include_url=False), key=lambda item: front.line_of(*item["loc"]))
    return [_translate(item, front, model) for item in items[:_MOST]], max(0, len(items) - _MOST)


def _translate(item: Any, front: FrontMatter, model: type[BaseModel]) -> Problem:
    path: tuple[str | int, ...] = item["loc"]
    kind, context = item["type"], item.get("ctx", {})
    line = front.line_of(*path)
    if kind == "extra_forbidden":
        return _unknown_key(path, line, model)
    if kind == "missing":
        within = dotted(path[:-1]) or "the front matter"
        step = f"Add `{path[-1]}:` to {within}."
        return Problem(
            line=line,
            path=path,
            found="nothing",
            expected="a value: this key is required",
            next_step=step,
        )
    if kind in ("literal_error", "enum"):
        known = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        expected = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
        return Problem.about(front, path, expected, known=known)
    if kind == "value_error":
        expected = str(context["error"])
    elif kind in ("greater_than", "greater_than_equal"):
        bound = context.get("gt", context.get("ge"))
        expected = (
            f"a number {'greater than' if kind == 'greater_than' else 'of at least'} {bound:g}"
        )
    else:
        expected = _EXPECTED.get(kind, item["msg"])
    return Problem.about(front, path, expected)


def _unknown_key(path: tuple[str | int, ...], line: int, model: type[BaseModel]) -> Problem:
    known = _keys_at(model, path[:-1])
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    step = (
        f"Did you mean {close[0]!r}?"
        if close
        else f"Remove it; known keys here: {', '.join(known)}."
    )
    return Problem(
        line=line, path=path, found="an unknown key", expected="a key of the schema", next_step=step
    )


def _keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the schema allows below `path`."""
    for step in path:
        field = next(
            (item for name, item in model.model_fields.items() if step in (name, item.alias)), None
        )
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        below = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None
        )
        if below is None:
            return []
        model = below
    return [item.alias or name for name, item in model.model_fields.items()]


def dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)


def shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping of keys"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _value_at(data: Any, path: tuple[str | int, ...]) -> tuple[Any, bool]:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None, False
    return data, True
