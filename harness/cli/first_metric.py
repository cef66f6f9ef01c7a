"""The metric of `harness init --data`: known, computable on the labels, and the standing plan's."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.domain.metric_words import nearest, understood
from harness.domain.metrics import METRICS, Needs
from harness.errors import HarnessError, UsageError
from harness.evaluation.trivial import first_tiers, trivial_score
from harness.plans.labels import unfit
from harness.plans.parse import Plan
from harness.plans.review import read_draft
from harness.plans.starting_plan import proposed_metric
from harness.plans.tables import Column, read_table


def metric_named(name: str) -> str:
    """The metric that is meant. Raises UsageError with the nearest by meaning."""
    meant = understood(name)
    if meant is None:
        near = nearest(name)
        raise UsageError(
            f"--metric {name} is no metric of the harness"
            + (f"; the nearest: {' or '.join(near)}." if near else "."),
            hint="docs/metrics.md lists them; a metric of your own is a script (docs/guide.md).",
            code="metric_unknown",
        )
    return str(meant)


def require_fit(named: str | None, labels: Column, where: str) -> None:
    """Raises UsageError for a metric that cannot be computed on these labels."""
    fitting = proposed_metric(labels)
    why = unfit(METRICS[named or fitting], labels) or _of_numbers(named, labels)
    if why is None:
        return
    hint = "Correct or remove these rows."
    if unfit(METRICS[fitting], labels) is None:
        hint = f"Write `--metric {fitting}`, which fits; docs/metrics.md lists the others."
    raise UsageError(
        f"--metric {named or fitting} does not fit the labels, {where}: {why}",
        hint=hint,
        code="metric_unfit",
    )


def fitting_metrics(labels: Column) -> Iterator[str]:
    """The metrics that these labels allow, the proposed one first."""
    first = proposed_metric(labels)
    yield first
    for name, metric in METRICS.items():
        if name != first and _of_numbers(name, labels) is None and unfit(metric, labels) is None:
            yield name


def _of_numbers(named: str | None, labels: Column) -> str | None:
    """Why a metric of classes is none for these labels: each real number would be a class."""
    if named is None or METRICS[named].needs is Needs.NUMBER or labels.dtype.kind != "f":
        return None
    known = labels[np.isfinite(labels)]
    if np.array_equal(known, np.round(known)):  # classes of a column with empty cells, say
        return None
    return f"they are real numbers, and {named} compares classes."


def require_as_planned(root: Path, path: Path, *, metric: str | None, label: str) -> None:
    """The plan that stands is left as it is: what was said is not said in vain."""
    try:
        plan = read_draft(root.resolve(), path).plan
    except HarnessError:
        return  # `harness plan check` says what is wrong with it
    said = (
        ("--metric", metric, "oracle.metric", plan.oracle.metric),
        ("--label", label, "data.held_out.label", plan.data.held_out.label),
    )
    for option, value, key, planned in said:
        if value not in (None, planned):
            hint = f"Edit {key} in {path}, then `harness plan check`."
            if option == "--metric" and value in METRICS:
                hint = _lines_of(root, path, plan, str(value))
            raise UsageError(
                f"{option} {value} differs from the plan's {planned}.",
                hint=hint,
                code="plan_differs",
            )


def _lines_of(root: Path, path: Path, plan: Plan, metric: str) -> str:
    """All lines of `oracle` that another metric changes. Raises UsageError for one that does not
    fit the training labels."""
    where, label = plan.data.train, plan.data.held_out.label
    labels = read_table(root / where).column(label, where=where)
    require_fit(metric, labels, f"column {label!r} of {where}")
    tiers = first_tiers(metric, trivial_score(metric, labels))
    told = ", ".join(f"{name}: {value:.12g}" for name, value in tiers.items())
    return (
        f"Write all of these in the place of theirs below `oracle` in {path}: `metric: {metric}`,"
        f" `scorer: {metric}`, `direction: {METRICS[metric].direction}`, `tiers: {{{told}}}`;"
        " then `harness plan check`."
    )
