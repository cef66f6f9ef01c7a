"""Where a project is: each phase of its workflow, with the evidence that the facts hold for it."""

from collections.abc import Callable, Mapping

from harness.contract.phases import (
    BY_SESSION,
    KEPT,
    NOTE,
    PLAN,
    REPRODUCED,
    SOURCES,
    Phase,
    phases_of,
)
from harness.domain.late import Late, dataclass
from harness.domain.statuses import DecisionKind, ExperimentStatus
from harness.ledger.facts import ApprovedPlan, PhaseNoted, PhasePassed
from harness.ledger.ledger import Ledger

HOLDS = ("exact", "reproduced")


@dataclass(frozen=True, kw_only=True)
class PhaseView(Late):
    phase: Phase
    since: str
    """When it was opened again last; "" where it never was: older facts do not count for it."""
    evidence: Mapping[str, str]
    """Name in contract.phases.EVIDENCE -> what the facts hold."""
    missing: tuple[str, ...]
    passed: PhasePassed | None = None
    """Its newest passing, where it stands."""
    passed_at: str = ""

    @property
    def name(self) -> str:
        return self.phase.name


def are_gates(plan: ApprovedPlan) -> bool:
    """Whether the plan makes each phase a gate; else they are only shown."""
    return bool((plan.content.get("gates") or {}).get("phases", False))


def phase_views(ledger: Ledger, plan: ApprovedPlan) -> list[PhaseView]:
    """In the order of the workflow."""
    phases = phases_of(str(plan.content.get("workflow", "")))
    places = {phase.name: place for place, phase in enumerate(phases)}
    since = dict.fromkeys(places, "")
    for reopened, at in ledger.phases_reopened(plan.name):
        first = places.get(reopened.phase)
        if first is not None:
            # What comes after it rests on it.
            since |= {phase.name: at for phase in phases[first:]}
    facts = _Facts(ledger, plan)
    passings = ledger.phases_passed(plan.name)
    views = []
    for phase in phases:
        after = since[phase.name]
        found = facts.of(phase, after)
        standing = [one for one in passings if one[0].phase == phase.name and one[1] > after]
        passed, at = standing[-1] if standing else (None, "")
        needs = phase.needs[str(plan.content["workflow"])]
        views.append(
            PhaseView(
                phase=phase,
                since=after,
                evidence={name: found[name] for name in needs if name in found},
                missing=tuple(name for name in needs if name not in found),
                passed=passed,
                passed_at=at,
            )
        )
    return views


def due_phase(ledger: Ledger, plan: ApprovedPlan) -> PhaseView | None:
    """The first that is not passed, where phases are gates; None when all are, or none is one."""
    if not are_gates(plan):
        return None
    return next((one for one in phase_views(ledger, plan) if one.passed is None), None)


def sessions_due(ledger: Ledger, plan: ApprovedPlan) -> list[str]:
    """The role of each phase that a session has still to work on, in their order; none where
    phases are no gates."""
    if not are_gates(plan):
        return []
    return [
        view.phase.role
        for view in phase_views(ledger, plan)
        if view.passed is None
        and view.phase.role is not None
        and not BY_SESSION.isdisjoint(view.missing)
    ]


def phase_line(ledger: Ledger, plan: ApprovedPlan | None) -> str:
    """Where the project is, for pages and briefings; "" where phases are no gates."""
    if plan is None or not are_gates(plan):
        return ""
    view = due_phase(ledger, plan)
    if view is None:
        return "all phases are passed"
    lacks = f"lacks {', '.join(view.missing)}" if view.missing else "has its evidence"
    return f"{view.name}, {lacks}: {view.phase.purpose}"


class _Facts:
    """What the ledger holds for each kind of evidence."""

    def __init__(self, ledger: Ledger, plan: ApprovedPlan) -> None:
        self._ledger, self._plan = ledger, plan
        self._notes = ledger.phase_notes(plan.name)
        self._table: Mapping[str, Callable[[Phase, str], str]] = {
            NOTE: self._note,
            SOURCES: self._sources,
            PLAN: self._approved,
            KEPT: self._kept,
            REPRODUCED: self._reproduced,
        }

    def of(self, phase: Phase, since: str) -> dict[str, str]:
        found = {name: look(phase, since) for name, look in self._table.items()}
        return {name: words for name, words in found.items() if words}

    def _newest(self, phase: Phase, since: str) -> PhaseNoted | None:
        mine = [note for note, at in self._notes if note.phase == phase.name and at > since]
        return mine[-1] if mine else None

    def _note(self, phase: Phase, since: str) -> str:
        note = self._newest(phase, since)
        return "" if note is None else f"by {note.by}: {note.text}"

    def _sources(self, phase: Phase, since: str) -> str:
        note = self._newest(phase, since)
        return "" if note is None else "; ".join(note.sources)

    def _approved(self, _phase: Phase, _since: str) -> str:
        plan = self._plan
        return f"{plan.name} version {plan.version}, approved by {plan.by}"

    def _kept(self, _phase: Phase, since: str) -> str:
        kept = self._ledger.experiments(statuses=[ExperimentStatus.KEPT])
        made = [
            one.id
            for one in kept
            if one.plan == self._plan.name
            and any(
                decision.kind is DecisionKind.KEEP and decision.at > since
                for decision in self._ledger.decisions(one.id)
            )
        ]
        return ", ".join(made)

    def _reproduced(self, _phase: Phase, since: str) -> str:
        made = self._ledger.reproductions()
        return ", ".join(
            f"{one.experiment} by {one.reproduction}: {one.outcome}"
            for one, at in made
            if at > since and one.outcome in HOLDS
        )
