"""Recomputing an experiment's scores: every counted run's final checkpoint, through the sandboxed
predict and the scorer.

Each evaluation is recorded as soon as it is made; evaluation.json and score.json are written from
the facts. Killed anywhere, the next call goes on where this one stopped.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts.content import linked, write_below
from harness.artifacts.vault_key import vault_key
from harness.domain.findings import BYPASSED
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus, Split
from harness.evaluation import problems
from harness.evaluation.concurrent_seeds import evaluated, places, short_of_room
from harness.evaluation.evaluate_run import EvaluationOutcome, EvaluationRequest
from harness.evaluation.predict_sources import OwnLibraries
from harness.evaluation.release import release, require_room, to_release
from harness.evaluation.released import released_score, told_now
from harness.evaluation.requests import EvaluationJob, asked_of, not_failed, request_of
from harness.evaluation.scores import counted_runs, recorded_evaluations, trained_seconds
from harness.evaluation.scoring import scorer_of
from harness.evaluation.sealed import seal
from harness.evaluation.weights_probe import OtherCheckpoint
from harness.files import pretty_json
from harness.ledger.facts import ApprovedPlan, Checkpoint, Evaluation, EvaluationRecorded
from harness.ledger.project import Project
from harness.plans.approved import plan_of, secret
from harness.plans.judge import require_judge
from harness.plans.parse import plan_from
from harness.settings import require_interpreter


class _Look:
    """The look at held-out that one call takes. Counted when predict is about to see the rows, and
    before it does: a kill after a look at the score saves none, and what could be refused before
    costs none."""

    def __init__(self, project: Project, experiment: str, most: int) -> None:
        self._project, self._experiment, self._most = project, experiment, most
        self.number = 0
        """0 while none was taken."""

    def take(self) -> None:
        """Raises RefusedError (query_budget_spent)."""
        if not self.number:
            self.number = self._project.ledger.query_held_out(self._experiment, self._most)


def evaluate_experiment(
    project: Project,
    experiment: str,
    split: Split,
    sandbox: Sandbox,
    *,
    admit: Callable[[Project, str], None],
    environment: Mapping[str, str] | None = None,
    shuffle_seed: int | None = None,
) -> list[Evaluation]:
    """Evaluate what has no value yet on `split`, and return the evaluations that are the
    experiment's score. Of a split whose labels are nobody's they are sealed: what they come to is
    told once for all seeds, see `evaluation.released`.

    `admit` raises unless the experiment may be evaluated on held-out now
    (`gates.check.require_validation_passed`). What has a value already (same checkpoint, scorer,
    libraries and plan version) is skipped. `shuffle_seed` orders the rows that predict sees; drawn
    by default.
    Raises NotFoundError, RefusedError (other_tree, query_budget_spent, no_plan), ConfigError
    (interpreter_missing), SandboxError, and what `require_judge` and `admit` raise.
    """
    approved = plan_of(project, project.require_here(experiment))
    require_judge(project)
    plan = plan_from(approved.content)
    due = not_failed(project, approved, split, _due(project, experiment, approved, split))
    sealed = secret(approved, split.value)
    # A reference that changed costs less than a look, or is left as it was: `to_release` knows.
    untold = to_release(project, experiment, approved, split)
    untold = untold and not told_now(project, experiment, approved, split)
    if sealed and (due or untold):
        require_room(project, experiment, approved, split)
    if due:
        # Whatever can be refused is refused before a look is counted.
        require_interpreter(project.settings)
        if split is Split.HELD_OUT:
            admit(project, experiment)
        look = _Look(project, experiment, plan.oracle.queries)
        job = EvaluationJob(
            project=project,
            approved=approved,
            plan=plan,
            split=split,
            shuffle_seed=secrets.randbits(63) if shuffle_seed is None else shuffle_seed,
            environment=os.environ if environment is None else environment,
            libraries=OwnLibraries(project, approved),
            before_predict=look.take if split is Split.HELD_OUT else _nothing,
        )
        _evaluate(job, due, sandbox, look)
    release(project, experiment, approved, split)
    write_scores(project, experiment)
    return recorded_evaluations(project, experiment, approved, split)


def _nothing() -> None:
    return


def _evaluate(
    job: EvaluationJob,
    due: Sequence[tuple[Run, Checkpoint]],
    sandbox: Sandbox,
    look: _Look,
) -> None:
    """Each is recorded as soon as it is made and those before it are, so that facts have the order
    of the seeds."""
    project, before = job.project, job.libraries.read()
    finals = _scorable(project, due[0][0].experiment)
    requests = [
        replace(
            request_of(job, asked_of(job, run, checkpoint), sandbox, libraries=before),
            others=others,
            other=next(iter(others), None),
        )
        for run, checkpoint in due
        for others in [_others(project, finals, checkpoint)]
    ]
    trained = {run.seed: trained_seconds(project.ledger, run) for run, _ in due}

    def doubtful(request: EvaluationRequest, outcome: EvaluationOutcome) -> bool:
        if any(found.code in problems.STANDING for found in outcome.findings):
            return False
        took = outcome.predict_seconds or 0.0
        limited = job.plan.oracle.predict_minutes is not None
        slow = problems.longer_than_training(took, trained[request.seed])
        return short_of_room(outcome) or (slow is not None and not limited)

    outcomes = evaluated(
        requests,
        sandbox,
        project.clock,
        at_once=places(requests, [checkpoint.bytes for _, checkpoint in due]),
        doubtful=doubtful,
    )
    # Whatever happens here, nothing that was started runs on.
    with contextlib.closing(outcomes):
        for (run, _), outcome in zip(due, outcomes, strict=True):
            libraries = job.libraries.keep(before, job.libraries.read())
            _record(job, run, outcome, libraries, look.number)


def awaiting(project: Project, experiment: str, split: Split) -> list[str]:
    """Runs without an evaluation, or whose files are not written."""
    approved = plan_of(project, project.ledger.experiment(experiment))
    made = recorded_evaluations(project, experiment, approved, split)
    known = {evaluation.run for evaluation in _standing(project, approved, made)}
    waiting = _without(project, experiment, known)
    layout = project.layout
    unwritten = [
        run
        for run in sorted(known)
        if _to_write(project, layout.run(experiment, run, "evaluation"))
    ]
    if known and not unwritten and _to_write(project, layout.experiment(experiment, "score")):
        unwritten = sorted(known)
    if not unwritten and to_release(project, experiment, approved, split):
        unwritten = sorted(known)
    return waiting + unwritten


def unlooked(project: Project, experiment: str, split: Split) -> list[str]:
    """Runs without an evaluation: a look at the split is due."""
    approved = plan_of(project, project.ledger.experiment(experiment))
    made = recorded_evaluations(project, experiment, approved, split)
    return _without(project, experiment, {one.run for one in _standing(project, approved, made)})


def _without(project: Project, experiment: str, known: set[str]) -> list[str]:
    return [run.id for run, _ in _scorable(project, experiment) if run.id not in known]


def write_scores(project: Project, experiment: str) -> None:
    """evaluation.json of each run and score.json, from the ledger; never through a link."""
    approved = plan_of(project, project.ledger.experiment(experiment))
    by_run: dict[str, dict[str, Any]] = {}
    scores = {}
    for split in Split:
        evaluations = recorded_evaluations(project, experiment, approved, split)
        for evaluation in evaluations:
            by_run.setdefault(evaluation.run, {})[split.value] = _plain(evaluation)
        score = released_score(project, experiment, approved, split)
        if score is not None:
            scores[split.value] = score
    for run, splits in by_run.items():
        _write(project, project.layout.run(experiment, run, "evaluation"), splits)
    if by_run:
        _write(project, project.layout.experiment(experiment, "score"), scores)


def _scorable(project: Project, experiment: str) -> list[tuple[Run, Checkpoint]]:
    """Counted runs that completed through the run logger and left a final checkpoint."""
    finals = {
        checkpoint.run: checkpoint
        for checkpoint in project.ledger.checkpoints(experiment)
        if checkpoint.final
    }
    return [
        (run, finals[run.id])
        for run in counted_runs(project.ledger.runs(experiment))
        if run.status is RunStatus.COMPLETED
        and run.id in finals
        and not any(finding.code == BYPASSED for finding in run.findings)
    ]


def _due(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> list[tuple[Run, Checkpoint]]:
    scorer = scorer_of(approved).hash()
    made = recorded_evaluations(project, experiment, approved, split)
    done = {
        evaluation.run
        for evaluation in _standing(project, approved, made)
        if evaluation.scored and evaluation.scorer == scorer
    }
    return [
        (run, checkpoint)
        for run, checkpoint in _scorable(project, experiment)
        if run.id not in done
    ]


def _standing(
    project: Project, approved: ApprovedPlan, made: Sequence[Evaluation]
) -> list[Evaluation]:
    """Those since which nothing changed that predict imports."""
    libraries = OwnLibraries(project, approved)
    return [evaluation for evaluation in made if not libraries.since(evaluation).counted]


def _others(
    project: Project, finals: Sequence[tuple[Run, Checkpoint]], checkpoint: Checkpoint
) -> tuple[OtherCheckpoint, ...]:
    """Other seeds' weights, where they are not the same."""
    return tuple(
        OtherCheckpoint(seed=run.seed, path=project.layout.root / other.path, sha256=other.id)
        for run, other in finals
        if other.id != checkpoint.id
    )


