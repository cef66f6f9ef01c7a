"""Labels and predictions as values that can be compared: class names and finite numbers.

A class has one name however it was stored: the integer 3, the float 3.0 and the text "3.0" are the
class "3" when the labels are numbers; True is "1". When labels are text, names are compared
exactly.
"""

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

_TRUTH = {"true": 1.0, "false": 0.0}


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
        return _TRUTH.get(text.lower())


def class_name(value: Any, numeric: bool) -> str | None:
    """The class that `value` names; None when it names none: not finite, or not a number among
    numbers."""
    if not numeric:
        return value if isinstance(value, str) else str(value)
    number = as_number(value)
    if number is None or not math.isfinite(number):
        return None
    if isinstance(value, int):
        return str(int(value))
    return str(int(number)) if number.is_integer() else repr(number)


def class_names(labels: NDArray[Any]) -> list[str]:
    """Labels as class names. Raises ValueError naming the first row that is not one."""
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
    values = []
    for row, value in enumerate(labels.tolist()):
        number = as_number(value)
        if number is None or not math.isfinite(number):
            raise ValueError(f"the label of row {row} is {value!r}; expected a finite number.")
        values.append(number)
    return values


def classes_of(*groups: Sequence[str]) -> tuple[str, ...]:
    """All class names, sorted: numbers by size, then text."""
    return tuple(sorted({name for group in groups for name in group}, key=_order))


def _order(name: str) -> tuple[bool, float, str]:
    number = as_number(name)
    known = number is not None and math.isfinite(number)
    return not known, number if known and number is not None else 0.0, name
