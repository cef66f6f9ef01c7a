"""From how a training command ended to how its run is closed."""

from harness.detectors.alarm import Alarm
from harness.domain.findings import BYPASSED, CODE_CHANGED, Finding
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.runs.alarms import stopped
from harness.runs.collect import Ending
from harness.runs.launch import How, Limits
from harness.runs.reasons import bypassed, explain, missing_package
from harness.runs.rows import RunRows


def judge(
    run: Run,
    how: How | None,
    code: int,
    rows: RunRows,
    limits: Limits,
    stderr: list[str],
    fatal: Alarm | None = None,
) -> Ending:
    """How the run is closed; `fatal` is the alarm that it was ended for. A crash is told as a
    crash, also when it came before the first row."""
    name = f"{run.experiment}/{run.id}"
    if how is None:
        return cancelled(code)
    if how in (How.RUN_LIMIT, How.TOTAL_LIMIT):
        minutes = (limits.run if how is How.RUN_LIMIT else limits.total) / 60
        limit = (
            "budget.run_minutes"
            if how is How.RUN_LIMIT
            else "what was left of budget.total_minutes"
        )
        return Ending(
            status=RunStatus.KILLED,
            reason=f"ended at {limit}, {minutes:.2g} minutes",
            exit_code=code,
        )
    if how is How.ALARM and fatal is not None:
        return by_alarm(run, fatal, code)
    if how is How.BYPASSED:
        found = bypassed(name, f"ran for {limits.silent:g} s")
        return Ending(
            status=RunStatus.KILLED, reason=found.message, exit_code=code, findings=[found]
        )
    if code != 0:
        return Ending(status=RunStatus.FAILED, reason=explain(code, stderr), exit_code=code)
    if not rows.seen:
        what = (
            "ended" if not rows.foreign else f"ended with {rows.foreign} rows of something else and"
        )
        found = bypassed(name, what)
        return Ending(
            status=RunStatus.FAILED, reason=found.message, exit_code=code, findings=[found]
        )
    if rows.end is not None and rows.end.get("status") != "completed":
        reason = f"the training said that it failed: {rows.end.get('error') or 'no reason given'}"
        return Ending(status=RunStatus.FAILED, reason=reason, exit_code=code)
    return Ending(
        status=RunStatus.COMPLETED,
        reason="exit code 0",
        exit_code=code,
        findings=[] if rows.end else [_no_end(name)],
    )


def cancelled(code: int | None) -> Ending:
    return Ending(
        status=RunStatus.CANCELLED, reason="it was stopped by a person or a signal", exit_code=code
    )


def by_alarm(run: Run, fatal: Alarm, code: int | None) -> Ending:
    reason = f"stopped by the alarm {fatal.code} at row {fatal.row}: {fatal.message}"
    return Ending(
        status=RunStatus.KILLED, reason=reason, exit_code=code, findings=[stopped(run, fatal)]
    )


def _no_end(name: str) -> Finding:
    return Finding(
        "run_end_missing",
        f"{name} ended with exit code 0, but its metrics have no end row.",
        "Call log.end() last, or use the logger as a context manager.",
        {"run": name},
    )


def code_changed(run: Run, paths: list[str]) -> list[Finding]:
    """The run's code is not what was registered any more: nobody can say which of the two it
    ran."""
    if not paths:
        return []
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return [
        Finding(
            CODE_CHANGED,
            f"While {run.experiment}/{run.id} trained, {', '.join(paths[:3])}{more} changed: it may"
            " not have run the code that was registered.",
            "Leave the code alone while it trains, also from within; then train again.",
            {"run": f"{run.experiment}/{run.id}", "paths": paths[:20]},
        )
    ]


def leftovers(run: Run, left: int) -> list[Finding]:
    """What to say when `left` processes could not be ended."""
    if not left:
        return []
    return [
        Finding(
            "processes_left",
            f"{left} processes of {run.experiment}/{run.id} could not be ended.",
            "Look for them with `ps`; the machine may have to be restarted.",
            {"run": f"{run.experiment}/{run.id}"},
        )
    ]


def findings_of(run: Run, program: str) -> list[Finding]:
    """The findings of an ended run of `program`, led by its reason when it did not complete."""
    found = list(run.findings)
    if run.status is RunStatus.COMPLETED or any(item.code == BYPASSED for item in found):
        return found
    name = f"{run.experiment}/{run.id}"
    told = f"{name} is {run.status}: {run.reason}."
    hint = missing_package(run.reason, program) or f"See stderr.log of {name}, then train again."
    return [Finding("run_not_completed", told, hint, {"run": name}), *found]
