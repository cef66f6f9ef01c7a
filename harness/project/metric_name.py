"""Whether the plan's metric is what its scorer computes: a misspelt name would stand beside every score."""

from difflib import get_close_matches

from harness.artifacts.plan import Plan
from harness.artifacts.plan_schema import BUILT_IN_SCORERS
from harness.domain.findings import Finding


def metric_notes(plan: Plan) -> list[Finding]:
    """`metric_unknown` for a metric that the built-in scorer does not compute, or that is nearly a known name.

    What a script computes is the plan's to name.
    """
    metric, scorer = plan.oracle.metric, plan.oracle.scorer
    by_script = plan.scorer_script is not None
    if metric in BUILT_IN_SCORERS if by_script else metric == scorer:
        return []
    near = get_close_matches(metric, BUILT_IN_SCORERS if by_script else [scorer], n=1, cutoff=0.8)
    closest = near[0] if near else None
    if by_script:
        if closest is None:
            return []
        message, mend = f"nearly {closest}, which is a known metric.", f"Write `metric: {closest}` if that is meant."
    else:
        message = f"the built-in scorer {scorer} computes {scorer}."
        mend = f"Write `metric: {scorer}`, or name the scorer that computes {metric}."
        mend = f"Write `metric: {scorer}`." if closest else mend
    data = {"metric": metric, "closest": closest}
    return [Finding("metric_unknown", f"oracle.metric is {metric!r}; {message}", mend, data)]
