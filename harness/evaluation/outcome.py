"""What a recorded comparison comes to, in one word and in sentences.

Facts keep numbers and codes; the words are made here when they are shown, so a new wording changes
no hash and makes no verdict stale.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

LEVEL = 0.05
"""Two-sided; one minus the level of every interval and floor."""
HIDDEN_LABELS, READABLE_LABELS = "hidden", "readable"
"""Of validation: in the vault alone, or where training and its author can read them."""
TRIVIAL = "trivial predictor"
"""What an experiment without a parent is compared with."""


_MOST = 5
"""Names in a sentence."""


class Worth(StrEnum):
    """One-word outcome of a comparison, as shown on every page."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN = "within noise"
    NOT_BETTER = "not better"
    """Of hidden labels: better or not is all that is told."""
    UNKNOWN = "noise unknown"


class Inconclusive(StrEnum):
    """Why the seeds cannot say whether one score is better."""

    TOO_FEW_SEEDS = "too_few_seeds"
    REFERENCE_HAS_FEWER_SEEDS = "reference_has_fewer_seeds"
    REFERENCE_NOT_SCORED = "reference_not_scored"


class FloorOf(StrEnum):
    """Whose noise the floor of a comparison is."""

    SEEDS = "seeds"
    PAIRS = "pairs"
    """Of the differences, seed by seed."""
    ROWS_ALONE = "rows_alone"
    """All seeds score the same, or differ by the same, so their spread says nothing."""
    ROWS = "rows"
    """The rows' noise is larger than the seeds'."""


def told_words(
    *,
    answer: str,
    mean: float | None,
    bound: str | None,
    best: float | None,
    step: float,
    coarse: bool = False,
) -> str:
    """What was told of a score on labels that nobody may read, e.g. "0.87 in steps of 0.02", "not
    better than 0.87 by 0.02", "tier only"; of a `coarse` answer also why it is."""
    words = answer
    if mean is not None:
        words = f"{f'{bound} ' if bound else ''}{mean:g} in steps of {step:g}"
    elif best is not None and answer == "not better":
        words = f"not better than {best:g} by {step:g}"
    return f"{words} (coarse: few bits are left)" if coarse else words


def more_bits(path: str, limit: float, experiment: str = "EXP") -> str:
    """The one way out when the plan's bits are few or spent; `path` is the plan's."""
    return (
        f"A person sets oracle.bits in {path} above {limit:g} and runs `harness plan approve"
        f" {path}`, which keeps seeds and scores; then `harness evaluate {experiment}` again."
    )


def worth(comparison: Mapping[str, Any]) -> Worth:
    """The outcome by `better` and `p_corrected`: beyond the noise and not better is worse."""
    if comparison.get("labels") == HIDDEN_LABELS and comparison["better"] is not None:
        return Worth.BETTER if comparison["better"] else Worth.NOT_BETTER
    if comparison["better"] is None or comparison["p_corrected"] is None:
        return Worth.UNKNOWN
    if comparison["better"]:
        return Worth.BETTER
    return Worth.WORSE if comparison["p_corrected"] <= LEVEL else Worth.WITHIN


def explain(comparison: Mapping[str, Any]) -> str:
    """The comparison in sentences: seeds, rows, correction, and the earlier experiments that are no
    longer significant."""
    if comparison["inconclusive"] == Inconclusive.REFERENCE_NOT_SCORED:
        version = comparison["plan_version"]
        return (
            f"Inconclusive: {comparison['against']} has no score since plan version {version},"
            " which began this comparison."
        )
    if comparison.get("labels") == HIDDEN_LABELS:
        return " ".join([_told(comparison), *_beside(comparison)])
    sentences = [_by_seeds(comparison)]
    if comparison["paired"] is not None:
        sentences.append(_by_rows(comparison["paired"]))
    p, corrected, count = (comparison[key] for key in ("p", "p_corrected", "comparisons"))
    if p is not None:
        if comparison["by_seeds"] == Worth.BETTER and p > LEVEL:
            sentences.append("Not significant in the paired row-level test.")
        elif comparison["by_seeds"] == Worth.BETTER and corrected > LEVEL:
            sentences.append(f"Not significant after correction for {count} comparisons.")
        sentences.append(_correction(p, corrected, count))
    for experiment, now in comparison["no_longer"].items():
        sentences.append(
            f"{experiment} is no longer significant after correction for {count} comparisons"
            f" (p = {now:.2g})."
        )
    return " ".join([*sentences, *_beside(comparison)])


