"""What predictions have to hold for a metric: the words of plan check, and of the finding when a
file holds something else."""

from collections.abc import Mapping, Sequence

from harness.domain.metrics import METRICS, Needs
from harness.domain.plain_text import plain
from harness.plans.labels import class_names, classes_of, is_numeric, positive_class
from harness.plans.schema import Plan
from harness.plans.splits import SplitTable

_SHOWN = 20
_LONGEST = 40


def form_of(needs: Needs, classes: Sequence[str], positive: str | None) -> str:
    """The columns that predict has to write."""
    if needs is Needs.ANY:
        return "`id` and `prediction`, or `p_<class>`"
    if needs is Needs.SCORES and positive is not None:
        name = _cut(positive)
        return f"`id` and `score` (a number, the higher the likelier {name!r}), or `p_{name}`"
    if needs in (Needs.SCORES, Needs.PROBABILITIES):
        columns = ", ".join(f"p_{_cut(name)}" for name in classes[:_SHOWN])
        return f"`id`, {columns}{', ...' if len(classes) > _SHOWN else ''} (probabilities)"
    kind = "a class" if needs is Needs.CLASS else "a number"
    return f"`id` and `prediction` ({kind})"


def predictions_told(plan: Plan, splits: Mapping[str, SplitTable]) -> str:
    """What predict has to write for the plan's metric, in one line; "" where that is not known."""
    metric, train = METRICS.get(plan.oracle.scorer), splits.get("train")
    if metric is None or train is None:
        return "" if metric is not None else f"predictions: {form_of(Needs.ANY, (), None)}"
    if metric.needs is Needs.NUMBER:
        return f"predictions: {form_of(metric.needs, (), None)}"
    labels = train.table.columns[plan.data.held_out.label]
    try:
        classes, given = classes_of(class_names(labels)), plan.oracle.positive
        positive = positive_class(metric, classes, given, numeric=is_numeric(labels))
    except ValueError:
        return ""
    told = f"predictions: {form_of(metric.needs, classes, positive)}"
    if positive is not None:
        why = "the greater label" if given is None else "oracle.positive"
        return f"{told}; positive class {_cut(positive)!r}, {why}"
    each = "; each class against the rest, their mean" if metric.needs is Needs.SCORES else ""
    return told + each


def _cut(name: str) -> str:
    return plain(name)[:_LONGEST]
