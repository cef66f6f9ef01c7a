"""Forbidden calls that ran: without a receipt of the guard, or in spite of its denial.

Each is judged again from its transcript by today's rules, with both readers of shell commands. Of a
call that only receipts know, the path at most can be judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from harness.audit.activity import AFTER, AFTER_BATCH, GUARD, Activity, Call
from harness.contract.artifacts import BY_NAME
from harness.domain.late import Late, dataclass
from harness.guard.policy.decide import DENY, WRITERS
from harness.guard.shell.decide_with_tree import judge_call


@dataclass(frozen=True, kw_only=True)
class Unguarded(Late):
    session: str
    agent: str | None
    tool: str
    call: str
    time: datetime
    guard: str
    """What the guard did: "left no receipt" or "denied it, and it ran all the same"."""
    rule: str
    reason: str
    paths: tuple[str, ...]


NO_RECEIPT = "left no receipt"
IN_SPITE = "denied it, and it ran all the same"


def unguarded(
    activity: Activity,
    snapshots: Sequence[Mapping[str, Any]],
    since: datetime | None,
    approvals: Mapping[str, datetime],
) -> tuple[list[Unguarded], int]:
    """(forbidden calls of one session after `since`, number of calls without a receipt).

    `snapshots`: the rules, one for each worktree; a call is forbidden when one forbids it.
    `approvals`: plan -> when it was approved first; what was drafted before is no breach.
    """
    judged = {receipt.call: receipt for receipt in activity.receipts if receipt.event == GUARD}
    known = {call.id for call in activity.calls}
    calls = [*activity.calls, *_only_in_receipts(activity, known, snapshots[0]["root"])]
    forbidden: list[Unguarded] = []
    unseen = 0
    for call in calls:
        if not call.ran or (since is not None and call.started < since):
            continue
        receipt = judged.get(call.id)
        # No receipt is no breach by itself: a hook may have failed open on a harmless call.
        if receipt is None:
            unseen += 1
            then = [as_of(snapshot, call.started, approvals) for snapshot in snapshots]
            forbidden += _forbidden(activity, call, then)
        elif receipt.permission == DENY and call.done:
            forbidden.append(
                _unguarded(
                    activity,
                    call,
                    IN_SPITE,
                    receipt.rule,
                    receipt.reason,
                    receipt.paths,
                )
            )
    return forbidden, unseen


def as_of(
    snapshot: Mapping[str, Any], at: datetime, approvals: Mapping[str, datetime]
) -> Mapping[str, Any]:
    """The rules without the plans that were approved later; before the first approval without
    what a plan freezes."""
    later = {path for path, approved in approvals.items() if approved > at}
    if not later:
        return snapshot
    plans = {path: sha256 for path, sha256 in snapshot["plans"].items() if path not in later}
    free = later if plans else later | {BY_NAME["plan"].path}
    kept = [path for path in snapshot["protected"] if path not in free]
    changed = {**snapshot, "plans": plans, "protected": kept}
    return changed if plans else changed | {"frozen": [], "hidden": [], "entry": []}


def judged_again(call: Call, snapshots: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The first denial of the call by today's rules; None without one."""
    payload = {
        "tool_name": call.tool,
        "tool_input": dict(call.input),
        "cwd": call.cwd,
        "agent_type": call.agent_type,
    }
    for snapshot in snapshots:
        decision = judge_call(payload, snapshot)
        if decision["permission"] == DENY:
            return decision
    return None


def _forbidden(
    activity: Activity, call: Call, snapshots: Sequence[Mapping[str, Any]]
) -> Iterator[Unguarded]:
    denial = judged_again(call, snapshots) if call.input else None
    if denial is not None:
        yield _unguarded(
            activity, call, NO_RECEIPT, denial["rule"], denial["reason"], denial["paths"]
        )


def _only_in_receipts(activity: Activity, known: Iterable[str], root: str) -> Iterator[Call]:
    """Calls that only hooks after the tool noted; of their input, the path at most."""
    seen = set(known)
    for receipt in activity.receipts:
        if receipt.event not in (AFTER, AFTER_BATCH) or not receipt.call or receipt.call in seen:
            continue
        seen.add(receipt.call)
        key = WRITERS.get(receipt.tool) if receipt.event == AFTER_BATCH else None
        yield Call(
            id=receipt.call,
            tool=receipt.tool,
            input={key: receipt.paths[0]} if key and receipt.paths else {},
            cwd=root,
            agent=None,
            agent_type=None,
            started=receipt.time,
            ended=receipt.time,
            ran=True,
            done=receipt.event == AFTER,
        )


def _unguarded(
    activity: Activity, call: Call, guard: str, rule: str, reason: str, paths: Iterable[str]
) -> Unguarded:
    return Unguarded(
        session=activity.session,
        agent=call.agent,
        tool=call.tool,
        call=call.id,
        time=call.started,
        guard=guard,
        rule=rule,
        reason=reason,
        paths=tuple(paths),
    )
