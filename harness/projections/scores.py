"""An experiment's score as far as it is known, from its summary in the ledger (see harness.ledger.apply)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.domain.records import Objective
from harness.domain.statuses import CageKind, Direction, Evidence, Split
from harness.evaluation.noise_floor import Comparison, compare, compare_to_baseline
from harness.projections.text import number

Summary = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A score with the level of what it rests on."""

    split: Split
    mean: float
    n_seeds: int
    evidence: str
    values: tuple[float, ...]
    """One a seed; none where they are not known."""
    row_noise: float
    """Half width of the 95% interval over rows; 0 where it is not known."""


def shown_score(summary: Summary, split: Split) -> Shown | None:
    """The last verdict's score on `split`; before there is one, the mean of the evaluations so far; else None."""
    judged = summary["scores"].get(split.value)
    evaluated = summary["evaluated"].get(split.value, {})
    known = [item for item in evaluated.values() if item["value"] is not None]
    if judged is not None:
        return Shown(
            split=split,
            mean=judged["mean"],
            n_seeds=judged["n_seeds"] or len(known),
            evidence=judged["evidence"] or _evidence(evaluated),
            values=tuple(judged["values"]),
            row_noise=_half_width([judged["interval"]]),
        )
    if not known:
        return None
    values = tuple(item["value"] for item in known)
    return Shown(
        split=split,
        mean=fmean(values),
        n_seeds=len(values),
        evidence=_evidence(evaluated),
        values=values,
        row_noise=_half_width([item["interval"] for item in known]),
    )


def direction_of(plan: Mapping[str, Any] | None) -> Direction | None:
    """The direction that an approved plan's front matter states; it is never guessed."""
    stated = ((plan or {}).get("oracle") or {}).get("direction")
    return Direction(stated) if stated in set(Direction) else None


def metric_of(plan: Mapping[str, Any] | None) -> str:
    return str(((plan or {}).get("oracle") or {}).get("metric") or "score")


def change_text(own: Shown, parent: Shown | None, trivial: float | None, direction: Direction | None) -> str | None:
    """The signed difference to the parent's score, without one to the trivial predictor's, and what it is worth.

    Better or worse, in the plan's direction, is only what is so beyond the noise floor that gates use; with fewer seeds
    than that floor needs the noise is unknown. None when there is nothing to compare with.
    """
    reference = trivial if parent is None else parent.mean
    if reference is None:
        return None
    than = " than trivial" if parent is None else ""
    difference = own.mean - reference
    if math.isclose(own.mean, reference, rel_tol=1e-12):
        return f"0 (equal{' to trivial' if than else ''})"
    sign = "+" if difference > 0 else "-"
    return f"{sign}{number(abs(difference))} ({_judged(own, parent, reference, direction, than)})"


def _judged(own: Shown, parent: Shown | None, reference: float, direction: Direction | None, than: str) -> str:
    if direction is None:
        return "direction unknown"
    found = _compared(own, parent, reference, direction)
    if found is None or found.floor is None:
        return "noise unknown"
    if abs(found.difference) <= found.floor:
        return "within noise"
    return f"{'better' if found.better else 'worse'}{than}"


def _compared(own: Shown, parent: Shown | None, reference: float, direction: Direction) -> Comparison | None:
    """None when the values of the seeds are not known."""
    if not own.values or (parent is not None and not parent.values):
        return None
    objective = Objective(metric="", direction=direction, tiers={}, seeds=own.n_seeds, queries=0)
    if parent is None:
        return compare_to_baseline(own.values, reference, objective, row_noise=own.row_noise)
    both_known = own.row_noise and parent.row_noise
    row_noise = math.hypot(own.row_noise, parent.row_noise) if both_known else 0.0
    return compare(own.values, parent.values, objective, row_noise=row_noise)


def _half_width(intervals: Sequence[Sequence[float] | None]) -> float:
    """Of the mean of the intervals; 0 when one is not known."""
    known = [(high - low) / 2 for low, high in (interval for interval in intervals if interval is not None)]
    return fmean(known) if known and len(known) == len(intervals) else 0.0


def _evidence(evaluated: Mapping[str, Mapping[str, Any]]) -> str:
    isolated = all(item["cage"] != CageKind.NONE for item in evaluated.values())
    return (Evidence.RECOMPUTED if isolated else Evidence.RECOMPUTED_NOT_ISOLATED).value
