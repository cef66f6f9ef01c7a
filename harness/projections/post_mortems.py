"""Post-mortems: what went wrong with an experiment, and its class, from the facts alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.detectors.alarm import Alarm, open_alarms
from harness.domain.causes import CAUSES, Cause, cause_of, ending_code
from harness.domain.plain_text import in_quotes, inline
from harness.domain.statuses import DecisionKind, GateName, RunStatus, Verdict, spoken
from harness.ledger import Ledger
from harness.ledger.facts import Prior

_BROKEN = (RunStatus.FAILED, RunStatus.KILLED, RunStatus.LOST)
_PERSONS = {DecisionKind.REJECT: "rejected", DecisionKind.OVERRIDE: "overridden"}


class Failure(StrEnum):
    GATE = "gate"
    CRASH = "crash"
    ALARM = "alarm"
    REJECTION = "rejection"
    OVERRIDE = "override"


@dataclass(frozen=True, kw_only=True)
class PostMortem:
    """One failure of one experiment."""

    experiment: str
    failure: Failure
    code: str
    what: str
    """In the words of the finding, the run's reason, the alarm or the person."""
    shown_by: str
    """What proves it: a verdict, a run or a decision, e.g. "v-000003"."""
    at: str

    @property
    def cause(self) -> Cause:
        return cause_of(self.code)

    @property
    def line(self) -> str:
        head = f"{self.experiment} {self.failure} ({self.cause}) [{self.code}]"
        return f"{head} {inline(in_quotes(self.what, 240))} ({self.shown_by})"


def post_mortems(ledger: Ledger, experiments: Iterable[str]) -> list[PostMortem]:
    """Of each named experiment, oldest first. Raises NotFoundError for an unknown one."""
    found = [one for name in experiments for one in _of_one(ledger, name)]
    return sorted(found, key=lambda one: one.at)


def _of_one(ledger: Ledger, experiment: str) -> Iterator[PostMortem]:
    ledger.experiment(experiment)
    yield from _gates(ledger, experiment)
    yield from _runs(ledger, experiment)
    for decision in ledger.decisions(experiment):
        code = _PERSONS.get(decision.kind)
        if code is not None:
            yield PostMortem(
                experiment=experiment,
                failure=Failure.REJECTION if code == "rejected" else Failure.OVERRIDE,
                code=code,
                what=decision.reason,
                shown_by=decision.id,
                at=decision.at,
            )


def _gates(ledger: Ledger, experiment: str) -> Iterator[PostMortem]:
    """Of the newest FAIL of each gate: what a later verdict does not name any more is mended."""
    for gate in GateName:
        verdict = ledger.latest_verdict(experiment, gate)
        if verdict is None or verdict.verdict is not Verdict.FAIL:
            continue
        for finding in verdict.findings:
            if finding.code in CAUSES:
                yield PostMortem(
                    experiment=experiment,
                    failure=Failure.GATE,
                    code=finding.code,
                    what=f"{spoken(gate)}: {finding.message}",
                    shown_by=verdict.id,
                    at=verdict.at,
                )


def _runs(ledger: Ledger, experiment: str) -> Iterator[PostMortem]:
    alarms = ledger.alarms(experiment)
    for run in ledger.runs(experiment):
        raised = [one for one in alarms if one.run == run.id]
        for alarm in open_alarms([Alarm.from_plain(one.alarm) for one in raised]):
            yield PostMortem(
                experiment=experiment,
                failure=Failure.ALARM,
                code=alarm.code,
                what=alarm.message,
                shown_by=run.id,
                at=raised[-1].at,
            )
        if run.status in _BROKEN:
            yield PostMortem(
                experiment=experiment,
                failure=Failure.CRASH,
                code=ending_code(run.reason),
                what=run.reason,
                shown_by=run.id,
                at=run.ended_at or run.registered_at,
            )


def recurrences(prior: Prior, known: Sequence[PostMortem]) -> list[PostMortem]:
    """The failures of the kind that it answers, since it is active."""
    since = prior.active_since
    if since is None or prior.answers is None:
        return []
    return [one for one in known if one.code == prior.answers and one.at > since]
