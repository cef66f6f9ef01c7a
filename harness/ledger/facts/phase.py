"""The phases of a project: what was found in one, and when it was passed or opened again."""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.contract.phases import PHASE_BY_NAME
from harness.domain.late import dataclass
from harness.errors import UsageError
from harness.ledger.facts.base import Body, Fact, LedgerPart, Note, State, require_text

LONGEST_NOTE = 4000
"""Characters."""


def _require_phase(name: str) -> None:
    if name not in PHASE_BY_NAME:
        raise UsageError(
            f"There is no phase {name!r}; expected one of {', '.join(PHASE_BY_NAME)}.",
            hint="`harness phase` shows those of this plan.",
        )


@dataclass(frozen=True, kw_only=True)
class PhaseNoted(Note):
    """What a role, or a person, found in a phase; a claim, never a score."""

    KIND: ClassVar[str] = "phase_noted"
    plan: str
    phase: str
    by: str
    session: str | None
    text: str
    sources: Sequence[str]

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _require_phase(body["phase"])
        require_text(body["text"], "A phase's note", LONGEST_NOTE)


@dataclass(frozen=True, kw_only=True)
class PhasePassed(Note):
    KIND: ClassVar[str] = "phase_passed"
    plan: str
    phase: str
    by: str
    decision: str  # that says why
    evidence: dict[str, Any]  # name in contract.phases.EVIDENCE -> what was there
    missing: Sequence[str]  # of an override, for ever
    override: bool

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _require_phase(body["phase"])


@dataclass(frozen=True, kw_only=True)
class PhaseReopened(Note):
    """It, and what comes after it, is to be done again."""

    KIND: ClassVar[str] = "phase_reopened"
    plan: str
    phase: str
    by: str
    decision: str
    agent: bool  # asked for by an agent's session; they may do so a few times only

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        _require_phase(body["phase"])


class PhaseLedger(LedgerPart):
    """Each oldest first, with its time."""

    def phase_notes(self, plan: str) -> list[tuple[PhaseNoted, str]]:
        return [pair for pair in self._notes(PhaseNoted) if pair[0].plan == plan]

    def phases_passed(self, plan: str) -> list[tuple[PhasePassed, str]]:
        return [pair for pair in self._notes(PhasePassed) if pair[0].plan == plan]

    def phases_reopened(self, plan: str) -> list[tuple[PhaseReopened, str]]:
        return [pair for pair in self._notes(PhaseReopened) if pair[0].plan == plan]


FACTS: tuple[type[Fact], ...] = (PhaseNoted, PhasePassed, PhaseReopened)
