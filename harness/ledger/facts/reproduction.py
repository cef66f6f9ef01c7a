"""Reproductions: what a second training of a kept experiment came to."""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.ledger.facts.base import Body, Fact, LedgerPart, Note, State
from harness.ledger.facts.experiment import find_experiment


@dataclass(frozen=True, kw_only=True)
class ReproductionJudged(Note):
    KIND: ClassVar[str] = "reproduction_judged"
    experiment: str  # the kept one
    reproduction: str  # the experiment that trained it again
    metric: str
    split: str
    outcome: str  # as evaluation.reproduction.Outcome has it
    difference: float | None
    floor: float | None
    scores: Sequence[dict[str, Any]]  # {seed, first, again}
    changed: Sequence[str]  # what was not as it was: libraries, data, sandbox
    why: str
    by: str

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])
        find_experiment(state, body["reproduction"])


class ReproductionLedger(LedgerPart):
    def reproductions(self, experiment: str | None = None) -> list[tuple[ReproductionJudged, str]]:
        """Of one kept experiment, or all; oldest first, each with its time."""
        made = self._notes(ReproductionJudged)
        return [pair for pair in made if experiment in (None, pair[0].experiment)]


FACTS: tuple[type[Fact], ...] = (ReproductionJudged,)
