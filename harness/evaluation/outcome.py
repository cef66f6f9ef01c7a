"""What a recorded comparison comes to, in one word and in sentences.

Facts keep numbers and codes; the words are made here when they are shown, so a new wording changes
no hash and makes no verdict stale.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from harness.domain.statuses import Direction

LEVEL = 0.05
"""Two-sided; one minus the level of every interval and floor."""
HIDDEN_LABELS, READABLE_LABELS = "hidden", "readable"
"""Of validation: in the vault alone, or where training and its author can read them."""
MCNEMAR = "McNemar's exact test"
OF_PREDICT = ("predict_", "predictions_", "weights_unused")
"""How codes of an evaluation begin that say that predict failed."""
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
        sentences.append(_by_rows(comparison))
    if comparison["p"] is not None:
        sentences += _decided(comparison)
    count = comparison["comparisons"]
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
    higher = comparison["direction"] == Direction.MAXIMIZE
    return (
        f"{comparison['difference']:+.4g} against a noise floor{source} of"
        f" {comparison['floor']:.4g} ({'higher' if higher else 'lower'} is better): {outcome}."
    )


def _by_rows(comparison: Mapping[str, Any]) -> str:
    paired = comparison["paired"]
    better, worse = paired["candidate_ahead"], paired["reference_ahead"]
    if comparison["direction"] == Direction.MINIMIZE:
        better, worse = worse, better
    groups, test = paired.get("groups"), paired["test"]
    among = "" if groups is None else f" in {groups} groups"
    # A count is no evidence where a row may be far better or hardly worse.
    by_size = "" if test == MCNEMAR else "; by how much counts too"
    return (
        f"Row by row ({test}): {better} of {paired['n']} rows{among} better and {worse}"
        f" worse{by_size}."
    )


def _decided(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Which test it was that decided, its p, and what the correction makes of it."""
    p, corrected, count = (comparison[key] for key in ("p", "p_corrected", "comparisons"))
    tried = "first comparison with this reference"
    if count > 1:
        tried = f"{corrected:.2g} after correction for {count} comparisons with this reference"
    yield f"{_decider(comparison)}: p = {p:.2g}; {tried}."
    if comparison["by_seeds"] == Worth.BETTER and corrected > LEVEL:
        yield "Not significant."


def _decider(comparison: Mapping[str, Any]) -> str:
    p, paired = comparison["p"], comparison["paired"]
    if paired is None:
        return "The seeds decide"
    if p <= paired["p"]:
        return "The rows decide, as the weaker evidence"
    apart = paired["gain"] * comparison["difference"] <= 0
    return "Seeds and rows disagree" if apart else "The seeds decide, as the weaker evidence"
