"""The metric that a plan names: known, a known one mistyped, or not what its scorer computes."""

from difflib import get_close_matches
from pathlib import PurePosixPath

from harness.domain.findings import Finding
from harness.domain.metrics import METRICS
from harness.errors import PlanError
from harness.plans.parse import Plan

_LONG_NAME = 6
"""Letters of a metric's name at least, for a typo to be told from another name."""


def require_metric_spelled(plan: Plan) -> None:
    """Raises PlanError for a metric that is a known name mistyped, and no scorer's name."""
    metric = plan.oracle.metric
    script = plan.scorer_script
    named = script is not None and PurePosixPath(script).stem == metric
    meant = next((name for name in METRICS if _is_mistyped(metric, name)), None)
    if meant is None or named or metric in METRICS:
        return
    raise PlanError(
        f"oracle.metric is {metric!r}, which no scorer is called; expected a metric's name, and"
        f" the nearest is {meant!r}.",
        hint=f"Write `metric: {meant}`. A script's metric of that name lies in `{metric}.py`.",
        code="metric_mistyped",
    )


def _is_mistyped(written: str, name: str) -> bool:
    """One letter left out, doubled or too many, or two neighbours swapped. Another letter in its
    place makes another name: micro_f1. Short names are near too many others: mape is no mae."""
    if min(len(written), len(name)) < _LONG_NAME or not written.isascii():
        return False
    short, long = sorted((written, name), key=len)
    if len(long) == len(short) + 1:
        return any(
            letter.isalpha() and long[:place] + long[place + 1 :] == short
            for place, letter in enumerate(long)
        )
    pairs = range(len(name) - 1) if len(short) == len(long) else ()
    swapped = (name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in pairs)
    return written != name and written in swapped


def metric_notes(plan: Plan) -> list[Finding]:
    """`metric_unknown` for a metric that the built-in scorer does not compute, or that is nearly a
    known name. A script's metric may have any other name."""
    metric, scorer = plan.oracle.metric, plan.oracle.scorer
    by_script = plan.scorer_script is not None
    if metric in METRICS if by_script else metric == scorer:
        return []
    if any(_is_mistyped(metric, name) for name in METRICS):
        return []  # that is refused
    near = get_close_matches(metric, METRICS if by_script else [scorer], n=1, cutoff=0.8)
    closest = near[0] if near else None
    if by_script:
        if closest is None:
            return []
        message = f"nearly {closest}, which is a known metric."
        hint = f"Write `metric: {closest}` if that is meant."
    else:
        message = f"the built-in scorer {scorer} computes {scorer}."
        hint = f"Write `metric: {scorer}`, or name the scorer that computes {metric}."
        hint = f"Write `metric: {scorer}`." if closest else hint
    data = {"metric": metric, "closest": closest}
    return [Finding("metric_unknown", f"oracle.metric is {metric!r}; {message}", hint, data)]
