"""Gate evidence for tests: an experiment of three seeds that keeps its contract, and small changes
of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.artifacts.experiment_files import Claim
from harness.artifacts.metrics_notes import RowTimes
from harness.domain.findings import Finding
from harness.domain.grade import Grade
from harness.domain.records import Experiment, Objective, Run
from harness.domain.statuses import (
    Direction,
    ExperimentStatus,
    GateName,
    RunStatus,
    Split,
    Tier,
    Verdict,
)
from harness.evaluation.scores import summarise
from harness.gates.evidence import (
    CheckpointEvidence,
    FileEvidence,
    GateEvidence,
    RunEvidence,
    ValidationReference,
)
from harness.ledger.facts import Checkpoint, Evaluation, RecordedVerdict, local_job

EXPERIMENT = "exp-0001"
VALUES = (0.93, 0.94, 0.95)


def at(seconds: float) -> datetime:
    """So many seconds after the runs were registered; they end at 60."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


TIMES = RowTimes(at(1), at(59), 0.0, 0)
MAXIMIZE = Objective(
    metric="accuracy",
    direction=Direction.MAXIMIZE,
    tiers={Tier.MUST: 0.90, Tier.SHOULD: 0.92, Tier.COULD: 0.95},
    seeds=3,
    queries=20,
)
MINIMIZE = Objective(
    metric="mse",
    direction=Direction.MINIMIZE,
    tiers={Tier.MUST: 0.5, Tier.COULD: 0.1},
    seeds=3,
    queries=20,
)
FILES = {
    "hypothesis": "hypothesis.md",
    "config": "config.yaml",
    "code": "code.json",
    "score": "score.json",
    "result": "result.md",
}


def file(name: str, path: str, sha256: str | None = "f" * 64, *problems: Finding) -> FileEvidence:
    return FileEvidence(name=name, path=path, sha256=sha256, problems=problems)


def run(number: int, **changes: Any) -> Run:
    plain = Run(
        id=f"run-{number:02d}",
        experiment=EXPERIMENT,
        seed=100 + number,
        attempt=1,
        status=RunStatus.COMPLETED,
        argv=("python", "train.py"),
        code="c0de",
        data={},
        environment={},
        sandbox="bwrap",
        caller="person",
        token=f"token-{number}",
        session=None,
        registered_at="2026-01-01T00:00:00.000Z",
        ended_at="2026-01-01T00:01:00.000Z",
        files={"metrics": "f" * 64, "status": "f" * 64},
        job=local_job({"pid": 1, "boot": "b", "started": 1.0}),
    )
    return replace(plain, **changes)


def checkpoint(number: int, **changes: Any) -> Checkpoint:
    plain = Checkpoint(
        checkpoint=f"{number:064d}",
        experiment=EXPERIMENT,
        run=f"run-{number:02d}",
        path=f".harness/experiments/{EXPERIMENT}/runs/run-{number:02d}/checkpoints/last.npz",
        bytes=10,
        epoch=9,
        final=True,
        at="2026-01-01T00:00:59.000Z",
    )
    return replace(plain, **changes)


def run_evidence(number: int, **changes: Any) -> RunEvidence:
    folder = f".harness/experiments/{EXPERIMENT}/runs/run-{number:02d}"
    plain = RunEvidence(
        run=run(number),
        metrics=file("metrics", f"{folder}/metrics.jsonl"),
        status=file("status", f"{folder}/training_status.json"),
        evaluation=file("evaluation", f"{folder}/evaluation.json"),
        row_runs=frozenset({f"{EXPERIMENT}/run-{number:02d}"}),
        row_tokens=frozenset({f"token-{number}"}),
        epochs=10,
        starts=1,
        times=TIMES,
        status_run=f"{EXPERIMENT}/run-{number:02d}",
        status_state="completed",
        checkpoints=(
            CheckpointEvidence(checkpoint=checkpoint(number), actual=checkpoint(number).id),
        ),
    )
    return replace(plain, **changes)


def evaluation(
    number: int, value: float | None, split: Split = Split.VALIDATION, **changes: Any
) -> Evaluation:
    plain = Evaluation(
        experiment=EXPERIMENT,
        run=f"run-{number:02d}",
        seed=100 + number,
        split=split,
        metric="accuracy",
        value=value,
        n=1000,
        interval=None,
        checkpoint=checkpoint(number).id,
        code="c0de",
        inputs="i",
        labels="l",
        scorer="s",
        predictions="p",
        query=0,
        sandbox="bwrap",
        plan_version=1,
        baseline=0.1,
        findings=(),
        caller="person",
        grade=Grade(),
        at="2026-01-01T00:02:00.000Z",
    )
    return replace(plain, **changes)


def scored(evidence: GateEvidence, *values: float | None, **changes: Any) -> GateEvidence:
    """The same evidence with these evaluations and their score; `changes` are of every
    evaluation."""
    split = Split(evidence.gate.value)
    items = tuple(
        evaluation(place, value, split, **changes) for place, value in enumerate(values, start=1)
    )
    score = summarise(items)
    return replace(evidence, evaluations=items, score=None if score is None else score.plain())


def evidence(gate: GateName = GateName.VALIDATION, **changes: Any) -> GateEvidence:
    """Complete: every check passes."""
    plain = GateEvidence(
        gate=gate,
        objective=MAXIMIZE,
        isolation_required=False,
        experiment=Experiment(
            id=EXPERIMENT,
            number=1,
            status=ExperimentStatus.RUNNING,
            hypothesis="A CNN sees local structure",
            parent=None,
            plan="mnist1d",
            plan_version=1,
            by="model-builder",
            session=None,
            opened_at="2026-01-01T00:00:00.000Z",
        ),
        files=tuple(
            file(name, f".harness/experiments/{EXPERIMENT}/{path}") for name, path in FILES.items()
        ),
        claims={"accuracy": Claim(0.94, "0.94")},
        runs=tuple(run_evidence(number) for number in (1, 2, 3)),
        plan_seeds=frozenset({101, 102, 103}),
        evaluations=(),
        validation=None if gate is GateName.VALIDATION else ValidationReference(verdict=verdict()),
    )
    return replace(scored(plain, *VALUES), **changes)


def verdict(kind: Verdict = Verdict.PASS) -> RecordedVerdict:
    return RecordedVerdict(
        verdict_id="v-000001",
        experiment=EXPERIMENT,
        gate="validation",
        verdict=kind,
        findings=(),
        evidence={},
        score=None,
        tier=None,
        comparison=None,
        at="2026-01-01T00:03:00.000Z",
    )


def without_file(given: GateEvidence, name: str) -> GateEvidence:
    return replace(
        given, files=tuple(replace(f, sha256=None) if f.name == name else f for f in given.files)
    )


def with_run(given: GateEvidence, number: int, **changes: Any) -> GateEvidence:
    """The same with run `number` changed."""
    runs = tuple(
        replace(item, **changes) if item.run.id == f"run-{number:02d}" else item
        for item in given.runs
    )
    return replace(given, runs=runs)
