"""Where a scenario ends the loop that it plays: before a session that it does not hold is begun."""

from dataclasses import replace

from harness.contract.phases import PHASES
from harness.contract.roles import ROLES
from harness.domain.statuses import RunStatus, Split, Verdict
from harness.ledger.facts import ApprovedPlan
from harness.loop.next_step import next_step
from harness.loop.state import UNSERVED, LoopState
from harness.loop.steps import SessionStep, Step, StopLoop, StopReason
from harness.model_gateway.wire import SessionKey
from harness.plans.approved import NOT_HERE, secret

ROLE_OF = {role.step: role.name for role in ROLES if role.step is not None} | {
    phase.name: phase.role for phase in PHASES if phase.role is not None
}
"""The loop's word for a session -> the role that it is of."""
NOT_DONE = (None, "cut", "void", UNSERVED)
"""Outcomes of a session whose step is still to be done."""
_BROKEN = (RunStatus.FAILED, RunStatus.KILLED, RunStatus.LOST)
_UNREAD = "split_unusable"
_STUCK = (StopReason.FAILURES, StopReason.WAITING)


def excused(approved: ApprovedPlan) -> frozenset[str]:
    """Codes of findings that say no more than that secret rows are on another machine."""
    hidden = secret(approved, Split.VALIDATION.value)
    return frozenset({NOT_HERE, _UNREAD} if hidden else {NOT_HERE})


def in_scenario(
    step: Step,
    state: LoopState,
    foreseen: frozenset[SessionKey],
    absent: frozenset[str],
) -> Step:
    """`step`; a StopLoop where the scenario has no session for it, or where nothing of it is left
    to play. PLAYED only when all of it was played and the newest verdict finds no fault, or says
    only what is `absent`, see `excused`."""
    left = foreseen - _played(state)
    if isinstance(step, SessionStep):
        asked = key_of_step(step.key)
        if asked in foreseen:
            return step
        if state.parallel > 1:  # it may be a further experiment, which nobody has to open
            alone = replace(state, parallel=1)
            return in_scenario(next_step(alone), alone, foreseen, absent)
        words = "role {}, experiment {}, attempt {}".format(*asked)
        why = f"The loop asks for {words}, which the scenario does not have."
        return _end(state, left, why, absent)
    if isinstance(step, StopLoop) and step.reason in _STUCK and not left:
        return _end(state, left, step.detail, absent)
    return step


def key_of_step(key: str) -> SessionKey:
    """Of the key of a step that a session does, e.g. "diagnose-2-run-01-1"."""
    name, index, *_, attempt = key.split("-")
    return ROLE_OF[name], index, attempt


def _played(state: LoopState) -> set[SessionKey]:
    return {
        key_of_step(session.step) for session in state.sessions if session.outcome not in NOT_DONE
    }


def _end(
    state: LoopState, left: frozenset[SessionKey], why: str, absent: frozenset[str]
) -> StopLoop:
    if left:
        names = "; ".join("/".join(key) for key in sorted(left))
        return StopLoop(
            reason=StopReason.FAILURES,
            detail=f"{why} Of it these were not played: {names}.{_untrained(state)}",
        )
    fault = _fault(state, absent)
    if fault:
        return StopLoop(
            reason=StopReason.FAILURES,
            detail=f"The scenario is played to its end. {fault}",
        )
    return StopLoop(
        reason=StopReason.PLAYED,
        detail=f"The scenario is played to its end. {_said(state)}",
    )


def _fault(state: LoopState, absent: frozenset[str]) -> str:
    """What the newest verdict says against the newest experiment here; empty when there is
    nothing."""
    own = [experiment for experiment in state.experiments if experiment.here]
    if not own:
        return "It opened no experiment."
    verdict = own[-1].held_out or own[-1].validation
    if verdict is None:
        return f"No gate judged {own[-1].id}."
    if verdict.verdict is Verdict.PASS:
        return ""
    codes = dict.fromkeys(finding.code for finding in verdict.findings)
    if NOT_HERE in codes and codes.keys() <= absent:
        return ""
    return f"{own[-1].id} is {verdict.verdict}: {', '.join(codes)}.{_untrained(state)}"


def _untrained(state: LoopState) -> str:
    """The newest experiment's own error, where its training broke; begins with a space."""
    own = [experiment for experiment in state.experiments if experiment.here]
    broken = [run for run in (own[-1].runs if own else ()) if run.status in _BROKEN]
    return "".join(f" {own[-1].id}/{run.id} {run.status}: {run.reason}." for run in broken[-1:])


def _said(state: LoopState) -> str:
    newest = [experiment for experiment in state.experiments if experiment.here][-1]
    verdict = newest.held_out or newest.validation
    assert verdict is not None  # else there was a fault
    if verdict.verdict is Verdict.PASS:
        return f"{newest.id} is PASS."
    return (
        f"{newest.id} is {verdict.verdict}, for rows that are only where the plan was approved;"
        " nothing else was found."
    )
