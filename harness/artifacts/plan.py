"""plan.md: the human's word on what is wanted, what it may cost and how it is judged.

`Plan` is the whole schema (version 1); `read_plan` reports every problem of a file at once.
"""

import math
import re
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from harness.artifacts.front_matter import FrontMatter, read_front_matter
from harness.artifacts.plan_problems import Problem, as_error, from_pydantic, placeholders
from harness.artifacts.text import read_text
from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.errors import PlanError, UsageError

BUILT_IN_SCORERS: dict[str, Direction] = {
    "accuracy": Direction.MAXIMIZE,
    "macro_f1": Direction.MAXIMIZE,
    "mse": Direction.MINIMIZE,
    "mae": Direction.MINIMIZE,
    "log_loss": Direction.MINIMIZE,
}
"""Name -> the direction in which this metric gets better; a plan that says the other one contradicts itself."""

_RANGES: dict[str, tuple[float, float]] = {
    "accuracy": (0, 1),
    "macro_f1": (0, 1),
    "mse": (0, math.inf),
    "mae": (0, math.inf),
    "log_loss": (0, math.inf),
}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_TABLES = (".npz", ".csv", ".jsonl")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("text that is not empty")
    return value.strip()


def _name(value: str) -> str:
    if not _NAME.match(value):
        raise ValueError("1 to 63 of a-z, 0-9, '.', '_', '-', starting with a letter or digit")
    return value


def _inside(value: str) -> str:
    path = PurePosixPath(_text(value))
    if path.is_absolute() or ".." in path.parts or "\\" in value or path.parts[:1] in ((".harness",), (".git",)):
        raise ValueError("a path inside the project, relative to its root and outside .harness and .git")
    return path.as_posix()


def _table(value: str) -> str:
    path = _inside(value)
    if PurePosixPath(path).suffix not in _TABLES:
        raise ValueError(f"a table: one of {', '.join(_TABLES)}")
    return path


