"""An experiment's score as far as it is known, from its summary in the ledger (see harness.ledger.apply)."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.domain.statuses import CageKind, Direction, Evidence, Split
from harness.projections.text import number

Summary = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A score with the level of what it rests on."""

    split: Split
    mean: float
    n_seeds: int
    evidence: str


def shown_score(summary: Summary, split: Split) -> Shown | None:
    """The last verdict's score on `split`; before there is one, the mean of the evaluations so far; else None."""
    judged = summary["scores"].get(split.value)
    evaluated = summary["evaluated"].get(split.value, {})
    values = {seed: item["value"] for seed, item in evaluated.items() if item["value"] is not None}
    if judged is not None:
        evidence = judged["evidence"] or _evidence(evaluated)
        return Shown(split=split, mean=judged["mean"], n_seeds=judged["n_seeds"] or len(values), evidence=evidence)
    if not values:
        return None
    return Shown(split=split, mean=fmean(values.values()), n_seeds=len(values), evidence=_evidence(evaluated))


def direction_of(plan: Mapping[str, Any] | None) -> Direction | None:
    """The direction that an approved plan's front matter states; it is never guessed."""
    stated = ((plan or {}).get("oracle") or {}).get("direction")
    return Direction(stated) if stated in set(Direction) else None


def metric_of(plan: Mapping[str, Any] | None) -> str:
    return str(((plan or {}).get("oracle") or {}).get("metric") or "score")


def change(value: float, reference: float, direction: Direction | None, *, than: str = "") -> str:
    """The signed difference to `reference`, and whether that is better in the plan's direction (`than` what)."""
    difference = value - reference
    if difference == 0:
        return f"0 (equal{than})"
    if direction is None:
        judged = "direction unknown"
    else:
        judged = "better" if (difference > 0) == (direction is Direction.MAXIMIZE) else "worse"
    sign = "+" if difference > 0 else "-"
    return f"{sign}{number(abs(difference))} ({judged}{than})"


def _evidence(evaluated: Mapping[str, Mapping[str, Any]]) -> str:
    isolated = all(item["cage"] != CageKind.NONE for item in evaluated.values())
    return (Evidence.RECOMPUTED if isolated else Evidence.RECOMPUTED_NOT_ISOLATED).value
