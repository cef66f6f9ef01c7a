"""The score of an experiment, from its summary in the ledger."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from harness.domain.grade import Grade
from harness.domain.late import Late, dataclass
from harness.domain.statuses import Direction, Split
from harness.evaluation.outcome import HIDDEN_LABELS, TRIVIAL, Worth, told_words, worth
from harness.projections.text import number

Summary = Mapping[str, Any]
_ROUNDING = 1e-12
"""A smaller difference is a rounding error."""


@dataclass(frozen=True, kw_only=True)
class Shown(Late):
    """A score with its grade in words."""

    split: Split
    mean: float | None
    """None where no number was told."""
    figure: str
    """What a page shows for it."""
    n_seeds: int
    evidence: str


def shown_score(summary: Summary, split: Split) -> Shown | None:
    """The newest verdict's score on `split`, else the mean of the evaluations so far, else None. Of
    a sealed split it is what was told."""
    released = summary["released"].get(split.value)
    if released is not None:
        told = {name: released[name] for name in ("answer", "mean", "bound", "best", "step")}
        told["coarse"] = released.get("coarse", False)
        return Shown(
            split=split,
            mean=released["mean"],
            figure=told_words(**told),
            n_seeds=released["n_seeds"],
            evidence=Grade.read(released["not_isolated"]).words,
        )
    judged = summary["scores"].get(split.value)
    evaluated = summary["evaluated"].get(split.value, {})
    scored = [one for one in evaluated.values() if one["value"] is not None]
    if judged is not None:
        return Shown(
            split=split,
            mean=judged["mean"],
            figure=number(judged["mean"]),
            n_seeds=judged["n_seeds"] or len(scored),
            evidence=Grade.read(judged["not_isolated"]).words,
        )
    if not scored:
        return None
    mean = fmean(one["value"] for one in scored)
    return Shown(
        split=split,
        mean=mean,
        figure=number(mean),
        n_seeds=len(scored),
        evidence=_evidence(evaluated),
    )


def direction_of(plan: Mapping[str, Any] | None) -> Direction | None:
    """The direction in the plan's front matter; never guessed."""
    stated = ((plan or {}).get("oracle") or {}).get("direction")
    return Direction(stated) if stated in set(Direction) else None


def metric_of(plan: Mapping[str, Any] | None) -> str:
    return str(((plan or {}).get("oracle") or {}).get("metric") or "score")


def change_text(summary: Summary, parent: Summary | None) -> str | None:
    """The signed validation difference and its outcome, as the newest verdict recorded them.

    Only gates compare (harness.evaluation.comparison); a page never does. Before the first verdict:
    the plain difference to the parent, or to the trivial predictor, marked `not compared yet`.
    None when there is nothing to compare with.
    """
    recorded = summary.get("comparison")
    if recorded is not None and recorded["labels"] == HIDDEN_LABELS:
        return f"{_worth(recorded)}, on hidden labels"
    if recorded is not None and recorded["difference"] is not None:
        words = f"{_signed(recorded['difference'])} ({_worth(recorded)}, on readable labels)"
        return words + _beside(recorded)
    own = shown_score(summary, Split.VALIDATION)
    before = shown_score(parent, Split.VALIDATION) if parent is not None else None
    reference = (
        before.mean if before is not None else summary["baseline"].get(Split.VALIDATION.value)
    )
    if own is None or own.mean is None or reference is None:
        return None
    return (
        f"{_signed(own.mean - reference)} ({'' if before is not None else 'to trivial, '}not"
        " compared yet)"
    )


def _beside(recorded: Mapping[str, Any]) -> str:
    """The change against a parent that is not the reference."""
    parent = recorded.get("parent") or {"difference": None}
    if parent["difference"] is None:
        return ""
    return f"; {_signed(parent['difference'])} against {parent['against']}"


def _signed(difference: float) -> str:
    if abs(difference) < _ROUNDING:
        return "0"
    return f"{'+' if difference > 0 else '-'}{number(abs(difference))}"


def _worth(recorded: Mapping[str, Any]) -> str:
    found = worth(recorded)
    beyond = found in (Worth.BETTER, Worth.WORSE)
    against = "trivial" if recorded["against"] == TRIVIAL else ""
    if recorded.get("parent"):
        against = recorded["against"]  # that is not the parent
    words = [f"{found} than {against}" if beyond and against else found.value]
    if against and not beyond and recorded.get("parent"):
        words = [f"{found}, against {against}"]
    if recorded["comparisons"] > 1:
        words.append(f"try {recorded['comparisons']}")
    words += [f"{name} no longer beyond it" for name in recorded.get("no_longer", ())]
    return "; ".join(words)


def _evidence(evaluated: Mapping[str, Mapping[str, Any]]) -> str:
    return Grade.read(link for one in evaluated.values() for link in one["not_isolated"]).words
