"""plan.md: the human's word on what is wanted, what it may cost and how it is judged.

`Plan` is the whole schema (version 1); `read_plan` reports every problem of a file at once.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.artifacts.content import read_text
from harness.artifacts.front_matter import read_front_matter
from harness.errors import PlanError, UsageError
from harness.plans.checks import contradictions
from harness.plans.problems import as_error, from_pydantic, unusable
from harness.plans.schema import HeldOut, Plan

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
    """The validated plan. Raises PlanError that lists all problems, each with file, line, field,
    found, expected and next step; NotFoundError when there is no file."""
    return parse_plan(read_text(path), where=path.name)


def parse_plan(text: str, *, where: str) -> Plan:
    """As `read_plan`, from text with `\\n` line ends."""
    try:
        front = read_front_matter(text, where=where)
    except UsageError as error:
        raise PlanError(error.message, hint=error.hint) from error
    problems = unusable(front)
    told = {problem.path for problem in problems}
    problems += [problem for problem in contradictions(front) if problem.path not in told]
    try:
        plan = Plan.model_validate(front.data)
    except ValidationError as error:
        found, untold = from_pydantic(error, front, Plan)
        problems += [problem for problem in found if problem.path not in told]
        raise as_error(front, problems, untold=untold) from error
    if problems:
        raise as_error(front, problems)
    return plan