def _record(
    job: EvaluationJob,
    run: Run,
    outcome: EvaluationOutcome,
    libraries: str | None,
    query: int,
) -> None:
    """`libraries`: of what predict ran with; `query`: the look's number."""
    findings = list(outcome.findings)
    # A plan that sets predict's time has said that it may take that long.
    if job.plan.oracle.predict_minutes is None and outcome.predict_seconds is not None:
        note = problems.longer_than_training(
            outcome.predict_seconds, trained_seconds(job.project.ledger, run)
        )
        findings += [note] if note else []
    key = vault_key(job.project.layout.vault)
    exact = EvaluationRecorded(
        experiment=run.experiment,
        run=run.id,
        seed=run.seed,
        split=job.split.value,
        metric=outcome.metric,
        value=outcome.value,
        n=outcome.n,
        interval=None if outcome.interval is None else list(outcome.interval),
        checkpoint=outcome.checkpoint,
        code=outcome.code,
        inputs=outcome.inputs and key.of(outcome.inputs),
        labels=outcome.labels and key.of(outcome.labels),
        scorer=outcome.scorer,
        predictions=outcome.predictions,
        query=query,
        sandbox=outcome.sandbox.value,
        plan_version=job.approved.comparison,
        baseline=outcome.baseline,
        findings=findings,
        predict_seconds=outcome.predict_seconds,
        caller=str(job.project.caller_for(run.experiment)),
        libraries=libraries,
    )
    sealed = secret(job.approved, job.split.value)
    job.project.ledger.append(seal(job.project.layout, exact) if sealed else exact)


def _plain(evaluation: Evaluation) -> dict[str, Any]:
    names: tuple[str, ...] = (
        *("metric", "n", "checkpoint", "code", "inputs", "labels", "scorer", "predictions"),
        *("query", "sandbox", "caller", "plan_version", "at"),
    )
    # What is sealed is told once for all seeds, in score.json.
    names += (
        ("sealed",)
        if evaluation.sealed is not None
        else ("value", "interval", "baseline", "predict_seconds")
    )
    plain = {name: getattr(evaluation, name) for name in names}
    plain |= {"evidence": evaluation.grade.words}
    return plain | {"findings": [finding.plain() for finding in evaluation.findings]}


def _to_write(project: Project, path: Path) -> bool:
    """Whether the file is missing where the harness would write it."""
    return linked(project.layout.root, path) is None and not path.exists()


def _write(project: Project, path: Path, content: dict[str, Any]) -> None:
    text = pretty_json(content)
    if linked(project.layout.root, path) is not None:
        return  # the gate says so; the harness writes through no link
    if not path.is_file() or path.read_text("utf-8", errors="replace") != text:
        write_below(project.layout.root, path, text)
