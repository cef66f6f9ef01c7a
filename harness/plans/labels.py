"""Labels as numbers or as names of classes, and whether a plan's metric can read them.

A class has one name however it was stored: the integer 3, the float 3.0 and the text "3.0" are the
class "3" when the labels are numbers; True is "1". When labels are text, names are compared
exactly.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from harness.domain.metrics import METRICS, Metric, Needs
from harness.errors import PlanError
from harness.plans.parse import Plan
from harness.plans.splits import SplitTable

_BOOLEANS = {"true": 1.0, "false": 0.0}
_SHOWN = 8
ClassLabel = str | int | float | bool
"""A class as a plan names it."""


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


def class_problems(splits: Mapping[str, SplitTable], plan: Plan) -> Iterator[PlanError]:
    """What the classes of the labels are not that the metric takes. Tables with labels that cannot
    be read are left to `label_problems`."""
    metric, label = METRICS.get(plan.oracle.scorer), plan.data.held_out.label
    if metric is None or metric.needs is Needs.NUMBER or "train" not in splits:
        return
    try:
        named = {
            name: classes_of(class_names(split.table.columns[label]))
            for name, split in splits.items()
        }
    except ValueError:
        return
    known, numeric = named["train"], is_numeric(splits["train"].table.columns[label])
    try:
        positive = positive_class(metric, known, plan.oracle.positive, numeric=numeric)
    except ValueError as error:
        yield PlanError(
            f"The training labels in {splits['train'].path}, column {label!r}: {error}",
            hint="Correct oracle.scorer, oracle.positive or the labels.",
            code="classes_unfit",
        )
        return
    few = _too_few(metric, known)
    if few is not None:
        yield PlanError(
            few,
            hint="Write `scorer: accuracy`, or a top-k metric of fewer classes.",
            code="classes_unfit",
        )
    for name, classes in named.items():
        fault = _split_fault(metric, classes, known if positive is not None else ())
        if fault is not None:
            yield PlanError(
                f"The {name} rows in {splits[name].path}, column {label!r}: {fault}",
                hint="Put rows of both classes into each split, and no others.",
                code="classes_unfit",
            )


def unfit(metric: Metric, labels: NDArray[Any]) -> str | None:
    """Why `metric` cannot be computed on these labels of a table that is not split yet."""
    try:
        if metric.needs is Needs.NUMBER:
            numbers(labels)
            return None
        classes = classes_of(class_names(labels))
        positive_class(metric, classes, None, numeric=is_numeric(labels))
    except ValueError as error:
        return str(error)
    return _too_few(metric, classes)


def _too_few(metric: Metric, classes: Sequence[str]) -> str | None:
    k = metric.options.get("k")
    if k is None or k < len(classes):
        return None
    return (
        f"{metric.name} counts the {k} likeliest classes, and there are {len(classes)}: it is 1"
        " whatever is predicted."
    )


def _split_fault(metric: Metric, classes: Sequence[str], two: Sequence[str]) -> str | None:
    if two and not set(classes) <= set(two):
        more = shown_classes([name for name in classes if name not in two])
        return f"the class {more} is not among the two of training ({shown_classes(two)})."
    if len(classes) < 2 and metric.needs is Needs.SCORES:
        return (
            f"all are of the class {shown_classes(classes)}, of which {metric.name} is not known."
        )
    return None


def positive_class(
    metric: Metric, classes: Sequence[str], given: ClassLabel | None, *, numeric: bool
) -> str | None:
    """Which of the training labels' two classes is the positive one: the given one, else the
    greater (numbers by size, texts by letters). None where there is none: for another metric, and
    for more classes than two. Raises ValueError."""
    if not metric.has_positive:
        return None
    count = len(classes)
    if count < 2 or (metric.binary and count > 2):
        several = f"; for several write {metric.name}_macro" if count > 2 else ""
        wanted = "two classes" if metric.binary else "two classes or more"
        raise ValueError(
            f"{metric.name} takes {wanted}, and there {'is' if count == 1 else 'are'} {count}:"
            f" {shown_classes(classes)}{several}."
        )
    if given is None:
        return classes[-1] if count == 2 else None
    if count > 2:
        raise ValueError(
            f"there are {count} classes, of which {metric.name} takes each against the rest:"
            " oracle.positive is for two."
        )
    name = class_name(given, numeric)
    if name not in classes:
        raise ValueError(
            f"oracle.positive is {given!r}, which no label is; expected one of"
            f" {shown_classes(classes)}."
        )
    return name


def shown_classes(classes: Sequence[str]) -> str:
    more = len(classes) - _SHOWN
    shown = ", ".join(repr(name[:40]) for name in classes[:_SHOWN])
    return shown + (f" and {more} more" if more > 0 else "")


def classes_of(*groups: Sequence[str]) -> tuple[str, ...]:
    """All class names, sorted: numbers by size, then text."""
    return tuple(sorted({name for group in groups for name in group}, key=_order))


def _order(name: str) -> tuple[bool, float, str]:
    number = as_number(name)
    known = number is not None and math.isfinite(number)
    return not known, number if known and number is not None else 0.0, name


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
