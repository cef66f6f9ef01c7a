"""The metric that a plan names: known, a known one mistyped, or not what its scorer computes."""

from difflib import get_close_matches
from pathlib import PurePosixPath

from harness.detectors.metric_names import MetricRole, role_of
from harness.domain.findings import Finding
from harness.domain.metric_words import nearest, understood
from harness.domain.metrics import METRICS, Metric, Needs
from harness.domain.statuses import Direction
from harness.errors import PlanError
from harness.plans.schema import Plan

_LONG_NAME = 6
"""Letters of a metric's name at least, for a typo to be told from another name."""

_BY_ROLE = {MetricRole.LOSS: Direction.MINIMIZE, MetricRole.SCORE: Direction.MAXIMIZE}


def metric_called(written: str) -> Metric:
    """The metric of the table that somebody wrote. Raises PlanError that names the nearest."""
    name = understood(written)
    if name is not None:
        return METRICS[name]
    near = () if written.endswith(".py") else nearest(written)
    meant = f"Did you mean {' or '.join(map(repr, near))}?"
    raise PlanError(
        f"{written!r} is no metric of the harness; expected e.g. accuracy, roc_auc or rmse.",
        hint=meant if near else "docs/metrics.md lists the metrics; another one is a script.",
        code="metric_unknown",
    )


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
    """What a person should know of metric and scorer before approving."""
    return [
        note
        for note in (_other_name(plan), _direction_of_name(plan), _weakness(plan))
        if note is not None
    ]


def _other_name(plan: Plan) -> Finding | None:
    """For a metric that the built-in scorer does not compute, or that is nearly a known name, or
    another word for one. A script's metric may have any other name."""
    metric, scorer = plan.oracle.metric, plan.oracle.scorer
    by_script = plan.scorer_script is not None
    if metric in METRICS if by_script else metric == scorer:
        return None
    if any(_is_mistyped(metric, name) for name in METRICS):
        return None  # that is refused
    near = get_close_matches(metric, METRICS if by_script else [scorer], n=1, cutoff=0.85)
    closest = near[0] if near else None
    if by_script and (known := understood(metric)) is not None:
        closest = known
        message = f"another word for {known}, which the harness computes, by rows too."
        hint = f"Write `metric: {known}` and `scorer: {known}` if that is meant."
    elif by_script:
        if closest is None:
            return None
        message = f"nearly {closest}, which is a known metric."
        hint = f"Write `metric: {closest}` if that is meant."
    else:
        message = f"the built-in scorer {scorer} computes {scorer}."
        hint = f"Write `metric: {scorer}`, or name the scorer that computes {metric}."
        hint = f"Write `metric: {scorer}`." if closest else hint
    data = {"metric": metric, "closest": closest}
    return Finding("metric_unknown", f"oracle.metric is {metric!r}; {message}", hint, data)


def _direction_of_name(plan: Plan) -> Finding | None:
    """For a script whose metric's name says that the other direction is the better one."""
    metric, given = plan.oracle.metric, plan.oracle.direction
    known, said = understood(metric), _BY_ROLE.get(role_of(metric))
    if known is not None:
        said = METRICS[known].direction
    if plan.scorer_script is None or said is None or said is given:
        return None
    size = "smaller" if said is Direction.MINIMIZE else "larger"
    return Finding(
        "direction_against_name",
        f"oracle.direction is {given}, and by its name oracle.metric {metric!r} is better the"
        f" {size} it is.",
        f"Write `direction: {said}` if the script returns what the name says; else rename it.",
        {"metric": metric, "direction": str(given)},
    )


def _weakness(plan: Plan) -> Finding | None:
    metric = METRICS.get(plan.oracle.scorer)
    if metric is None or not metric.weakness:
        return None
    instead = "brier or log_loss" if metric.needs is Needs.PROBABILITIES else "f1 or roc_auc"
    return Finding(
        "metric_weak",
        f"{metric.name} rewards what knows nothing of a row: {metric.weakness}.",
        f"Take {instead} as the oracle, and report {metric.name} beside it.",
        {"metric": metric.name},
    )
