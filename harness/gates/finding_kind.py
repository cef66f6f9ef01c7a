"""What is known of a finding code."""

from typing import NamedTuple

from harness.domain.statuses import Verdict

FAIL, INCONCLUSIVE, PASS = Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS


class FindingKind(NamedTuple):
    meaning: str
    hint: str
    outcome: Verdict
    """FAIL: a broken contract or a false check. INCONCLUSIVE: the harness could not judge. PASS: a
    note, it blocks nothing."""
