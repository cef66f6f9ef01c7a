"""Whether the plan's metric is what its scorer computes: a misspelt name would stand beside every
score."""

from difflib import get_close_matches

from harness.domain.findings import Finding
from harness.domain.metrics import METRICS
from harness.plans.plan import Plan


def metric_notes(plan: Plan) -> list[Finding]:
    """`metric_unknown` for a metric that the built-in scorer does not compute, or that is nearly a
    known name.

    What a script computes is the plan's to name.
    """
    metric, scorer = plan.oracle.metric, plan.oracle.scorer
    by_script = plan.scorer_script is not None
    if metric in METRICS if by_script else metric == scorer:
        return []
    near = get_close_matches(metric, METRICS if by_script else [scorer], n=1, cutoff=0.8)
    closest = near[0] if near else None
    if by_script:
        if closest is None:
            return []
        message, hint = (
            f"nearly {closest}, which is a known metric.",
            f"Write `metric: {closest}` if that is meant.",
        )
    else:
        message = f"the built-in scorer {scorer} computes {scorer}."
        hint = f"Write `metric: {scorer}`, or name the scorer that computes {metric}."
        hint = f"Write `metric: {scorer}`." if closest else hint
    data = {"metric": metric, "closest": closest}
    return [Finding("metric_unknown", f"oracle.metric is {metric!r}; {message}", hint, data)]
