"""A finding: one thing that a gate, an audit or a reader found wrong, with its hint."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

ABSENT = "path_not_in_workspace"
"""The code of a run that missed what the project has and its workspace has not."""
CLOCK_SET = "clock_set"

STOPPED = "stopped_by_alarm"
"""The code of a run that a fatal alarm ended."""
BYPASSED = "run_logger_bypassed"
"""The code of a run that trained past the run logger."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable, `message` is for people, `hint` is the next step."""

    code: str
    message: str
    hint: str
    data: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> "Finding":
        return cls(value["code"], value["message"], value["hint"], value.get("data", {}))


def as_text(findings: Iterable[Finding]) -> str:
    """One bullet a finding, in order."""
    return "\n".join(f"- [{finding.code}] {finding.message} {finding.hint}" for finding in findings)
