"""Numbers that a person or agent asks for, against their bounds."""

from typing import Any

from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.untrusted_json import is_finite
from harness.posttrain.vocabulary import Bound


def number_of(problems: FieldProblems, name: str, bound: Bound, value: Any) -> float | int:
    """The number as it is recorded. Out of bounds: a problem is added, the default returned."""
    # `is_finite` first: a text, a boolean and NaN must not reach the comparisons.
    good = (
        is_finite(value)
        and (value > bound.low if bound.open_low else value >= bound.low)
        and value <= bound.high
    )
    if not good or (bound.whole and int(value) != value):
        problems.add(name, str(bound), value, "out of bounds")
        return bound.default
    return int(value) if bound.whole else float(value)
