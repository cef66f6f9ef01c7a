"""The closed table of finding codes."""

from typing import Any

from harness.domain.findings import Finding
from harness.domain.statuses import Verdict
from harness.gates.run_findings import RUN_FINDINGS
from harness.gates.score_findings import SCORE_FINDINGS

FINDINGS = {**RUN_FINDINGS, **SCORE_FINDINGS}


def finding(code: str, message: str, hint: str | None = None, **data: Any) -> Finding:
    """A finding with the table's hint unless a closer one is known. Raises KeyError."""
    known = FINDINGS[code]
    return Finding(code, message, known.hint if hint is None else hint, data)


def outcome_of(finding: Finding) -> Verdict:
    """What the finding does to a verdict; an unknown code fails."""
    known = FINDINGS.get(finding.code)
    return Verdict.FAIL if known is None else known.outcome
