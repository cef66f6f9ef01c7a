"""What no field of a plan shows alone: statements that contradict each other stop it, they are
never coerced."""

import math
from itertools import pairwise
from typing import TypeVar

from pydantic import ValidationError

from harness.artifacts.front_matter import FrontMatter
from harness.domain.metrics import METRICS
from harness.domain.records import LEAST_SEEDS
from harness.domain.statuses import Direction, GateMode
from harness.plans.problems import Problem
from harness.plans.schema import Budget, Data, Gates, Loop, Oracle, Part, inside_project

PartT = TypeVar("PartT", bound=Part)


def contradictions(front: FrontMatter) -> list[Problem]:
    """What no field shows alone, for all parts of the plan that are valid in themselves."""
    oracle, data, budget = (
        _part(front, "oracle", Oracle),
        _part(front, "data", Data),
        _part(front, "budget", Budget),
    )
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
        problems.append(Problem.about(front, ("oracle", "seeds"), expected))
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
    metric = METRICS.get(oracle.scorer)
    if metric is None:
        try:
            if not inside_project(oracle.scorer).endswith(".py"):
                raise ValueError
        except ValueError:
            known = ", ".join(METRICS)
            return [
                Problem.about(
                    front,
                    path,
                    f"one of {known}, or a path such as scorer.py",
                    known=METRICS,
                )
            ]
        return []
    problems = []
    if oracle.direction is not metric.direction:
        expected = f"{metric.direction}, because {oracle.scorer} gets better that way"
        problems.append(Problem.about(front, ("oracle", "direction"), expected))
    if oracle.metric in METRICS and oracle.metric != oracle.scorer:
        expected = f"{oracle.scorer}, as the scorer, or another name"
        problems.append(Problem.about(front, ("oracle", "metric"), expected))
    return problems


def _tier_problems(oracle: Oracle, loop: Loop, front: FrontMatter) -> list[Problem]:
    problems = []
    tiers = list(oracle.tiers.given().items())
    sign = 1 if oracle.direction is Direction.MAXIMIZE else -1
    for (lower, low), (higher, high) in pairwise(tiers):
        if sign * (high - low) <= 0:
            expected = (
                f"{'more' if sign > 0 else 'less'} than {lower} ({low:g}): direction is"
                f" {oracle.direction}"
            )
            problems.append(Problem.about(front, ("oracle", "tiers", higher.value), expected))
    known = METRICS.get(oracle.scorer)
    least, most = known.range if known else (-math.inf, math.inf)
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
            front,
            ("data", "held_out", "path"),
            f"another file than {split}: {held_out.path} is {split} data",
        )
        for split, path in {"train": data.train, "validation": data.validation}.items()
        if path == held_out.path
    ]
    if data.validation == data.train:
        problems.append(
            Problem.about(front, ("data", "validation"), "another file than train, or no such key")
        )
    if held_out.label in held_out.inputs:
        expected = f"columns without the label {held_out.label}"
        problems.append(Problem.about(front, ("data", "held_out", "inputs"), expected))
    if (
        len({*held_out.inputs, held_out.label, held_out.id}) < len(held_out.inputs) + 2
        and not problems
    ):
        expected = "columns that are neither named twice nor the id"
        problems.append(Problem.about(front, ("data", "held_out", "inputs"), expected))
    return problems
