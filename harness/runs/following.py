"""A launched run followed to its end: its start is recorded, it is watched, and all that it started
is ended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.domain.records import Run
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.project import Project
from harness.process import identity
from harness.runs.collect import write_run_json
from harness.runs.interrupts import Interrupts
from harness.runs.launch import Launched
from harness.runs.processes import end_process

How = TypeVar("How")


@dataclass(frozen=True, kw_only=True)
class Followed(Generic[How]):
    run: Run
    """As it is since its start was recorded."""
    how: How | None
    """What the watching ended with; None when a person or a signal stopped it."""
    seconds: float
    left: int
    """Processes that could not be ended."""


def follow(
    project: Project,
    run: Run,
    launched: Launched,
    watching: Callable[[], How],
    interrupts: Interrupts,
    *,
    grace: float,
) -> Followed[How]:
    """Called inside `interrupts.held()`; only `watching` is disturbed by a signal. However it
    ends, TERM goes to what was launched, KILL `grace` seconds later, and its output is read to
    the end."""
    begun, left, how = project.clock.monotonic(), 0, None
    try:
        own = identity(launched.process.pid)
        project.ledger.append(
            RunStarted(
                experiment=run.experiment, run=run.id, supervisor=identity(), job=local_job(own)
            )
        )
        run = project.ledger.run(run.experiment, run.id)
        write_run_json(project.layout, run)
        with interrupts.heeded():
            how = watching()
    except KeyboardInterrupt:
        how = None
    finally:
        seconds = project.clock.monotonic() - begun
        left = end_process(launched.process, run.token, grace=grace)
        launched.finish_output()
    return Followed(run=run, how=how, seconds=seconds, left=left)
