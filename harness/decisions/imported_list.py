"""Which of the experiments that another program kept are better by more than its noise.

What its list says was not recomputed, and nothing here changes that.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean, median
from typing import Any

from harness.artifacts.content import hash_file
from harness.decisions.imported import shown
from harness.domain.distributions import t_quantile
from harness.domain.statuses import Direction
from harness.domain.words import some
from harness.errors import UsageError
from harness.evaluation.intervals import NORMAL
from harness.foreign.kept_list import DISCARD, KEEP, KeptList, Tried
from harness.ledger.facts import LogImported
from harness.ledger.project import Project

FORMAT = "list of experiments"
_MAD = 1.482602218505602
"""From the median absolute deviation of normal values to their standard deviation."""
_FEWEST = 4
"""Discarded rows, less one a parent, that tell the noise."""
_MOST_ROWS = 1000
_COVERAGE = 0.975


class Beyond(StrEnum):
    FIRST = "the first"
    YES = "beyond the noise"
    WITHIN = "within the noise"
    NOT_BETTER = "not better"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Noise:
    deviation: float | None
    """Standard deviation of one run of the same code."""
    source: str
    degrees: int | None = None
    """Of freedom; None where it counts as known."""

    @property
    def limit(self) -> float | None:
        """The largest difference of two runs that is still noise, at 95%."""
        if self.deviation is None:
            return None
        quantile = NORMAL
        if self.degrees is not None:
            quantile = t_quantile(self.degrees, _COVERAGE)
        return quantile * math.sqrt(2) * self.deviation


@dataclass(frozen=True, kw_only=True)
class Kept:
    row: Tried
    gain: float | None
    """Over what was kept before it; positive is better."""
    beyond: Beyond


@dataclass(frozen=True, kw_only=True)
class Judged:
    of: KeptList
    direction: Direction
    noise: Noise
    kept: tuple[Kept, ...]
    total: Kept
    """The best that was kept, over the first."""


def judge_list(
    listed: KeptList,
    *,
    noise: float | None,
    direction: Direction | None,
) -> Judged:
    """Raises UsageError (noise_unfit, direction_unknown)."""
    if noise is not None and not (math.isfinite(noise) and noise > 0):
        raise UsageError(
            f"--noise {noise} is no standard deviation.",
            hint="Give that of one run of the same code, in the metric's units: `--noise 0.002`.",
            code="noise_unfit",
        )
    kept = [row for row in listed.rows if row.status == KEEP]
    values = [row.value for row in kept if row.value is not None]
    direction = direction or _direction(values)
    if direction is None:
        raise UsageError(
            f"What was kept does not say whether a smaller or a larger {listed.metric} is better.",
            hint="Say it: `--direction minimize` or `--direction maximize`.",
            code="direction_unknown",
        )
    found = _noise(listed, noise)
    sign = -1 if direction is Direction.MINIMIZE else 1
    steps = [Kept(row=kept[0], gain=None, beyond=Beyond.FIRST)]
    for before, row in zip(values, kept[1:], strict=False):
        steps.append(_step(row, before, sign, found.limit))
    best = max(kept, key=lambda row: sign * (row.value or 0.0))
    total = _step(best, values[0], sign, found.limit)
    return Judged(
        of=listed,
        direction=direction,
        noise=found,
        kept=tuple(steps),
        total=total,
    )


def _step(row: Tried, before: float, sign: int, limit: float | None) -> Kept:
    gain = sign * ((row.value or 0.0) - before)
    beyond = Beyond.WITHIN
    if gain <= 0:
        beyond = Beyond.NOT_BETTER
    elif limit is None:
        beyond = Beyond.UNKNOWN
    elif gain > limit:
        beyond = Beyond.YES
    return Kept(row=row, gain=gain, beyond=beyond)


def _direction(values: Sequence[float]) -> Direction | None:
    """The one in which what was kept got better more often."""
    down = sum(value < min(values[:place]) for place, value in enumerate(values) if place)
    up = sum(value > max(values[:place]) for place, value in enumerate(values) if place)
    if down == up:
        return None
    return Direction.MINIMIZE if down > up else Direction.MAXIMIZE


def _noise(listed: KeptList, given: float | None) -> Noise:
    if given is not None:
        return Noise(deviation=given, source="--noise, as you said it")
    repeats = list(_repeats(listed.rows))
    degrees = sum(len(group) - 1 for group in repeats)
    squares = sum((value - fmean(group)) ** 2 for group in repeats for value in group)
    if squares > 0:
        return Noise(
            deviation=math.sqrt(squares / degrees),
            source=f"{some(degrees, 'repeat')} of a row: the same commit or description",
            degrees=degrees,
        )
    groups = list(_discarded(listed.rows))
    degrees = sum(len(group) - 1 for group in groups)
    away = [abs(value - median(group)) for group in groups for value in group]
    if degrees >= _FEWEST and median(away) > 0:
        return Noise(
            deviation=_MAD * median(away),
            source=(
                f"the spread of {len(away)} discarded rows, each among those of the same parent."
                " What the ideas themselves did is in it, so it may be too large"
            ),
        )
    repeated = "its repeats are equal to the last digit" if repeats else "no row was repeated"
    return Noise(
        deviation=None,
        source=f"unknown: {repeated}, and too few were discarded to tell",
    )


def _repeats(rows: Sequence[Tried]) -> Iterator[list[float]]:
    """Values of rows with the same commit, else of the same description."""
    groups: dict[str, list[float]] = defaultdict(list)
    commits = [row.commit for row in rows]
    for row in rows:
        if row.value is None:
            continue
        again = len(row.commit) >= 7 and commits.count(row.commit) > 1
        words = " ".join(row.description.lower().split())
        if again or words:
            groups[row.commit if again else f" {words}"].append(row.value)
    yield from (group for group in groups.values() if len(group) > 1)


def _discarded(rows: Sequence[Tried]) -> Iterator[list[float]]:
    """Values of what was discarded between two that were kept: one change each of the same code."""
    group: list[float] = []
    for row in rows:
        if row.status == KEEP and group:
            yield group
            group = []
        elif row.status == DISCARD and row.value is not None:
            group.append(row.value)
    if group:
        yield group


def record_list(project: Project, path: Path, judged: Judged, *, by: str) -> LogImported:
    """As the list has it; the file stays where it is."""
    rows = judged.of.rows[:_MOST_ROWS]
    fact = LogImported(
        path=shown(project, path),
        sha256=hash_file(path),
        bytes=path.stat().st_size,
        format=FORMAT,
        experiment=None,
        runs=[],
        notes=notes(judged),
        by=by,
        experiments=[asdict(row) for row in rows],
    )
    project.ledger.append(fact)
    return fact


def notes(judged: Judged) -> list[str]:
    told = []
    if judged.of.left_out:
        told.append(f"{some(judged.of.left_out, 'line')} of it cannot be read and are left out")
    if len(judged.of.rows) > _MOST_ROWS:
        told.append(f"only its first {_MOST_ROWS} rows are recorded")
    return told


def document(judged: Judged) -> dict[str, Any]:
    noise = judged.noise
    return {
        "metric": judged.of.metric,
        "direction": judged.direction.value,
        "noise": {
            "deviation": noise.deviation,
            "source": noise.source,
            "limit": noise.limit,
        },
        "kept": [_plain(one) for one in judged.kept],
        "total": _plain(judged.total),
    }


def _plain(one: Kept) -> dict[str, Any]:
    return {
        "commit": one.row.commit,
        "value": one.row.value,
        "gain": one.gain,
        "beyond": one.beyond.value,
        "description": one.row.description,
    }
