"""The numbers of a specification, each within its bounds."""

from collections.abc import Mapping
from typing import Any

from harness.posttrain.problems import Problem, problem
from harness.posttrain.reading import is_finite
from harness.posttrain.vocabulary import HYPERPARAMETERS, Bound


def check_number(found: list[Problem], name: str, bound: Bound, value: Any) -> float | int:
    """The number as it is recorded; where it is out of bounds a problem is added, and the default
    returned."""
    good = is_finite(value)
    good = (
        good
        and (value > bound.low if bound.open_low else value >= bound.low)
        and value <= bound.high
    )
    if not good or (bound.whole and int(value) != value):
        found.append(problem(name, str(bound), value, "out of bounds"))
        return bound.default
    return int(value) if bound.whole else float(value)


def check_hyperparameters(found: list[Problem], given: Mapping[str, Any]) -> dict[str, float | int]:
    """All of them, those that are not given with their defaults."""
    for name in sorted(set(given) - set(HYPERPARAMETERS)):
        found.append(problem(f"hyperparameters.{name}", "/".join(HYPERPARAMETERS), name, "unknown"))
    return {
        name: check_number(found, f"hyperparameters.{name}", bound, given.get(name, bound.default))
        for name, bound in HYPERPARAMETERS.items()
    }
