"""What the sessions of one experiment add up to: which attempt is due, how many in a row came to
nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.loop.records import SessionState

FAILED_IN_A_ROW = 3
"""Sessions that ended without doing their work, before the loop stops."""
CUT_IN_A_ROW = 10
"""Cut sessions before the loop stops. More than the above: a kill says nothing about the work."""

_CUT = "cut"


@dataclass(frozen=True, kw_only=True)
class Tally:
    attempt: int
    """The attempt to make now: a cut one is made again under its number, an ended one is used
    up."""
    ended: int
    """Sessions that ended by themselves, since `after`."""
    failed_too_often: bool
    """Only to be asked while none of them did its work."""
    cut_too_often: bool


def tally(sessions: Sequence[SessionState], prefix: str, *, after: int = 0) -> Tally:
    """Count the sessions whose step starts with `prefix`, e.g. "build-2-"; `ended` only from
    position `after` on.

    Sessions of a loop that has ended are not held against its continuation (`counted`).
    """
    mine = [(place, item) for place, item in enumerate(sessions) if item.step.startswith(prefix)]
    ended = [(place, item) for place, item in mine if item.outcome not in (None, _CUT)]
    last = ended[-1][0] if ended else -1
    failed = sum(item.counted for _, item in ended)
    cut = sum(item.counted and item.outcome == _CUT for place, item in mine if place > last)
    return Tally(
        attempt=len(ended) + 1,
        ended=sum(place >= after for place, _ in ended),
        failed_too_often=failed >= FAILED_IN_A_ROW,
        cut_too_often=cut >= CUT_IN_A_ROW,
    )


def last_place(sessions: Sequence[SessionState], prefix: str) -> int:
    """One past the position of the newest session of `prefix`; 0 when there is none."""
    return max(
        (place + 1 for place, item in enumerate(sessions) if item.step.startswith(prefix)),
        default=0,
    )