def _beside(comparison: Mapping[str, Any]) -> list[str]:
    """Of a parent that is not the reference, and of libraries."""
    parent = comparison.get("parent")
    if parent is None:
        return _trained(comparison)
    return [*_of_parent(parent, comparison["against"]), *_trained(comparison)]


def _trained(comparison: Mapping[str, Any]) -> list[str]:
    names = comparison.get("libraries", ())
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    listed = f"{', '.join(names[:_MOST])}{more}"
    return [f"Note: the two were trained with different libraries ({listed})."] if names else []


def _of_parent(parent: Mapping[str, Any], against: str) -> list[str]:
    if not parent["scored"]:
        return [f"Its parent {parent['against']} has no score: {against} is the reference."]
    words = f"Its parent {parent['against']} is no better than {against}, which is the reference"
    if parent.get("difference") is None:
        return [f"{words}."]
    p = "" if parent["p"] is None else f" (p = {parent['p']:.2g}, alone)"
    return [f"{words}; against the parent {parent['difference']:+.4g}{p}."]


def _told(comparison: Mapping[str, Any]) -> str:
    """Of hidden labels, without a number that was not told."""
    if comparison["inconclusive"] is not None:
        return _by_seeds(comparison)
    count, step = comparison["comparisons"], comparison["step"]
    tried = "first comparison" if count == 1 else f"corrected for {count} comparisons"
    if comparison["better"]:
        return f"Better by more than the noise, on hidden labels ({tried} with this reference)."
    if comparison["best"] is not None and comparison["answer"] == "not better":
        return (
            f"Not better than the best told so far, {comparison['best']:g}, by a step of {step:g},"
            " on hidden labels."
        )
    return f"Not better by more than the noise, on hidden labels ({tried} with this reference)."


def _by_seeds(comparison: Mapping[str, Any]) -> str:
    own, reference = comparison["seeds"]
    if comparison["inconclusive"] == Inconclusive.TOO_FEW_SEEDS:
        least = comparison["least_seeds"]
        if reference is None:
            return f"Inconclusive: {own} seeds; the noise is known from {least} seeds on."
        return (
            f"Inconclusive: {own} seeds against {reference}; the noise is known from {least} seeds"
            " each on."
        )
    if comparison["inconclusive"] == Inconclusive.REFERENCE_HAS_FEWER_SEEDS:
        return (
            f"Inconclusive: {own} seeds against {reference}; the reference needs at least as many."
        )
    source = {
        FloorOf.SEEDS: "",
        FloorOf.PAIRS: " of the seeds in pairs",
        FloorOf.ROWS_ALONE: " of the rows (all seeds score the same)",
        FloorOf.ROWS: " of the rows (larger than the seeds')",
    }[FloorOf(comparison["floor_of"])]
    outcome = {
        Worth.BETTER: "better by more than the noise",
        Worth.WORSE: "worse by more than the noise",
        Worth.WITHIN: "within the noise",
    }[Worth(comparison["by_seeds"])]
    return (
        f"{comparison['difference']:+.4g} against a noise floor{source} of"
        f" {comparison['floor']:.4g} ({comparison['direction']}): {outcome}."
    )


def _by_rows(paired: Mapping[str, Any]) -> str:
    ahead, behind = paired["candidate_ahead"], paired["reference_ahead"]
    groups = paired.get("groups")
    among = "" if groups is None else f" in {groups} groups"
    return (
        f"On the same rows ({paired['test']}): {ahead} of {paired['n']} rows{among} higher and"
        f" {behind} lower, p = {paired['p']:.2g}."
    )


def _correction(p: float, corrected: float, count: int) -> str:
    if count == 1:
        return f"p = {p:.2g}; first comparison with this reference."
    return (
        f"p = {p:.2g}; {corrected:.2g} after correction for {count} comparisons with this"
        " reference."
    )
