"""A finding: one thing that a gate, an audit or a reader found wrong, with its hint."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.domain.plain_text import inline, one_line, plain_value

ABSENT = "path_not_in_workspace"
"""The code of a run that missed what the project has and its workspace has not."""
CLOCK_SET = "clock_set"

STOPPED = "stopped_by_alarm"
"""The code of a run that a fatal alarm ended."""
BYPASSED = "run_logger_bypassed"
"""The code of a run that trained past the run logger."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable, `message` is for people, `hint` is the next step.

    All three may hold what agents, programs and data say: a finding keeps it as plain text.
    """

    code: str
    message: str
    hint: str
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("message", "hint", "data"):
            object.__setattr__(self, name, plain_value(getattr(self, name)))

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> "Finding":
        return cls(value["code"], value["message"], value["hint"], value.get("data", {}))


def as_text(findings: Iterable[Finding]) -> str:
    """One bullet a finding, in order, for a terminal."""
    return "\n".join(
        f"- [{finding.code}] {one_line(finding.message)} {one_line(finding.hint)}"
        for finding in findings
    )


def as_markdown(findings: Iterable[Finding]) -> str:
    """One bullet a finding, in order, for a page or a prompt: its words are quoted."""
    return "\n".join(
        f"- [{finding.code}] {inline(finding.message)} {inline(finding.hint)}"
        for finding in findings
    )
