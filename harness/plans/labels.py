"""Labels as numbers or as names of classes, and whether a plan's metric can read them.

A class has one name however it was stored: the integer 3, the float 3.0 and the text "3.0" are the
class "3" when the labels are numbers; True is "1". When labels are text, names are compared
exactly.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from harness.domain.metrics import METRICS, Needs
from harness.errors import PlanError
from harness.plans.parse import Plan
from harness.plans.splits import SplitTable

_BOOLEANS = {"true": 1.0, "false": 0.0}


def label_problems(splits: Mapping[str, SplitTable], plan: Plan) -> Iterator[PlanError]:
    """One for each table with a label that the metric cannot read: no evaluation on it would have a
    score, and on secret rows nobody would be told which label it is."""
    metric = METRICS.get(plan.oracle.scorer)
    read = numbers if metric is not None and metric.needs is Needs.NUMBER else class_names
    label = plan.data.held_out.label
    for name, split in splits.items():
        try:
            read(split.table.columns[label])
        except ValueError as error:
            yield PlanError(
                f"The {name} rows in {split.path}, column {label!r}: {error}",
                hint="Correct or remove these rows, or name another scorer in oracle.scorer.",
                code="label_unreadable",
            )


def is_numeric(values: NDArray[Any]) -> bool:
    """Whether a label column holds numbers or booleans."""
    if values.dtype.kind in "biuf":
        return True
    return values.dtype.kind == "O" and all(
        isinstance(value, int | float) for value in values.tolist()
    )


def as_number(value: Any) -> float | None:
    """A float, maybe not finite, of a number or of a text that spells one; else None."""
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        return float(text)
    except ValueError:
        return _BOOLEANS.get(text.lower())


def class_name(value: Any, numeric: bool) -> str | None:
    """The class that `value` names; None when it is not finite, or no number among numbers."""
    if not numeric:
        return value if isinstance(value, str) else str(value)
    number = as_number(value)
    if number is None or not math.isfinite(number):
        return None
    # Whole numbers not by way of a float, which holds only 53 bits of them.
    if isinstance(value, int):
        return str(int(value))
    return str(int(number)) if number.is_integer() else repr(number)


def class_names(labels: NDArray[Any]) -> list[str]:
    """Labels as class names. Raises ValueError naming the first row that is not one."""
    _require_one_a_row(labels)
    numeric = is_numeric(labels)
    names = []
    for row, value in enumerate(labels.tolist()):
        name = class_name(value, numeric)
        if name is None:
            raise ValueError(f"the label of row {row} is {value!r}; expected a class.")
        names.append(name)
    return names


def numbers(labels: NDArray[Any]) -> list[float]:
    """Labels as finite floats. Raises ValueError naming the first row that is not one."""
    _require_one_a_row(labels)
    values = []
    for row, value in enumerate(labels.tolist()):
        number = as_number(value)
        if number is None or not math.isfinite(number):
            raise ValueError(f"the label of row {row} is {value!r}; expected a finite number.")
        values.append(number)
    return values


def _require_one_a_row(labels: NDArray[Any]) -> None:
    if labels.ndim != 1:
        raise ValueError(f"the labels have the shape {labels.shape}; expected one value a row.")
