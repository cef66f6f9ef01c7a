"""A session is void where its scenario could not go on, and nowhere else."""

import pytest

from harness.driver.role_sessions import voided
from harness.driver.session import SessionEnding, SessionOutcome
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.scripted import Scripted

SCENARIO = frozenset({("judge", "1", "1")})


@pytest.mark.parametrize(
    ("foreseen", "failure", "expected"),
    [
        (SCENARIO, "no such turn", SessionEnding.VOID),
        (SCENARIO, None, SessionEnding.FAILED),
        (None, "UnicodeEncodeError", SessionEnding.FAILED),
        (None, None, SessionEnding.FAILED),
    ],
)
def test_only_a_scenario_makes_a_session_void(
    foreseen: frozenset[tuple[str, str, str]] | None,
    failure: str | None,
    expected: SessionEnding,
) -> None:
    gateway = Gateway(Scripted(None), foreseen=foreseen)  # type: ignore[arg-type]
    gateway.failure = failure
    before = SessionOutcome(outcome=SessionEnding.FAILED, detail="API error", turns=3)
    after = voided(before, gateway)
    assert (after.outcome, after.detail, after.turns) == (expected, "API error", 3)
