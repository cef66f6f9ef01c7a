"""A trainer watched: alarms as its rows come, its budget, and how a run is closed that did not end
by itself."""

from dataclasses import dataclass, replace
from enum import StrEnum

from harness.clock import Clock
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.posttrain.specification import Specification
from harness.posttrain.tokens import Tokens
from harness.runs.alarms import RunAlarms
from harness.runs.collect import Ending
from harness.runs.endings import by_alarm, cancelled
from harness.runs.launch import Launched
from harness.runs.run_tail import RunTail

_POLL_SECONDS = 0.1


class Stop(StrEnum):
    EXITED = "exited"
    MINUTES = "minutes"
    TOKENS = "tokens"
    ALARM = "alarm"


@dataclass(frozen=True, kw_only=True)
class TrainerWatch:
    """What looks at a run while it trains. Both budgets are the run's, over all its attempts."""

    spec: Specification
    clock: Clock
    run_tail: RunTail
    alarms: RunAlarms
    tokens: Tokens
    earlier: float
    """Seconds that attempts before this one took."""

    def look(self) -> None:
        new = self.run_tail.look()
        self.alarms.take(new)
        self.tokens.take(new)

    def until_it_ends(self, launched: Launched) -> Stop:
        """The process is not ended here."""
        begun = self.clock.monotonic()
        while not launched.ended(_POLL_SECONDS):
            self.look()
            if self.alarms.fatal() is not None:
                return Stop.ALARM
            if self.tokens.spent > self.spec.budget["tokens"]:
                return Stop.TOKENS
            if self.earlier + self.clock.monotonic() - begun > self.spec.budget["minutes"] * 60:
                return Stop.MINUTES
        return Stop.EXITED

    def cut(
        self,
        run: Run,
        how: Stop | None,
        findings: list[Finding],
        seconds: float,
        exit_code: int | None,
    ) -> Ending | None:
        """How a run ended that did not end by itself; None for one that did: its result is then
        judged."""
        ending = Ending(
            status=RunStatus.KILLED,
            reason="",
            exit_code=exit_code,
            seconds=seconds,
            findings=findings,
        )
        budget, fatal = self.spec.budget, self.alarms.fatal()
        if how is None:
            return replace(cancelled(exit_code), seconds=seconds, findings=findings)
        if how is Stop.MINUTES:
            return replace(ending, reason=f"ended at budget.minutes, {budget['minutes']:g}")
        if how is Stop.TOKENS:
            return replace(
                ending,
                reason=(
                    f"ended at budget.tokens, {budget['tokens']}: {self.tokens.spent:.0f} were seen"
                ),
            )
        if how is Stop.ALARM and fatal is not None:
            ended = by_alarm(run, fatal, exit_code)
            return replace(ended, seconds=seconds, findings=[*ended.findings, *findings])
        return None