Text = Annotated[str, AfterValidator(_text)]
Name = Annotated[str, AfterValidator(_name)]
TablePath = Annotated[str, AfterValidator(_table)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


PartT = TypeVar("PartT", bound=_Part)


class HeldOut(_Part):
    path: TablePath
    inputs: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    label: Text
    id: Text


class Data(_Part):
    train: TablePath
    validation: TablePath | None = None
    held_out: HeldOut


class Tiers(_Part):
    must: Finite
    should: Finite | None = None
    could: Finite | None = None

    def given(self) -> dict[Tier, float]:
        return {tier: value for tier in Tier if (value := getattr(self, tier.value)) is not None}


class Oracle(_Part):
    metric: Name
    direction: Annotated[Direction, Field(strict=False)]
    scorer: Text
    predict: Text
    tiers: Tiers
    seeds: Count
    queries: Count


class Training(_Part):
    entry: Text
    checkpoint_every: Count = 10


class Budget(_Part):
    experiments: Count
    run_minutes: Positive
    total_minutes: Positive
    usd: Positive | None = None


class Loop(_Part):
    stop_tier: Annotated[Tier, Field(strict=False)] = Tier.MUST
    patience: Count = 3


class Gates(_Part):
    mode: Literal["supervised", "auto", "full-auto"] = "auto"


class Agents(_Part):
    profile: Literal["default"] = "default"


class Plan(_Part):
    schema_version: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    workflow: Literal["classical-ml", "deep-learning", "post-training", "research"]
    objective_text: Annotated[Text, Field(alias="objective")]
    data: Data
    oracle: Oracle
    training: Training
    budget: Budget
    loop: Loop = Loop()
    gates: Gates = Gates()
    agents: Agents = Agents()
    sandbox: Literal["required", "preferred"] = "preferred"

    def objective(self) -> Objective:
        """What scores are judged by."""
        oracle = self.oracle
        return Objective(
            metric=oracle.metric,
            direction=oracle.direction,
            tiers=oracle.tiers.given(),
            seeds=oracle.seeds,
            queries=oracle.queries,
        )

    def plain(self) -> dict[str, Any]:
        """The front matter as plain JSON values with all defaults filled in; the inverse of `plan_from`."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def scorer_script(self) -> str | None:
        """The scorer's path relative to the project, or None for a built-in one."""
        return None if self.oracle.scorer in BUILT_IN_SCORERS else self.oracle.scorer


def plan_from(content: dict[str, Any]) -> Plan:
    """The plan that `Plan.plain` described, e.g. an approved plan's content. Raises PlanError."""
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        raise PlanError(
            f"The approved plan is not valid here: {error.error_count()} problems, first {error.errors()[0]['msg']}.",
            mend="It was approved by another version of the harness: approve the plan again.",
        ) from error


def read_plan(path: Path) -> Plan:
    """The validated plan. Raises PlanError that lists all problems, each with file, line, field, found, expected and
    next step; NotFoundError when there is no file."""
    return parse_plan(read_text(path), where=path.name)


def parse_plan(text: str, *, where: str) -> Plan:
    """As `read_plan`, from text with `\\n` line ends."""
    try:
        front = read_front_matter(text, where=where)
    except UsageError as error:
        raise PlanError(error.message, mend=error.mend) from error
    problems = placeholders(front)
    told = {problem.path for problem in problems}
    problems += [problem for problem in _contradictions(front) if problem.path not in told]
    try:
        plan = Plan.model_validate(front.data)
    except ValidationError as error:
        found = from_pydantic(error, front, Plan)
        raise as_error(front, problems + [problem for problem in found if problem.path not in told]) from error
    if problems:
        raise as_error(front, problems)
    return plan


def _contradictions(front: FrontMatter) -> list[Problem]:
    """What no field shows alone, for all parts of the plan that are valid in themselves."""
    oracle, data, budget = _part(front, "oracle", Oracle), _part(front, "data", Data), _part(front, "budget", Budget)
    problems = []
    if oracle is not None:
        problems += _scorer_problems(oracle, front)
        problems += _tier_problems(oracle, _part(front, "loop", Loop) or Loop(), front)
    if data is not None:
        problems += _data_problems(data, front)
    if budget is not None and budget.total_minutes < budget.run_minutes:
        expected = f"at least run_minutes ({budget.run_minutes:g})"
        problems.append(Problem.about(front, ("budget", "total_minutes"), expected))
    return problems


def _part(front: FrontMatter, key: str, model: type[PartT]) -> PartT | None:
    try:
        return model.model_validate(front.data.get(key))
    except ValidationError:
        return None  # its own problems are told by the whole plan's validation


def _scorer_problems(oracle: Oracle, front: FrontMatter) -> list[Problem]:
    path = ("oracle", "scorer")
    natural = BUILT_IN_SCORERS.get(oracle.scorer)
    if natural is None:
        try:
            if not _inside(oracle.scorer).endswith(".py"):
                raise ValueError
        except ValueError:
            known = ", ".join(BUILT_IN_SCORERS)
            return [Problem.about(front, path, f"one of {known}, or a path such as scorer.py", known=BUILT_IN_SCORERS)]
        return []
    problems = []
    if oracle.direction is not natural:
        expected = f"{natural}, because the built-in scorer {oracle.scorer} is better that way"
        problems.append(Problem.about(front, ("oracle", "direction"), expected))
    if oracle.metric in BUILT_IN_SCORERS and oracle.metric != oracle.scorer:
        expected = f"{oracle.scorer}, as the scorer, or another name"
        problems.append(Problem.about(front, ("oracle", "metric"), expected))
    return problems


def _tier_problems(oracle: Oracle, loop: Loop, front: FrontMatter) -> list[Problem]:
    problems = []
    tiers = list(oracle.tiers.given().items())
    sign = 1 if oracle.direction is Direction.MAXIMIZE else -1
    for (lower, low), (higher, high) in pairwise(tiers):
        if sign * (high - low) <= 0:
            expected = f"{'more' if sign > 0 else 'less'} than {lower} ({low:g}): direction is {oracle.direction}"
            problems.append(Problem.about(front, ("oracle", "tiers", higher.value), expected))
    least, most = _RANGES.get(oracle.scorer, (-math.inf, math.inf))
    for tier, value in tiers:
        if not least <= value <= most:
            expected = f"{least:g} to {most:g}, the range of {oracle.scorer}"
            problems.append(Problem.about(front, ("oracle", "tiers", tier.value), expected))
    if loop.stop_tier not in oracle.tiers.given():
        expected = f"a tier that oracle.tiers sets: {', '.join(tier for tier, _ in tiers)}"
        problems.append(Problem.about(front, ("loop", "stop_tier"), expected))
    return problems


def _data_problems(data: Data, front: FrontMatter) -> list[Problem]:
    held_out = data.held_out
    problems = [
        Problem.about(
            front, ("data", "held_out", "path"), f"another file than {split}: {held_out.path} is {split} data"
        )
        for split, path in {"train": data.train, "validation": data.validation}.items()
        if path == held_out.path
    ]
    if data.validation == data.train:
        problems.append(Problem.about(front, ("data", "validation"), "another file than train, or no such key"))
    if held_out.label in held_out.inputs:
        expected = f"columns without the label {held_out.label}"
        problems.append(Problem.about(front, ("data", "held_out", "inputs"), expected))
    if len({*held_out.inputs, held_out.label, held_out.id}) < len(held_out.inputs) + 2 and not problems:
        expected = "columns that are neither named twice nor the id"
        problems.append(Problem.about(front, ("data", "held_out", "inputs"), expected))
    return problems
