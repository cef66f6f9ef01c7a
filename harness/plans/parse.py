"""From plan.md to a `Plan`, or to every problem of the file at once."""

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from harness.artifacts.content import read_text
from harness.artifacts.front_matter import FrontMatter, read_front_matter
from harness.domain.metric_words import negated
from harness.domain.metrics import METRICS
from harness.domain.records import LEAST_SEEDS
from harness.domain.statuses import Direction, GateMode
from harness.errors import PlanError, UsageError
from harness.plans.metric_names import metric_called
from harness.plans.schema import (
    HIDDEN,
    Budget,
    Data,
    Gates,
    HeldOut,
    Loop,
    Oracle,
    Plan,
    PlanPart,
    inside_project,
)

_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|\A\s*<[^<>]*>\s*\Z|\A\s*(?:\.\.\.|…)\s*\Z")
_MOST = 50
"""Problems that one error lists; a person fixes them from the top."""
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
class PlanProblem:
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
    ) -> "PlanProblem":
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


def as_error(front: FrontMatter, problems: list[PlanProblem], *, more: int = 0) -> PlanError:
    """One error that lists the first 50 problems in the order of the file; `more` are not among
    them."""
    ordered = sorted(problems, key=lambda problem: (problem.line, dotted(problem.path)))
    total = len(ordered) + more
    count = "1 problem" if total == 1 else f"{total} problems"
    lines = "\n".join(f"  {problem.text(front.where)}" for problem in ordered[:_MOST])
    if total > _MOST:
        lines += f"\n  and {total - _MOST} more"
    return PlanError(
        f"{front.where} has {count}:\n{lines}\n",
        hint="Correct the lines that are named, then run `harness plan check`.",
    )


