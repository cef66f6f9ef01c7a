"""An experiment's score as far as it is known, from its summary in the ledger (see
harness.ledger.apply)."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.domain.statuses import Direction, Evidence, SandboxKind, Split
from harness.evaluation.outcome import TRIVIAL, Worth, worth
from harness.projections.text import number

Summary = Mapping[str, Any]
_ROUNDING = 1e-12
"""A difference below it is the arithmetic's."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A score with the level of what it rests on."""

    split: Split
    mean: float
    n_seeds: int
    evidence: str


def shown_score(summary: Summary, split: Split) -> Shown | None:
    """The last verdict's score on `split`; before there is one, the mean of the evaluations so far;
    else None."""
    judged = summary["scores"].get(split.value)
    evaluated = summary["evaluated"].get(split.value, {})
    known = [item for item in evaluated.values() if item["value"] is not None]
    if judged is not None:
        return Shown(
            split=split,
            mean=judged["mean"],
            n_seeds=judged["n_seeds"] or len(known),
            evidence=judged["evidence"] or _evidence(evaluated),
        )
    if not known:
        return None
    mean = fmean(item["value"] for item in known)
    return Shown(split=split, mean=mean, n_seeds=len(known), evidence=_evidence(evaluated))


def direction_of(plan: Mapping[str, Any] | None) -> Direction | None:
    """The direction that an approved plan's front matter states; it is never guessed."""
    stated = ((plan or {}).get("oracle") or {}).get("direction")
    return Direction(stated) if stated in set(Direction) else None


def metric_of(plan: Mapping[str, Any] | None) -> str:
    return str(((plan or {}).get("oracle") or {}).get("metric") or "score")


def change_text(summary: Summary, parent: Summary | None) -> str | None:
    """The signed difference on validation and what it is worth, both as the newest verdict recorded
    them: a gate's comparison has one home (harness.evaluation.judgement), and no page makes
    another.

    Before a verdict compared, the difference of the scores so far to the parent's, without one to
    the trivial predictor's, `not compared yet`. None when there is nothing to compare with.
    """
    recorded = summary.get("comparison")
    if recorded is not None and recorded["difference"] is not None:
        return f"{_signed(recorded['difference'])} ({_worth(recorded)})"
    own = shown_score(summary, Split.VALIDATION)
    before = shown_score(parent, Split.VALIDATION) if parent is not None else None
    reference = (
        before.mean if before is not None else summary["baseline"].get(Split.VALIDATION.value)
    )
    if own is None or reference is None:
        return None
    return (
        f"{_signed(own.mean - reference)} ({'' if before is not None else 'to trivial, '}not"
        " compared yet)"
    )


def _signed(difference: float) -> str:
    if abs(difference) < _ROUNDING:
        return "0"
    return f"{'+' if difference > 0 else '-'}{number(abs(difference))}"


def _worth(recorded: Mapping[str, Any]) -> str:
    found = worth(recorded)
    beyond = found in (Worth.BETTER, Worth.WORSE)
    words = [f"{found} than trivial" if beyond and recorded["against"] == TRIVIAL else found.value]
    if recorded["comparisons"] > 1:
        words.append(f"try {recorded['comparisons']}")
    words += [f"{name} no longer beyond it" for name in recorded.get("no_longer", ())]
    return "; ".join(words)


def _evidence(evaluated: Mapping[str, Mapping[str, Any]]) -> str:
    isolated = all(item["sandbox"] != SandboxKind.NONE for item in evaluated.values())
    return (Evidence.RECOMPUTED if isolated else Evidence.RECOMPUTED_NOT_ISOLATED).value
