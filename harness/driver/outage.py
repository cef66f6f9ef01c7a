"""Waiting for a model service that does not answer: longer each time, as long as the plan is
patient."""

from collections.abc import Callable

from harness.clock import Clock
from harness.loop.steps import SessionStep, Step, StopLoop, StopReason
from harness.model_gateway.weather import LASTING, Fault, Weather

FIRST_WAIT_S, LONGEST_WAIT_S = 15.0, 600.0
_WHAT_TO_DO = {
    Fault.KEY: "The service refuses the key or the login. Set a good one, then `harness continue`.",
    Fault.CREDIT: "The credit at the service is empty. Add to it, then `harness continue`.",
    Fault.MODEL: (
        "The service does not know the model, or its address is wrong. Correct ANTHROPIC_MODEL or"
        " the address (docs/cost.md), then `harness continue`."
    ),
}


class Outage:
    """From the first session in a row that the service did not serve, to the first that it did."""

    def __init__(self, patience_s: float, clock: Clock, say: Callable[[str], None]) -> None:
        self._patience_s, self._clock, self._say = patience_s, clock, say
        self._began: float | None = None
        self._waits = 0

    def due(self, step: Step, weather: Weather) -> Step:
        """`step`, after a wait where the newest session was not served; a StopLoop where waiting
        does not help, or the patience is over. Only sessions need the service."""
        trouble, now = weather.unserved, self._clock.monotonic()
        if trouble is None:
            self._began, self._waits = None, 0
            return step
        if not isinstance(step, SessionStep):
            return step
        if trouble.fault in LASTING:
            reason, words = StopReason(trouble.fault.value), _WHAT_TO_DO[trouble.fault]
            return StopLoop(reason=reason, detail=f"{words} It said: {trouble.words}")
        self._began = now if self._began is None else self._began
        left = self._patience_s - (now - self._began)
        if left <= 0:
            return StopLoop(
                reason=StopReason.SERVICE_UNAVAILABLE,
                detail=(
                    f"The model service did not answer for {_span(self._patience_s)}"
                    f" (loop.service_hours): {trouble.words}. Nothing is lost: `harness continue`"
                    " goes on."
                ),
            )
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._waits, 10))
        wait = min(left, max(wait, trouble.wait_s))
        self._waits += 1
        self._say(
            f"the model service does not answer ({trouble.words}): asking again in {_span(wait)};"
            f" {_span(now - self._began)} of {_span(self._patience_s)} are waited"
            " (loop.service_hours)"
        )
        self._clock.sleep(wait)
        return step


def _span(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