def unusable(front: FrontMatter) -> list[PlanProblem]:
    """Values that a template left to be filled in, and those with a NUL character, which no command
    and no path can hold."""
    nul = [
        PlanProblem.about(front, path, "text without a NUL character")
        for path, text in front.texts.items()
        if "\0" in text
    ]
    return nul + [
        PlanProblem(
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
) -> tuple[list[PlanProblem], int]:
    """The first 50 in the order of the file, and how many more there are."""
    # Cut before translating: difflib is slow, and a file may have thousands of wrong keys.
    errors = sorted(error.errors(include_url=False), key=lambda one: front.line_of(*one["loc"]))
    return [_translate(one, front, model) for one in errors[:_MOST]], max(0, len(errors) - _MOST)


def _translate(error: Any, front: FrontMatter, model: type[BaseModel]) -> PlanProblem:
    path: tuple[str | int, ...] = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    line = front.line_of(*path)
    if kind == "extra_forbidden":
        return _unknown_key(path, line, model)
    if kind == "missing":
        within = dotted(path[:-1]) or "the front matter"
        step = f"Add `{path[-1]}:` to {within}."
        return PlanProblem(
            line=line,
            path=path,
            found="nothing",
            expected="a value: this key is required",
            next_step=step,
        )
    if kind in ("literal_error", "enum"):
        known = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        expected = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
        return PlanProblem.about(front, path, expected, known=known)
    if kind == "value_error":
        expected = str(context["error"])
    elif kind in ("greater_than", "greater_than_equal"):
        bound = context.get("gt", context.get("ge"))
        expected = (
            f"a number {'greater than' if kind == 'greater_than' else 'of at least'} {bound:g}"
        )
    else:
        expected = _EXPECTED.get(kind, error["msg"])
    return PlanProblem.about(front, path, expected)


def _unknown_key(path: tuple[str | int, ...], line: int, model: type[BaseModel]) -> PlanProblem:
    known = _keys_at(model, path[:-1])
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    step = (
        f"Did you mean {close[0]!r}?"
        if close
        else f"Remove it; known keys here: {', '.join(known)}."
    )
    return PlanProblem(
        line=line,
        path=path,
        found="an unknown key",
        expected="a key of the schema",
        next_step=step,
    )


def _keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the schema allows below `path`."""
    for step in path:
        fields = model.model_fields.items()
        field = next((one for name, one in fields if step in (name, one.alias)), None)
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        below = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
            None,
        )
        if below is None:
            return []
        model = below
    return [field.alias or name for name, field in model.model_fields.items()]


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


PartT = TypeVar("PartT", bound=PlanPart)


def contradictions(front: FrontMatter) -> list[PlanProblem]:
    """What no field shows alone, for all parts of the plan that are valid in themselves."""
    # Part by part: the whole plan may be invalid for another reason.
    oracle, data = _part(front, "oracle", Oracle), _part(front, "data", Data)
    budget = _part(front, "budget", Budget)
    problems = []
    if oracle is not None:
        problems += _scorer_problems(oracle, front)
        problems += _tier_problems(oracle, _part(front, "loop", Loop) or Loop(), front)
    if data is not None:
        problems += _data_problems(data, front)
    mode = (_part(front, "gates", Gates) or Gates()).mode
    if mode is GateMode.FULL_AUTO and oracle is not None and oracle.seeds < LEAST_SEEDS:
        expected = (
            f"at least {LEAST_SEEDS} with gates.mode full-auto: fewer tell nothing apart, and"
            " nobody is asked"
        )
        problems.append(PlanProblem.about(front, ("oracle", "seeds"), expected))
    if budget is not None and budget.total_minutes < budget.run_minutes:
        expected = f"at least run_minutes ({budget.run_minutes:g})"
        problems.append(PlanProblem.about(front, ("budget", "total_minutes"), expected))
    return problems


def _part(front: FrontMatter, key: str, model: type[PartT]) -> PartT | None:
    try:
        return model.model_validate(front.data.get(key))
    except ValidationError:
        return None  # the whole plan's validation reports its problems


def _scorer_problems(oracle: Oracle, front: FrontMatter) -> list[PlanProblem]:
    metric = METRICS.get(oracle.scorer)
    if metric is None:
        return _script_problems(oracle, front)
    problems = []
    if oracle.packages:
        expected = f"nothing: {oracle.scorer} is the harness's own and needs no packages"
        problems.append(PlanProblem.about(front, ("oracle", "packages"), expected))
    if oracle.direction is not metric.direction:
        expected = f"{metric.direction}, because {oracle.scorer} gets better that way"
        if negated(str(front.data["oracle"]["scorer"])):
            expected += " (neg_ is scikit-learn's sign: here it and its tiers have none)"
        problems.append(PlanProblem.about(front, ("oracle", "direction"), expected))
    if oracle.positive is not None and not metric.has_positive:
        expected = f"nothing: {oracle.scorer} has no positive class"
        problems.append(PlanProblem.about(front, ("oracle", "positive"), expected))
    if oracle.metric in METRICS and oracle.metric != oracle.scorer:
        expected = f"{oracle.scorer}, as the scorer, or another name"
        problems.append(PlanProblem.about(front, ("oracle", "metric"), expected))
    return problems


def _script_problems(oracle: Oracle, front: FrontMatter) -> list[PlanProblem]:
    problems, path = [], ("oracle", "scorer")
    try:
        if not inside_project(oracle.scorer).endswith(".py"):
            raise ValueError
    except ValueError:
        expected = "the name of a metric, e.g. accuracy, roc_auc or rmse, or a script's path"
        about = PlanProblem.about(front, path, f"{expected} such as scorer.py")
        try:
            metric_called(oracle.scorer)
        except PlanError as error:
            problems.append(replace(about, next_step=error.hint))
    if oracle.positive is not None:
        expected = "nothing: a script knows its classes itself"
        problems.append(PlanProblem.about(front, ("oracle", "positive"), expected))
    return problems


def _tier_problems(oracle: Oracle, loop: Loop, front: FrontMatter) -> list[PlanProblem]:
    problems = []
    tiers = list(oracle.tiers.given().items())
    sign = 1 if oracle.direction is Direction.MAXIMIZE else -1
    for (lower, low), (higher, high) in pairwise(tiers):
        if sign * (high - low) <= 0:
            expected = (
                f"{'more' if sign > 0 else 'less'} than {lower} ({low:g}): direction is"
                f" {oracle.direction}"
            )
            problems.append(PlanProblem.about(front, ("oracle", "tiers", higher.value), expected))
    known = METRICS.get(oracle.scorer)
    least, most = known.range if known else (-math.inf, math.inf)
    for tier, value in tiers:
        if not least <= value <= most:
            expected = f"{least:g} to {most:g}, the range of {oracle.scorer}"
            problems.append(PlanProblem.about(front, ("oracle", "tiers", tier.value), expected))
    if loop.stop_tier not in oracle.tiers.given():
        expected = f"a tier that oracle.tiers sets: {', '.join(tier for tier, _ in tiers)}"
        problems.append(PlanProblem.about(front, ("loop", "stop_tier"), expected))
    return problems


def _data_problems(data: Data, front: FrontMatter) -> list[PlanProblem]:
    held_out = data.held_out
    validation = data.part("validation") if data.validation == HIDDEN else data.validation
    problems = [
        PlanProblem.about(
            front,
            ("data", "held_out", "path"),
            f"another file than {split}: {held_out.path} is {split} data",
        )
        for split, path in {"train": data.train, "validation": validation}.items()
        if path == held_out.path
    ]
    if data.validation == data.train:
        problems.append(
            PlanProblem.about(
                front, ("data", "validation"), "another file than train, or no such key"
            )
        )
    if data.group is not None and data.group in (held_out.label, held_out.id):
        expected = "a column that is neither the label nor the id"
        problems.append(PlanProblem.about(front, ("data", "group"), expected))
    if held_out.label in held_out.inputs:
        expected = f"columns without the label {held_out.label}"
        problems.append(PlanProblem.about(front, ("data", "held_out", "inputs"), expected))
    if (
        len({*held_out.inputs, held_out.label, held_out.id}) < len(held_out.inputs) + 2
        and not problems
    ):
        expected = "columns that are neither named twice nor the id"
        problems.append(PlanProblem.about(front, ("data", "held_out", "inputs"), expected))
    return problems


__all__ = ["HeldOut", "Plan", "parse_plan", "plan_from", "read_plan"]


def plan_from(content: dict[str, Any]) -> Plan:
    """The plan that `Plan.plain` described, e.g. an approved plan's content. Raises PlanError."""
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(
            f"The approved plan is not valid here: {error.error_count()} problems, first"
            f" {error.errors()[0]['msg']}.",
            hint="It was approved by another version of the harness: approve the plan again.",
        ) from error


def read_plan(path: Path) -> Plan:
    """The validated plan. Raises PlanError that lists all problems, or NotFoundError."""
    return parse_plan(read_text(path), where=path.name)


def parse_plan(text: str, *, where: str) -> Plan:
    """As `read_plan`, from text with `\\n` line ends."""
    try:
        front = read_front_matter(text, where=where)
    except UsageError as error:
        raise PlanError(error.message, hint=error.hint) from error
    problems = unusable(front)
    # One problem per value: a placeholder is no number either, which says nothing more.
    reported = {problem.path for problem in problems}
    problems += [problem for problem in contradictions(front) if problem.path not in reported]
    try:
        plan = Plan.model_validate(front.data)
    except ValidationError as error:
        invalid, more = from_pydantic(error, front, Plan)
        problems += [problem for problem in invalid if problem.path not in reported]
        raise as_error(front, problems, more=more) from error
    if problems:
        raise as_error(front, problems)
    return plan
