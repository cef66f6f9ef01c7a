"""The sessions that a change may come from, with a grade and the calls.

Nothing here is proof: a person may have edited a file while a session ran.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from itertools import pairwise
from typing import Any

from harness.audit.activity import GUARD, Activity, Call
from harness.audit.changes import Change
from harness.clock import iso
from harness.domain.late import Late, dataclass
from harness.guard.policy.decide import DENY, READERS

NOBODY = "no session's receipts or transcript covers it"
_TICK = timedelta(milliseconds=20)
"""Lag of a file system's clock behind that of programs on the same machine."""
_SLACK = timedelta(seconds=1)
"""The same where the file system is another machine's."""
_MOST_CALLS = 5

Names = Callable[[Call, str], bool]
"""Whether a call names a path as something that it changes."""


class Grade(IntEnum):
    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True, kw_only=True)
class Suspect(Late):
    """One session that a change may come from."""

    session: str
    grade: Grade
    why: str
    calls: tuple[Mapping[str, Any], ...] = ()
    """tool, tool_use_id, agent, time of each, where they are known."""

    def words(self) -> str:
        return f"{self.grade.name.lower()}: {self.why}"


def suspects(change: Change, activities: Iterable[Activity], names: Names) -> list[Suspect]:
    """The sessions that `change` may come from, the surest first, with their strongest reason."""
    named = []
    for activity in activities:
        reasons = [
            *_by_transcript(change, activity, names),
            *_by_receipts(change, activity),
            *_by_time(change, activity),
        ]
        if reasons:
            named.append(max(reasons, key=lambda suspect: suspect.grade))
    return sorted(named, key=lambda suspect: (-suspect.grade, suspect.session))


def spells(call: Call, path: str, root: str) -> bool:
    """Whether the input of a call that may write spells the path."""
    if call.tool in READERS:
        return False
    return any(path in text or f"{root}/{path}" in text for text in _texts(call.input))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _by_transcript(change: Change, activity: Activity, names: Names) -> Iterator[Suspect]:
    ran = [call for call in activity.calls if call.ran]
    # With the small slack first: the large one would also name calls before and after the change.
    during = _during(ran, activity, change.at, _TICK) or _during(
        ran,
        activity,
        change.at,
        _SLACK,
    )
    naming = [call for call in ran if names(call, change.path)]
    if both := [call for call in during if call in naming]:
        yield _suspect(
            activity,
            Grade.CERTAIN,
            "a call that names it ran when it changed",
            both,
        )
    if during:
        yield _suspect(activity, Grade.LIKELY, "a call ran when it changed", during)
    if naming:
        yield _suspect(
            activity,
            Grade.POSSIBLE,
            "a call names it, at another time than that of the last change",
            naming,
        )


def _during(
    calls: list[Call], activity: Activity, moment: datetime | None, slack: timedelta
) -> list[Call]:
    """The calls that ran at `moment`."""
    # One without a result may have run until its session's last trace.
    span = activity.span()
    if moment is None or span is None:
        return []
    return [
        call for call in calls if call.started - slack <= moment <= (call.ended or span[1]) + slack
    ]


def _by_receipts(change: Change, activity: Activity) -> Iterator[Suspect]:
    """By the digests that hooks leave after each tool, and by calls that the guard let through."""
    lines = [receipt for receipt in activity.receipts if receipt.control]
    for before, after in pairwise(lines):
        first, second = _digest(before.control, change.path), _digest(after.control, change.path)
        if first is None or second is None or first == second:
            continue
        inside = change.at is not None and before.time - _SLACK <= change.at <= after.time + _SLACK
        why = (
            f"it changed between two of the session's receipts, {iso(before.time)} and"
            f" {iso(after.time)}"
        )
        grade = Grade.LIKELY if inside else Grade.POSSIBLE
        between = [
            r
            for r in activity.receipts
            if r.event == GUARD and before.time <= r.time <= after.time
        ]
        calls = tuple(_of_receipt(r.tool, r.call, r.time) for r in between[-_MOST_CALLS:])
        yield Suspect(session=activity.session, grade=grade, why=why, calls=calls)
    for receipt in activity.receipts:
        let_through = (
            receipt.event == GUARD and receipt.permission != DENY and receipt.tool not in READERS
        )
        if let_through and change.path in receipt.paths:
            call = _of_receipt(receipt.tool, receipt.call, receipt.time)
            why = "the guard let a call through that names it"
            yield Suspect(session=activity.session, grade=Grade.POSSIBLE, why=why, calls=(call,))


def _digest(control: Mapping[str, str], path: str) -> str | None:
    """The digest of `path`, or of a folder that is listed as one."""
    return next(
        (
            digest
            for name, digest in control.items()
            if path == name or path.startswith(name + "/")
        ),
        None,
    )


def _by_time(change: Change, activity: Activity) -> Iterator[Suspect]:
    span = activity.span()
    if (
        span is not None
        and change.at is not None
        and span[0] - _SLACK <= change.at <= span[1] + _SLACK
    ):
        yield Suspect(
            session=activity.session,
            grade=Grade.POSSIBLE,
            why="the session was active when it changed",
        )


def _suspect(activity: Activity, grade: Grade, why: str, calls: list[Call]) -> Suspect:
    shown = tuple(
        {**_of_receipt(c.tool, c.id, c.started), "agent": c.agent} for c in calls[-_MOST_CALLS:]
    )
    return Suspect(session=activity.session, grade=grade, why=why, calls=shown)


def _of_receipt(tool: str, identifier: str, time: datetime) -> dict[str, Any]:
    return {"tool": tool, "tool_use_id": identifier, "agent": None, "time": iso(time)}
