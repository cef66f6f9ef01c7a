"""Is a recipe better than its baseline: over the approved seeds, and after how many tries?

A recipe is a specification without its seed. As for experiments two tests must hold, and their
larger p counts: over seeds Student's t, over rows the paired test (`evaluation.noise_floor`,
`evaluation.paired`).

Tries are the recipes that were ever scored on a benchmark, by anybody, in the order of their first
score. The p of the k-th is multiplied by k (k + 1) / 2 (alpha spending; Foster and Stine 2008):
never less than Holm's correction, which holds for tries that are looked at together. Where nothing
is better, the chance that any of them ever passes is at most 0.025 (1 + 1/3 + 1/6 + ...) = 0.05,
however many they are and in whatever order they are decided.
"""

from collections.abc import (
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.domain.records import Objective
from harness.domain.statuses import (
    Direction,
    Verdict,
)
from harness.evaluation.comparison import joint_p
from harness.evaluation.intervals import mean_interval
from harness.evaluation.noise_floor import compare_to_baseline
from harness.evaluation.outcome import LEVEL
from harness.evaluation.paired import paired_test
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.posttrain.contamination import said

_NO_RECIPE = ("seed", "config_fingerprint")
_OBJECTIVE = Objective(
    metric="benchmark", direction=Direction.MAXIMIZE, tiers={}, seeds=0, queries=0
)


def recipe_of(spec: Mapping[str, Any]) -> str:
    """The hash of a specification without its seed and without paths."""
    plain = {name: value for name, value in spec.items() if name not in _NO_RECIPE}
    for name in {"model", "dataset", "benchmark", "teacher"} & set(plain):
        plain[name] = {key: value for key, value in plain[name].items() if key != "path"}
    return sha256_bytes(canonical_json(plain))


@dataclass(frozen=True, kw_only=True)
class RowScores:
    """Row id -> score of a model's baseline and of the model."""

    baseline: Mapping[str, float]
    candidate: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Joint:
    """What all approved seeds of a recipe say together."""

    delta: float
    interval: tuple[float, float]
    """95%, of delta over rows."""
    p: float | None
    p_corrected: float | None

    @property
    def better(self) -> bool:
        good = self.p_corrected is not None and self.p_corrected <= LEVEL
        return good and self.interval[0] > 0


def compare_seeds(scores: Sequence[RowScores], *, tries: int, seed: int) -> Joint:
    """`scores`: one a seed, with the same rows. `tries`: the number of the recipe among all that
    were scored on the benchmark, from 1."""
    names = sorted(scores[0].candidate)
    candidates, baselines = (
        np.array([[getattr(one, who)[name] for name in names] for one in scores])
        for who in ("candidate", "baseline")
    )
    differences = candidates.mean(0) - baselines.mean(0)
    right_or_wrong = bool(np.isin([candidates, baselines], (0.0, 1.0)).all())
    rows = paired_test(candidates, baselines, right_or_wrong=right_or_wrong, seed=seed)
    base = float(baselines.mean())
    # Each seed against its own baseline: where an evaluator draws, theirs differ.
    means = [float(gain) + base for gain in (candidates - baselines).mean(1)]
    seeds = compare_to_baseline(means, base, _OBJECTIVE, row_noise=rows.half_width, paired=True)
    p = joint_p(seeds, rows, _OBJECTIVE)
    delta = float(differences.mean())
    return Joint(
        delta=delta,
        interval=mean_interval(differences) or (delta, delta),
        p=p,
        p_corrected=None if p is None else corrected(p, tries),
    )


def corrected(p: float, tries: int) -> float:
    return min(1.0, p * tries * (tries + 1) / 2)


@dataclass(frozen=True, kw_only=True)
class Family:
    """The models of one recipe that count for an approval."""

    seeds: Sequence[int]
    """That the approval asks for."""
    models: Mapping[int, str]
    """Seed -> the first model of the recipe with it."""
    scored: Mapping[int, RowScores]
    """Of those, on the rows that count; of the present mode, baseline and approval."""
    tries: int

    @property
    def outstanding(self) -> list[int]:
        return [seed for seed in self.seeds if seed not in self.scored]

    def unfit(self, model: str, seed: int) -> str | None:
        """Why the model is none of them."""
        if seed not in self.seeds:
            asked = ", ".join(map(str, self.seeds))
            return f"its seed {seed} is none of those that were approved ({asked})"
        first = self.models.get(seed, model)
        if first != model:
            return f"model {first[:12]} of the same specification and seed came first"
        return None


def verdict_of(
    own: float,
    n: int,
    thresholds: Mapping[str, float],
    joint: Joint | None,
    tries: int,
    *,
    hindrance: str | None = None,
) -> tuple[Verdict, str]:
    """Of a model whose gain on `n` rows is `own`: FAIL when it is too small by itself, PASS when
    the recipe's gain over all seeds is large and certain enough and nothing hinders it."""
    least = thresholds["delta"]
    if n < thresholds["rows"]:
        return Verdict.INCONCLUSIVE, f"{n} rows, fewer than {thresholds['rows']:g}"
    if own < least:
        return Verdict.FAIL, f"less than {least:g}"
    if hindrance is not None or joint is None:
        return Verdict.INCONCLUSIVE, hindrance or "its seeds are not scored"
    low, high = joint.interval
    told = f"over the seeds delta {joint.delta:+.3f}, interval [{low:+.3f}, {high:+.3f}]"
    if joint.p is not None and joint.p_corrected is not None:
        told += f", p = {joint.p:.2g}, as try {tries} on this benchmark {joint.p_corrected:.2g}"
    if joint.delta < least:
        return Verdict.INCONCLUSIVE, f"{told}: less than {least:g}"
    if not joint.better:
        return Verdict.INCONCLUSIVE, f"{told}: within what seeds, rows and tries make"
    return Verdict.PASS, f"{told}: at least {least:g}, and beyond what seeds, rows and tries make"


def hindrance_of(
    family: Family, model: str, seed: int, told: Mapping[str, Any] | None
) -> str | None:
    """What keeps a model from a PASS whatever its scores are. `told`: the contamination that its
    specification records."""
    if told is None:
        return "nobody looked whether its training rows hold the benchmark: specify it again"
    if told["blocks"]:
        return f"benchmark_contaminated: {said(told)}"
    if (unfit := family.unfit(model, seed)) is not None:
        return unfit
    if family.outstanding:
        left = ", ".join(map(str, family.outstanding))
        return f"seeds that were approved are not scored yet: {left}"
    return None
