"""The defended project's records after an attack: audit, ledger, runs, checkpoints, looks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.audit.protected import audit_protected
from harness.cheats.lab import LabProject
from harness.domain.records import Run
from harness.domain.statuses import ExperimentStatus, RunStatus, Split, Verdict
from harness.errors import HarnessError, PlanError
from harness.evaluation.scores import counted_runs
from harness.gates.findings import outcome_of
from harness.ledger.facts import HeldOutQueried
from harness.ledger.project import Project, open_layout, open_project
from harness.ledger.verify import verify
from harness.projections.refresh import edited_pages
from harness.rendering.policy_snapshot import policy_snapshot

BY = "human:lab"
PARENT, CANDIDATE = "exp-0001", "exp-0002"
RUN_FAILED, RUN_KILLED = "run_failed: ", "run_killed: "
"""Before the reason by which the supervisor closed a run: an exit code, or a limit of time."""


@dataclass
class Trail:
    """What was said on the way."""

    codes: list[str] = field(default_factory=list)
    log: str = ""
    broken: bool = False
    """A command died without an answer."""
    recomputed: dict[str, float] = field(default_factory=dict)
    """Split -> mean."""

    def refused(self, error: HarnessError) -> None:
        problems = error.problems if isinstance(error, PlanError) else ()
        self.codes += [one.code for one in problems or (error,)]


def opened(place: LabProject, *, new_config: bool = False) -> Project:
    return open_project(place.root, place.environment(), new_config=new_config)


def audited(place: LabProject, seen: Trail) -> Iterator[str]:
    """What `harness ledger verify` and `harness audit` name."""
    layout = open_layout(place.root, place.environment())
    for problem in verify(layout.ledger, layout.anchors, layout.facts_dir):
        yield f"verify: {problem.message}"
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            report = audit_protected(
                project, policy_snapshot(project), [place.home / "config"], edited_pages(project)
            )
    except HarnessError as error:
        seen.refused(error)
        return
    yield from (f"audit: {change.path}" for change, _ in report.changes)
    yield from (f"audit: {call.tool} {call.call}" for call in report.unguarded)


def status_of(place: LabProject, experiment: str) -> ExperimentStatus | None:
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            return project.ledger.experiment(experiment).status
    except HarnessError:
        return None


def seconds_of(place: LabProject, experiment: str) -> float | None:
    """How long the experiment's last run took, as the supervisor saw it."""
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            return next((run.seconds for run in reversed(project.ledger.runs(experiment))), None)
    except HarnessError:
        return None


def looks_of(place: LabProject, experiment: str) -> int:
    """How many looks at held-out are on record for the experiment."""
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            looks = [
                fact.body() for fact in project.ledger.facts() if fact.kind == HeldOutQueried.KIND
            ]
    except HarnessError:
        return 0
    mine = [
        look
        for look in looks
        if look["experiment"] == experiment and look["split"] == Split.HELD_OUT
    ]
    return len({look["query"] for look in mine})


def checkpoints_of(place: LabProject, experiment: str) -> list[Path]:
    """Final checkpoints that were recorded for completed runs and are there."""
    try:
        with open_project(place.root, place.environment(), read_only=True) as project:
            runs = {
                run.id
                for run in project.ledger.runs(experiment)
                if run.status is RunStatus.COMPLETED
            }
            finals = [
                checkpoint
                for checkpoint in project.ledger.checkpoints(experiment)
                if checkpoint.final and checkpoint.run in runs
            ]
            paths = [place.root / checkpoint.path for checkpoint in finals]
    except HarnessError:
        paths = []
    return [path for path in paths if path.is_file()]


def ending_codes(place: LabProject, experiment: str) -> list[str]:
    """What the supervisor found against the runs that count."""
    with open_project(place.root, place.environment(), read_only=True) as project:
        counted = counted_runs(project.ledger.runs(experiment))
    return list(dict.fromkeys(code for run in counted for code in codes_of(run)))


def codes_of(run: Run) -> list[str]:
    """Blocking findings of one closed run; else the reason of its failure."""
    codes = [finding.code for finding in run.findings if outcome_of(finding) is not Verdict.PASS]
    if run.status is RunStatus.FAILED and run.exit_code:
        codes.append(f"{RUN_FAILED}{run.reason}")
    if run.status is RunStatus.KILLED and not codes:
        codes.append(f"{RUN_KILLED}{run.reason}")
    return codes
