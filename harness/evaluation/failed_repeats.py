"""A failed repeat stands: what predict answered otherwise the second time, or whatever its weights,
has no score until code or weights change. Asked again and again, it would pass by luck."""

from collections.abc import Sequence
from dataclasses import fields

from harness.domain.records import Run
from harness.domain.statuses import Split
from harness.evaluation import problems
from harness.evaluation.scoring import scorer_of
from harness.ledger.facts import ApprovedPlan, Checkpoint, Evaluation, EvaluationRecorded
from harness.ledger.project import Project


def not_failed(
    project: Project,
    approved: ApprovedPlan,
    split: Split,
    due: Sequence[tuple[Run, Checkpoint]],
) -> list[tuple[Run, Checkpoint]]:
    """Those of `due` that predict is to be asked for. A failure of the same checkpoint, code,
    scorer and command under another run or version of the plan is recorded for this one too; under
    another plan, whose rows are others, it says nothing."""
    asked = []
    for run, checkpoint in due:
        failed = _failed_before(project, approved, split, run, checkpoint)
        if failed is None:
            asked.append((run, checkpoint))
        elif _of(failed) != (run.experiment, run.id, approved.comparison):
            caller = str(project.caller_for(run.experiment))
            same = {part.name: getattr(failed, part.name) for part in fields(EvaluationRecorded)}
            own = {"experiment": run.experiment, "run": run.id, "seed": run.seed}
            now = {"plan_version": approved.comparison, "query": 0, "caller": caller}
            project.ledger.append(EvaluationRecorded(**{**same, **own, **now}))
    return asked


def _failed_before(
    project: Project, approved: ApprovedPlan, split: Split, run: Run, checkpoint: Checkpoint
) -> Evaluation | None:
    """The newest such failure, if any; before others one of this run under this version."""
    commands = {
        plan.version: plan.content["oracle"]["predict"]
        for plan in project.ledger.plans()
        if plan.name == approved.name
    }
    wanted = (checkpoint.id, run.code, scorer_of(approved).hash(), commands[approved.comparison])
    failed = [
        made
        for experiment in sorted(
            {point.experiment for point in project.ledger.with_checkpoint(checkpoint.id)}
        )
        # Each plan counts its versions from 1.
        if project.ledger.experiment(experiment).plan == approved.name
        for made in project.ledger.evaluations(experiment, split)
        if (made.checkpoint, made.code, made.scorer, commands.get(made.plan_version)) == wanted
        and any(finding.code in problems.STANDING for finding in made.findings)
    ]
    mine = [made for made in failed if _of(made) == (run.experiment, run.id, approved.comparison)]
    chosen = mine or failed
    return chosen[-1] if chosen else None


def _of(made: Evaluation) -> tuple[str, str, int]:
    return made.experiment, made.run, made.plan_version
