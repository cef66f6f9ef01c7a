"""One experiment against its reference: by seeds, by rows, and by how many comparisons were made.

Better needs both: a difference beyond the seeds' noise floor, and, where the rows of both are known, one that the
paired test over rows does not explain. The larger of the two p-values tests both at once (Berger, "Multiparameter
hypothesis testing and acceptance sampling", 1982: the intersection-union test). Holm's correction then counts the
comparisons that were made with the same reference before.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.domain.records import Objective
from harness.evaluation.multiple import LEVEL, holm
from harness.evaluation.noise_floor import Comparison
from harness.evaluation.paired import Paired


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
    paired: Paired | None

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def p_of(seeds: Comparison, paired: Paired | None, objective: Objective) -> float | None:
    """The p-value of "better or worse, by seeds and by rows"; None when the seeds cannot say."""
    if seeds.p is None or paired is None:
        return seeds.p
    agree = objective.gain(paired.gain, 0.0) * objective.gain(seeds.difference, 0.0) > 0
    return max(seeds.p, paired.p) if agree else 1.0


def judge(seeds: Comparison, paired: Paired | None, earlier: Sequence[float], objective: Objective) -> Judgement:
    """`earlier`: the p-values of the comparisons that were made with the same reference before."""
    p = p_of(seeds, paired, objective)
    corrected = None if p is None else holm([*earlier, p])[-1]
    better, words = seeds.better, [seeds.why]
    if paired is not None:
        words.append(_of_rows(paired))
    if p is not None and corrected is not None:
        if better and p > LEVEL:
            better = False
            words.append("The rows do not bear it out: within the noise.")
        elif better and corrected > LEVEL:
            better = False
            words.append("Too many were tried for that: within the noise.")
        words.append(_of_family(p, corrected, len(earlier) + 1))
    return Judgement(
        difference=seeds.difference,
        floor=seeds.floor,
        better=better,
        why=" ".join(words),
        p=p,
        p_corrected=corrected,
        comparisons=len(earlier) + 1,
        paired=paired,
    )


def _of_rows(paired: Paired) -> str:
    rows = f"{paired.candidate_ahead} of {paired.n} rows higher and {paired.reference_ahead} lower"
    return f"On the same rows ({paired.test}): {rows}, p = {paired.p:.2g}."


def _of_family(p: float, corrected: float, comparisons: int) -> str:
    if comparisons == 1:
        return f"p = {p:.2g}; the first comparison with this reference."
    return f"p = {p:.2g}, corrected for {comparisons} comparisons with this reference (Holm) {corrected:.2g}."
