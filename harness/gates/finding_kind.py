"""What is known of a finding code."""

from typing import NamedTuple

from harness.domain.statuses import Verdict


class FindingKind(NamedTuple):
    meaning: str
    hint: str
    outcome: Verdict
    """FAIL: the contract was broken or a check is false. INCONCLUSIVE: the harness could not judge.
    PASS: a note, it blocks nothing."""
