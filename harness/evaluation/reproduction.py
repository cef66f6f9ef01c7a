"""Does a second training of the same code, command and seeds give the same score?"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.records import Objective
from harness.evaluation.noise_floor import compare


class Outcome(StrEnum):
    EXACT = "exact"
    """Every seed has the same score to the last bit."""
    REPRODUCED = "reproduced"
    """The difference of the means is within the noise of the seeds."""
    DIFFERS = "differs"
    """It is beyond it, in whichever direction."""
    INCONCLUSIVE = "inconclusive"

    @property
    def holds(self) -> bool:
        return self in (Outcome.EXACT, Outcome.REPRODUCED)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    outcome: Outcome
    difference: float | None
    """Again minus first, means over seeds, in the metric's unit."""
    floor: float | None
    """Half of the 95% interval of a difference that only seeds make."""
    why: str


def judged(
    first: Mapping[int, float], again: Mapping[int, float], objective: Objective
) -> Reproduction:
    """Compare the scores by seed; the seeds of `first` are those that count."""
    if not first or set(again) < set(first):
        missing = len(set(first) - set(again))
        why = (
            f"{missing} of {len(first)} seeds have no second score" if first else "no first score"
        )
        return Reproduction(outcome=Outcome.INCONCLUSIVE, difference=None, floor=None, why=why)
    seeds = sorted(first)
    before, after = [first[seed] for seed in seeds], [again[seed] for seed in seeds]
    if before == after:
        return Reproduction(
            outcome=Outcome.EXACT,
            difference=0.0,
            floor=None,
            why=f"all {len(seeds)} seeds have the same score to the last bit",
        )
    compared = compare(after, before, objective)
    if compared.floor is None:
        why = f"the scores differ, and {len(seeds)} seeds do not tell how much is noise"
        return Reproduction(
            outcome=Outcome.INCONCLUSIVE, difference=compared.difference, floor=None, why=why
        )
    within = abs(compared.difference) <= compared.floor
    return Reproduction(
        outcome=Outcome.REPRODUCED if within else Outcome.DIFFERS,
        difference=compared.difference,
        floor=compared.floor,
        why=f"the means differ by {compared.difference:+.4g},"
        f" {'within' if within else 'beyond'} the noise floor of {compared.floor:.4g}",
    )
