"""The metric of `harness init --data`: known, computable on the labels, and the standing plan's."""

from pathlib import Path

from harness.domain.metric_words import nearest, understood
from harness.domain.metrics import METRICS
from harness.errors import HarnessError, UsageError
from harness.plans.labels import unfit
from harness.plans.review import read_draft
from harness.plans.starting_plan import proposed_metric
from harness.plans.tables import Column


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
    why = unfit(METRICS[named or fitting], labels)
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
            raise UsageError(
                f"{option} {value} differs from the plan's {planned}.",
                hint=f"Edit {key} in {path}, then `harness plan check`.",
                code="plan_differs",
            )
