"""How a loop waits for its model service, and whose fault the end of a session was."""

import pytest

from harness.clock import ManualClock
from harness.domain.statuses import Split
from harness.driver.outage import Outage
from harness.driver.role_sessions import named
from harness.driver.session import SessionEnding, SessionOutcome
from harness.loop.steps import Evaluate, JudgeResult, StopLoop
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.weather import UNANSWERED, Fault, Trouble, Weather

STEP = JudgeResult(experiment="exp-0001", index=1, attempt=1)
BUSY = Trouble(fault=Fault.PASSING, words="status 529: Overloaded")


def waited(hours: float, trouble: Trouble = BUSY) -> tuple[list[float], StopLoop, list[str]]:
    clock, told, moments = ManualClock(), [], []
    outage, weather = Outage(hours * 3600, clock, told.append), Weather()
    weather.unserved = trouble
    while True:
        step = outage.due(STEP, weather)
        if isinstance(step, StopLoop):
            return moments, step, told
        moments.append(clock.monotonic())


def test_it_asks_again_ever_more_rarely_and_ends_when_the_patience_is_over() -> None:
    moments, end, told = waited(6)
    assert moments[:6] == [15, 45, 105, 225, 465, 945]
    assert moments[-1] == 6 * 3600
    assert len(moments) < 50
    assert end.reason == "service_unavailable"
    assert "did not answer for 6.0 h (loop.service_hours): status 529" in end.detail
    assert told[4].endswith(
        "asking again in 4 min; 4 min of 6.0 h are waited (loop.service_hours)"
    )


def test_a_service_that_asks_for_an_hour_gets_it_but_not_more_than_the_patience() -> None:
    moments, _, _ = waited(2.5, Trouble(fault=Fault.PASSING, words="status 429", wait_s=3600))
    assert moments == [3600, 7200, 9000]


def test_a_session_that_was_served_begins_the_patience_anew() -> None:
    clock, weather = ManualClock(), Weather()
    outage = Outage(60.0, clock, lambda _text: None)
    for _ in range(5):
        weather.unserved = BUSY
        assert outage.due(STEP, weather) is STEP
        weather.unserved = None
        assert outage.due(STEP, weather) is STEP
    assert clock.monotonic() == 5 * 15


@pytest.mark.parametrize("fault", [Fault.KEY, Fault.CREDIT, Fault.MODEL])
def test_what_lasts_is_not_waited_for(fault: Fault) -> None:
    moments, end, told = waited(6, Trouble(fault=fault, words="status 401: no"))
    assert (moments, told, end.reason) == ([], [], fault.value)
    assert end.detail.endswith("It said: status 401: no")


def test_work_without_a_model_goes_on_meanwhile() -> None:
    clock, weather = ManualClock(), Weather()
    weather.unserved = BUSY
    look = Evaluate(experiment="exp-0001", split=Split.VALIDATION)
    assert Outage(60.0, clock, lambda _text: None).due(look, weather) is look
    assert clock.monotonic() == 0


REJECTED = Trouble(fault=Fault.REQUEST, words="status 400: prompt is too long")
UNREAD = Trouble(fault=Fault.MALFORMED, words="5 rounds")
F, C = SessionEnding.FAILED, SessionEnding.CUT


@pytest.mark.parametrize(
    ("ending", "silent", "trouble", "stop", "expected", "unserved"),
    [
        (F, False, BUSY, "", SessionEnding.UNSERVED, True),
        (F, False, UNANSWERED, "", SessionEnding.UNSERVED, True),
        (C, True, UNANSWERED, "", SessionEnding.UNSERVED, True),
        (C, False, UNANSWERED, "", C, False),
        (C, True, None, "", C, False),
        (F, False, REJECTED, "", SessionEnding.REJECTED, False),
        (F, False, UNREAD, "", SessionEnding.MALFORMED, False),
        (F, False, None, "max_tokens", SessionEnding.MAX_TOKENS, False),
        (F, False, None, "end_turn", F, False),
        (SessionEnding.FINISHED, False, BUSY, "", SessionEnding.FINISHED, False),
        (SessionEnding.REFUSED, False, None, "refusal", SessionEnding.REFUSED, False),
    ],
)
def test_whose_fault_the_end_of_a_session_was(
    ending: SessionEnding,
    silent: bool,
    trouble: Trouble | None,
    stop: str,
    expected: SessionEnding,
    unserved: bool,
) -> None:
    gateway = Gateway(Scripted(None))  # type: ignore[arg-type]
    if stop:
        gateway.weather.answered("s", {"stop_reason": stop})
    if trouble is not None:
        gateway.weather.failed("s", trouble)
    outcome = named(SessionOutcome(outcome=ending, detail="API", silent=silent), gateway, "s")
    assert outcome.outcome is expected
    assert (gateway.weather.unserved is trouble) is (unserved or trouble is None)


def test_a_spent_budget_comes_first() -> None:
    gateway = Gateway(Scripted(None))  # type: ignore[arg-type]
    gateway.weather.failed("s", BUSY)
    gateway.over_budget = "$1 of $1"
    outcome = named(SessionOutcome(outcome=F, detail="API"), gateway, "s")
    assert (outcome.outcome, outcome.detail) == (C, "budget: $1 of $1")
    assert gateway.weather.unserved is None
