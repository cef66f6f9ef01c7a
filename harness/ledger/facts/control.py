"""What guards the record: noticed tampering, and control files that a person accepted."""

from typing import ClassVar

from harness.domain.late import dataclass
from harness.domain.statuses import CLOSED_EXPERIMENTS, GateMode
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    NEWEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Note,
    State,
    from_body,
    word,
)
from harness.ledger.facts.plan import ApprovedPlan


@dataclass(frozen=True, kw_only=True)
class TamperingNoticed(Note):
    """An audit found that something frozen or recorded is not what it was."""

    KIND: ClassVar[str] = "tampering_noticed"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path", "expected", "actual"})
    SPOOLED: ClassVar[bool] = True
    what: str
    path: str
    expected: str
    actual: str
    experiment: str | None = None


@dataclass(frozen=True, kw_only=True)
class ControlAccepted(Note):
    """A person accepted the control files: the digest of the list that the audit compares with."""

    KIND: ClassVar[str] = "control_accepted"
    sha256: str  # of the list's files and their digests, as canonical JSON
    files: int
    by: str


@dataclass(frozen=True, kw_only=True)
class JudgeRecorded(Note):
    """A person approved a plan with this judge: the digest of the harness's files and of those that
    judging imports, on the writer's machine."""

    KIND: ClassVar[str] = "judge_recorded"
    EXACT: ClassVar[frozenset[str]] = frozenset({"interpreter", "prefix"})
    sha256: str
    files: int
    interpreter: str  # its real path
    prefix: str  # the environment that it runs in
    python: str
    by: str


@dataclass(frozen=True, kw_only=True)
class GateModeSet(Note):
    """A person said what the loop may decide by itself, until the plan is approved again."""

    KIND: ClassVar[str] = "gate_mode_set"
    plan: str
    mode: str
    before: str  # what was in force
    by: str
    reason: str

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        word(GateMode, body["mode"], "A mode")


_NEWEST_OF_WRITER = (
    f"SELECT * FROM notes WHERE kind = :kind AND writer = :writer ORDER BY {NEWEST_FIRST} LIMIT 1"
)


class ControlLedger(LedgerPart):
    def note_tampering(
        self, *, what: str, path: str, expected: str, actual: str, experiment: str | None = None
    ) -> StoredFact:
        return self.append(
            TamperingNoticed(
                what=what, path=path, expected=expected, actual=actual, experiment=experiment
            )
        )

    def accept_control(self, *, sha256: str, files: int, by: str) -> StoredFact:
        return self.append(ControlAccepted(sha256=sha256, files=files, by=by))

    def accepted_list(self, writer: str) -> str | None:
        """The digest that was accepted last by `writer`, whose state directory holds the list."""
        # Of this writer only: the list lies in its state directory, and another clone's list
        # describes another machine's files.
        rows = self._rows(_NEWEST_OF_WRITER, kind=ControlAccepted.KIND, writer=writer)
        return str(rows[0]["record"]["sha256"]) if rows else None

    def recorded_judge(self, writer: str) -> JudgeRecorded | None:
        """The one recorded last by `writer`: another clone's machine has its own."""
        rows = self._rows(_NEWEST_OF_WRITER, kind=JudgeRecorded.KIND, writer=writer)
        return from_body(JudgeRecorded, rows[0]["record"]) if rows else None

    def gate_mode(self, plan: ApprovedPlan) -> tuple[GateMode, GateModeSet | None]:
        """The mode in force, and who set it where a person did since the plan's approval."""
        made = [
            fact
            for fact, at in self._notes(GateModeSet)
            if fact.plan == plan.name and at >= plan.at
        ]
        if not made:
            return GateMode(plan.content["gates"]["mode"]), None
        return GateMode(made[-1].mode), made[-1]

    def tampering(self) -> list[TamperingNoticed]:
        """Oldest first."""
        return [fact for fact, _ in self._notes(TamperingNoticed)]

    def open_tampering(self) -> list[TamperingNoticed]:
        """Oldest first: of an experiment until it is decided, of what is frozen until a plan is
        approved again."""
        with self._database.read():
            noticed = self._notes(TamperingNoticed)
            if not noticed:
                return []
            approved = self._value("SELECT max(at) FROM plans") or ""
            named = {fact.experiment for fact, _ in noticed} - {None}
            query = "SELECT status FROM experiments WHERE id = :id"
            decided = {name for name in named if self._value(query, id=name) in CLOSED_EXPERIMENTS}
            return [
                fact
                for fact, at in noticed
                if (at > approved if fact.experiment is None else fact.experiment not in decided)
            ]


FACTS: tuple[type[Fact], ...] = (TamperingNoticed, ControlAccepted, JudgeRecorded, GateModeSet)
