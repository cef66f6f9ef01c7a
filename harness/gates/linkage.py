"""Checks that rows are of the time of their run, and that every launch shows."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from harness.artifacts.metrics_notes import SLACK_S
from harness.clock import iso, parse_iso
from harness.domain.findings import CLOCK_SET, Finding
from harness.domain.statuses import RunStatus
from harness.gates.evidence import GateEvidence, RunEvidence
from harness.gates.findings import finding

_SLACK = timedelta(seconds=SLACK_S)


def row_times(evidence: GateEvidence) -> Iterator[Finding]:
    """Each row has a time between the run's registration and its end, and time does not go back
    from row to row.

    Not judged where the supervisor saw the clock jump, and not told again where it told of such
    rows itself.
    """
    for item in evidence.runs:
        told = any(
            found.get("code") in (CLOCK_SET, "metrics_out_of_time") for found in item.run.findings
        )
        if item.run.status is RunStatus.COMPLETED and item.times is not None and not told:
            yield from _times(item)


def launches(evidence: GateEvidence) -> Iterator[Finding]:
    """Every launch is told: what a run started again by itself, and runs that do not count: a best
    of N shows its N."""
    for item in evidence.runs:
        if item.starts > 1:
            yield finding(
                "run_restarted",
                f"The training of {item.name} was started {item.starts} times inside the run.",
                run=item.name,
                starts=item.starts,
            )
    counted = {item.run.id for item in evidence.runs}
    others = [run for run in evidence.launched if run.id not in counted]
    if others:
        newest = evidence.launched[-1]
        of_now = sum((run.code, run.argv) == (newest.code, newest.argv) for run in others)
        how = ", ".join(
            f"{count} {status}"
            for status, count in sorted(Counter(str(run.status) for run in others).items())
        )
        yield finding(
            "launches_beyond_seeds",
            f"{evidence.experiment.id} was launched {len(evidence.launched)} times; {len(counted)}"
            f" runs count. Of the others ({how}) {len(others) - of_now} were of other code or"
            f" another command, {of_now} of this one.",
            launches=len(evidence.launched),
            counted=len(counted),
        )


def _times(item: RunEvidence) -> Iterator[Finding]:
    times = item.times
    assert times is not None
    path = item.metrics.path
    if times.without:
        yield _out(item, f"{times.without} rows of {path} have no time.")
    begun = parse_iso(item.run.registered_at)
    if times.first is not None and times.first < begun - _SLACK:
        yield _out(
            item,
            f"A row of {path} is of {iso(times.first)}; {item.name} was registered at"
            f" {iso(begun)}.",
        )
    ended = None if item.run.ended_at is None else parse_iso(item.run.ended_at)
    if times.last is not None and ended is not None and times.last > ended + _SLACK:
        yield _out(
            item, f"A row of {path} is of {iso(times.last)}; {item.name} ended at {iso(ended)}."
        )
    if times.back_s > SLACK_S:
        yield _out(
            item, f"From one row of {path} to the next the time goes back by {times.back_s:.0f} s."
        )


def _out(item: RunEvidence, message: str) -> Finding:
    return finding("metrics_out_of_time", message, run=item.name)
