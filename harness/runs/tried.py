"""Was the same training done before? Told before it is run: the same code, command,
configuration and data with the same seeds give no new answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.domain.findings import Finding
from harness.domain.statuses import RunStatus
from harness.gates.findings import finding
from harness.ledger.project import Project
from harness.runs.experiment_config import values_of
from harness.runs.train_job import TrainJob


def tried_before(job: TrainJob, on_event: Callable[[dict[str, Any]], None]) -> list[Finding]:
    """Of a training that is about to begin; it is told at once."""
    found = configuration_tried_before(
        job.project,
        job.experiment,
        code=job.snapshot.hash,
        argv=job.argv,
        config=job.config,
        data=job.data,
    )
    for one in found:
        on_event({"kind": one.code, "text": f"{job.experiment}: {one.message} {one.hint}"})
    return found


def configuration_tried_before(
    project: Project,
    experiment: str,
    *,
    code: str,
    argv: Sequence[str],
    config: str | None,
    data: Mapping[str, str],
) -> list[Finding]:
    """A note of the newest earlier experiment whose completed runs had all of these; a
    config.yaml counts by its values, not by its comments."""
    number = project.ledger.experiment(experiment).number
    wanted = values_of(project, config)
    for one in reversed(project.ledger.experiments()):
        if one.number >= number:
            continue
        for run in project.ledger.runs(one.id):
            if (
                run.status is RunStatus.COMPLETED
                and (run.code, list(run.argv), run.data) == (code, list(argv), dict(data))
                and values_of(project, run.config) == wanted
            ):
                return [_told(project, one.id, one.status)]
    return []


def _told(project: Project, earlier: str, status: str) -> Finding:
    decided = project.ledger.decisions(earlier)[-1:]
    why = f" ({decided[0].kind}: {decided[0].reason})" if decided else ""
    return finding(
        "configuration_tried_before",
        f"{earlier} trained the same code, command, configuration and data; it is {status}{why}.",
        experiment=earlier,
    )
