"""Did a resumed run go on as if it had never stopped? What its rows say, whatever the training says
of itself.

The training names what it did not restore. Its rows tell the rest: what was logged again has other
values, a counter jumps, or the loss does not go on.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median
from typing import Any

from harness.artifacts.metrics_file import Row, place
from harness.domain.plain_text import one_line

_KEPT, _FIRST, _CHECKED = 64, 8, 8
"""Rows before a stop, of the run's begin, and after a resume, that are compared."""
_LONGEST = 200
_LEAST, _SPREADS = 4, 3
"""Values before a stop from which the loss is compared, and how far it may go on beyond them."""
_FAR = 2
"""A counter that grows by twice its largest step so far has jumped."""
_SMALL = 1e-3
_UNSAID = "the training does not say what it restored (log.resumed)"
_CLOCK = re.compile(
    r"second|time|throughput|per_s|speed|fps|memory|(?:^|_)(?:mb|ms|s)$|elapsed|summary/", re.I
)
"""Metrics that no run has twice alike."""


class ResumeCheck:
    """Fed with a run's rows in their order; remembers a bounded number."""

    def __init__(self) -> None:
        self._earlier = 0
        self._reasons_earlier: str | None = None
        self._first: list[Row] = []
        self._recent: deque[Row] = deque(maxlen=_KEPT)
        self._before: list[Row] | None = None
        self._after: list[Row] = []
        self._said = ""

    def take(self, row: Row) -> None:
        event = row.get("event")
        if event == "attempt":
            self._close()
            self._before = [*self._first, *self._recent]
        elif event == "resume" and row.get("exact") is not True:
            missing = row.get("missing")
            names = [str(name) for name in missing] if isinstance(missing, list) else []
            self._said = f"{', '.join(names)} not restored" if names else _UNSAID
            self._before = self._before or []
        elif event == "epoch":
            if self._before is not None and len(self._after) < _CHECKED:
                self._after.append(row)
            if len(self._first) < _FIRST:
                self._first.append(row)
            else:
                self._recent.append(row)

    @property
    def count(self) -> int:
        """Resumes that were not exact."""
        return self._earlier + bool(self._reasons())

    @property
    def newest(self) -> str | None:
        """Why the newest of them was not; None when each was exact."""
        return self._reasons() or self._reasons_earlier

    def _close(self) -> None:
        said = self._reasons()
        self._earlier += bool(said)
        self._reasons_earlier = said or self._reasons_earlier
        self._before, self._after, self._said = None, [], ""

    def _reasons(self) -> str | None:
        said = [self._said] if self._said else []
        if self._before and self._after:
            found = (logged_again, counters, losses)
            said += [why for check in found if (why := check(self._before, self._after))]
        return one_line("; ".join(said), _LONGEST) if said else None


def logged_again(before: Iterable[Row], after: Iterable[Row]) -> str | None:
    """The first value that was logged once more, and is another one."""
    known: dict[Any, dict[str, Any]] = {}
    for row in before:
        known.setdefault(_at(row), {}).update(_compared(row))
    for row in after:
        earlier = known.get(_at(row), {})
        for key, value in _compared(row).items():
            old = earlier.get(key, value)
            # A NaN is another value than itself.
            if repr(old) != repr(value):
                where = f"epoch {row.get('epoch')}"
                return f"{key} of {where} is {_short(value)} now, and was {_short(old)}"
    return None


def counters(before: list[Row], after: list[Row]) -> str | None:
    """An epoch or a step that leaves some out, or a step that begins anew."""
    last, now = before[-1], after[0]
    for name in ("epoch", "step"):
        old, new = _whole(last, name), _whole(now, name)
        steps = _grown(before, name)
        if old is None or new is None or not steps:
            continue
        if new - old >= _FAR * max(steps):
            return f"its {name}s jump from {old:,} to {new:,}"
    epochs = [_whole(row, "epoch") for row in (last, now)]
    steps_at = [_whole(row, "step") for row in (last, now)]
    if None in epochs or None in steps_at:
        return None
    (old, new), (old_step, new_step) = epochs, steps_at
    if new > old and new_step < old_step:  # type: ignore[operator]  # none is None
        return f"its steps go back from {old_step:,} to {new_step:,} while epochs go on"
    return None


def losses(before: list[Row], after: list[Row]) -> str | None:
    """A loss that is far from where it had been when the run stopped."""
    begun = place(after[0])
    if begun is None:
        return None
    held = [row for row in before if (at := place(row)) is not None and at < begun]
    for key in _compared(after[0]):
        if "loss" not in key.lower():
            continue
        old = [value for row in held[-2 * _LEAST :] if (value := _number(row, key)) is not None]
        new = [value for row in after if (value := _number(row, key)) is not None]
        if len(old) < _LEAST or not new:
            continue
        low, high, value = min(old), max(old), median(new[:_LEAST])
        slack = _SPREADS * (high - low) + _SMALL * abs(high)
        if not low - slack <= value <= high + slack:
            return f"{key} does not go on: {_short(old[-1])} before, {_short(new[0])} after"
    return None


def _compared(row: Row) -> Mapping[str, Any]:
    metrics = row.get("metrics")
    named = metrics if isinstance(metrics, dict) else {}
    found = {key: value for key, value in named.items() if not _CLOCK.search(key)}
    rate = row.get("learning_rate")
    return found if rate is None else found | {"learning rate": rate}


def _at(row: Row) -> tuple[float | None, float | None]:
    # A file may hold anything there, also what is no key of a dict.
    epoch, step = row.get("epoch"), row.get("step")
    return (
        epoch if isinstance(epoch, int | float) else None,
        step if isinstance(step, int | float) else None,
    )


def _grown(rows: list[Row], name: str) -> list[int]:
    found = [value for row in rows if (value := _whole(row, name)) is not None]
    return [new - old for old, new in pairwise(found) if new > old]


def _whole(row: Row, name: str) -> int | None:
    value = row.get(name)
    return value if type(value) is int else None


def _number(row: Row, key: str) -> float | None:
    metrics = row.get("metrics")
    value = metrics.get(key) if isinstance(metrics, dict) else None
    usable = isinstance(value, int | float) and value - value == 0
    return float(value) if usable and value is not None else None


def _short(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)[:20]
