"""An alarm: what a detector found, the rows that show it and the threshold that they passed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

from harness.domain.late import Late, dataclass
from harness.files import strict

PREDICT_FAILS = "predict_fails"
"""The one note that no row raised: predict was tried beside the training."""


class Severity(StrEnum):
    """A note is only shown; a warning asks for a diagnosis; a fatal alarm may stop the run."""

    NOTE = "note"
    WARNING = "warning"
    FATAL = "fatal"

    @property
    def weight(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, kw_only=True)
class Point(Late):
    """One value of one row."""

    row: int
    """Position in the stream, from 1."""
    place: float | None
    """The epoch, or the step of a row without one."""
    value: float


@dataclass(frozen=True, kw_only=True)
class Alarm(Late):
    code: str
    severity: Severity
    metric: str
    row: int
    """The row at which it was raised, from 1."""
    place: float | None
    message: str
    evidence: tuple[Point, ...]
    threshold: str
    """The name in the table of kinds, e.g. "loss_spike.spreads"."""
    limit: float
    tries: tuple[str, ...]
    recovered: bool = False
    """Whether it ends an earlier alarm of the same subject."""

    @property
    def open(self) -> bool:
        """Whether it asks for a diagnosis."""
        return self.severity is not Severity.NOTE and not self.recovered

    @property
    def subject(self) -> tuple[str, str]:
        """(code, metric): a later alarm of the same subject replaces this one."""
        # A recovery of a spike has a code of its own, and must still replace the spike.
        return "loss_spike" if self.code == "spike_recovered" else self.code, self.metric

    def at_most(self, severity: Severity) -> Self:
        return (
            self if self.severity.weight <= severity.weight else replace(self, severity=severity)
        )

    def plain(self) -> dict[str, Any]:
        """Strict JSON: non-finite values are their names."""
        points = [
            {"row": p.row, "place": _real(p.place), "value": strict(p.value)}
            for p in self.evidence
        ]
        return {
            "code": self.code,
            "severity": self.severity.value,
            "metric": self.metric,
            "row": self.row,
            "place": _real(self.place),
            "message": self.message,
            "evidence": points,
            "threshold": self.threshold,
            "limit": float(self.limit),
            "try": list(self.tries),
            "recovered": self.recovered,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Alarm":
        """The reverse of `plain`. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            code=str(plain["code"]),
            severity=Severity(plain["severity"]),
            metric=str(plain["metric"]),
            row=int(plain["row"]),
            place=_real(plain["place"]),
            message=str(plain["message"]),
            evidence=tuple(
                Point(row=int(p["row"]), place=_real(p["place"]), value=float(p["value"]))
                for p in plain["evidence"]
            ),
            threshold=str(plain["threshold"]),
            limit=float(plain["limit"]),
            tries=tuple(str(text) for text in plain["try"]),
            recovered=bool(plain["recovered"]),
        )


def open_alarms(alarms: Sequence[Alarm]) -> list[Alarm]:
    """The alarms that still stand: the newest of each subject, unless a note or a recovery."""
    newest = {alarm.subject: alarm for alarm in alarms}
    return [alarm for alarm in newest.values() if alarm.open]


def _real(place: float | None) -> float | None:
    return None if place is None else float(place)
