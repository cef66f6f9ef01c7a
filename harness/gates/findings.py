"""The closed table of finding codes: what each means, how to fix it, and what it does to a
verdict."""

from typing import Any

from harness.domain.findings import Finding
from harness.domain.statuses import Verdict
from harness.gates.run_findings import RUN_FINDINGS
from harness.gates.score_findings import SCORE_FINDINGS

FINDINGS = {**RUN_FINDINGS, **SCORE_FINDINGS}


def finding(code: str, message: str, hint: str | None = None, **data: Any) -> Finding:
    """A finding of a code in the table; `hint` is the table's unless a closer one is known. Raises
    KeyError."""
    known = FINDINGS[code]
    return Finding(code, message, known.hint if hint is None else hint, data)


def outcome_of(found: Finding) -> Verdict:
    """What the finding does to a verdict; a code that the table does not know fails: silence never
    passes."""
    known = FINDINGS.get(found.code)
    return Verdict.FAIL if known is None else known.outcome
