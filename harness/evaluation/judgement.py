"""One experiment against its reference: by seeds, by rows, and by how many comparisons were made.

Better needs both: a difference beyond the seeds' noise floor, and, where the rows of both are
known, one that the paired test over rows does not explain. The larger of the two p-values tests
both at once (Berger, "Multiparameter hypothesis testing and acceptance sampling", 1982: the
intersection-union test). Holm's correction ("A simple sequentially rejective multiple test
procedure", 1979) is over the tries compared with the same reference so far.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from harness.domain.records import Objective
from harness.evaluation.multiple import LEVEL, holm
from harness.evaluation.noise_floor import Comparison
from harness.evaluation.paired import Paired

TRIVIAL = "trivial predictor"
"""What an experiment without a parent is compared with."""


class Worth(StrEnum):
    """What a comparison comes to, in the one word that every page uses."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN = "within noise"
    UNKNOWN = "noise unknown"


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A comparison that was made with the same reference before."""

    experiment: str
    """Its id, or, of code or a command that an experiment left behind, the last run with it, e.g.
    "exp-0001/run-03"."""
    p: float
    better: bool
    """What its own verdict said, corrected for those before it."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    difference: float
    floor: float | None
    better: bool | None
    why: str
    p: float | None
    """Two-sided, of seeds and rows together; None when nothing can be said."""
    p_corrected: float | None
    comparisons: int
    """With this reference, this one included."""
    no_longer: tuple[str, ...]
    """Earlier experiments that were better among those of their time and are within the noise among
    all of these."""
    paired: Paired | None

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "no_longer": list(self.no_longer)}


def p_of(seeds: Comparison, paired: Paired | None, objective: Objective) -> float | None:
    """The p-value of "better or worse, by seeds and by rows"; None when the seeds cannot say."""
    if seeds.p is None or paired is None:
        return seeds.p
    agree = objective.gain(paired.gain, 0.0) * objective.gain(seeds.difference, 0.0) > 0
    return max(seeds.p, paired.p) if agree else 1.0


def worth(comparison: Mapping[str, Any]) -> Worth:
    """Of a recorded comparison: its `better` and `p_corrected`. Beyond the noise and not better is
    worse."""
    if comparison["better"] is None or comparison["p_corrected"] is None:
        return Worth.UNKNOWN
    if comparison["better"]:
        return Worth.BETTER
    return Worth.WORSE if comparison["p_corrected"] <= LEVEL else Worth.WITHIN


def judge(
    seeds: Comparison, paired: Paired | None, earlier: Sequence[Earlier], objective: Objective
) -> Judgement:
    """`earlier`: the comparisons that were made with the same reference before, oldest first."""
    p = p_of(seeds, paired, objective)
    corrected = [] if p is None else holm([*(item.p for item in earlier), p])
    better, words = seeds.better, [seeds.why]
    if paired is not None:
        words.append(_of_rows(paired))
    if p is not None:
        if better and p > LEVEL:
            better = False
            words.append("The rows do not bear it out: within the noise.")
        elif better and corrected[-1] > LEVEL:
            better = False
            words.append("Too many were tried for that: within the noise.")
        words.append(_of_family(p, corrected[-1], len(corrected)))
    now = dict(zip([item.experiment for item in earlier], corrected, strict=False))
    fallen = tuple(
        item.experiment for item in earlier if item.better and now.get(item.experiment, 0) > LEVEL
    )
    words += [_of_fallen(name, now[name], len(corrected)) for name in fallen]
    return Judgement(
        difference=seeds.difference,
        floor=seeds.floor,
        better=better,
        why=" ".join(words),
        p=p,
        p_corrected=corrected[-1] if corrected else None,
        comparisons=len(earlier) + 1,
        no_longer=fallen,
        paired=paired,
    )


def _of_rows(paired: Paired) -> str:
    rows = f"{paired.candidate_ahead} of {paired.n} rows higher and {paired.reference_ahead} lower"
    return f"On the same rows ({paired.test}): {rows}, p = {paired.p:.2g}."


def _of_family(p: float, corrected: float, comparisons: int) -> str:
    if comparisons == 1:
        return f"p = {p:.2g}; the first try compared with this reference."
    family = f"the {comparisons} tries compared with this reference so far (Holm)"
    return f"p = {p:.2g}; corrected for {family} {corrected:.2g}."


def _of_fallen(experiment: str, corrected: float, comparisons: int) -> str:
    return (
        f"With {comparisons} compared, {experiment} is no longer beyond the noise (corrected p ="
        f" {corrected:.2g})."
    )
