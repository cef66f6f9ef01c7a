"""Phases as gates: which step the phase asks for that is due. Pure; what a phase is, the contract
says."""

from harness.contract.phases import BY_SESSION, EVIDENCE
from harness.domain.statuses import GateMode
from harness.loop.endings import budget_spent, work_failed
from harness.loop.state import LoopState, PhaseState, tally
from harness.loop.steps import PassPhase, Step, StopLoop, StopReason, WorkOnPhase


def phase_step(state: LoopState, stop: StopLoop | None) -> Step | None:
    """The step that the due phase asks for while no experiment is open; None: experiments go on,
    or end by `stop`, the reason for which no further one is opened."""
    phase = state.phase
    if phase is None:
        return None
    if phase.role is None and (stop is None or phase.missing):
        return None
    if phase.missing:
        return _work(state, phase, phase.role)
    if state.limits.mode is GateMode.SUPERVISED:
        return _ask(phase, "has its evidence")
    return PassPhase(phase=phase.name)


def _work(state: LoopState, phase: PhaseState, role: str | None) -> Step:
    if role is None or BY_SESSION.isdisjoint(phase.missing):
        lacks = "; ".join(f"{name} ({EVIDENCE[name]})" for name in phase.missing)
        return _ask(phase, f"lacks {lacks}")
    sessions = tally(state.sessions, f"{phase.name}-0-")
    if sessions.failed_too_often or sessions.cut_too_often:
        work = "recording what the phase asks for"
        return work_failed(f"The {role} sessions of the phase {phase.name}", work, sessions)
    step = WorkOnPhase(phase=phase.name, role=role, attempt=sessions.attempt)
    return budget_spent(state, opens=False, trains=False) or step


def _ask(phase: PhaseState, why: str) -> StopLoop:
    return StopLoop(
        reason=StopReason.WAITING,
        detail=f"The phase {phase.name} {why}. A person goes on with `harness phase next --reason"
        " TEXT` (`harness phase` shows what there is), or opens an earlier one again with"
        " `harness phase reopen PHASE --reason TEXT`; then `harness continue`.",
    )
