"""Facts for tests: one experiment's life, and a ledger in a folder of its own."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.clock import Clock, ManualClock
from harness.domain.findings import Finding
from harness.domain.statuses import ExperimentStatus, Split
from harness.domain.team_ledger import Place
from harness.ledger import Ledger
from harness.ledger.facts import (
    AlarmRaised,
    BenchmarkApproved,
    CheckpointRecorded,
    CheckpointRemoved,
    EvaluationRecorded,
    Fact,
    FalseRefusalTold,
    GateModeSet,
    HandOffWritten,
    HeldOutQueried,
    IdsRenamed,
    JudgeRecorded,
    LogImported,
    LoopEnded,
    ModelMoved,
    ModelRegistered,
    ModelServed,
    PhaseNoted,
    PhasePassed,
    PhaseReopened,
    PlanApproved,
    PriorMoved,
    ReproductionJudged,
    RunEnded,
    RunStarted,
    ScoreReleased,
    SessionEnded,
    SessionStarted,
    ShadowObserved,
    TamperingNoticed,
    TrainingJudged,
    TrainingSpecified,
    local_job,
)
from harness.ledger.state import state_tables
from harness.ledger.store import Connection

ALARM = {
    "code": "plateau",
    "severity": "warning",
    "metric": "train_loss",
    "row": 7,
    "place": 7.0,
    "message": "no new best for 4 rows",
    "evidence": [],
    "threshold": "plateau.share",
    "limit": 0.5,
    "try": [],
    "recovered": False,
}


def judge_recorded(digit: str) -> JudgeRecorded:
    return JudgeRecorded(
        sha256=digit * 64,
        files=3,
        interpreter="/usr/bin/python3.11",
        prefix="/opt/harness",
        python="3.11.7",
        by="human:ada",
    )


def ids_renamed() -> IdsRenamed:
    return IdsRenamed(names={"exp-9001": "exp-9002"}, by="human:ada")


def benchmark_approved() -> BenchmarkApproved:
    return BenchmarkApproved(
        benchmark={"path": "held_out.jsonl", "sha256": "b" * 64, "rows": 40},
        evaluator="preference",
        snapshot=None,
        thresholds={"delta": 0.05, "quality": 0.65, "rows": 20},
        seeds=[1, 2, 3],
        sha256="c" * 64,
        by="human:ada",
    )


def reproduced(experiment: str, reproduction: str) -> ReproductionJudged:
    return ReproductionJudged(
        experiment=experiment,
        reproduction=reproduction,
        metric="accuracy",
        split="validation",
        outcome="reproduced",
        difference=0.001,
        floor=0.01,
        scores=[{"seed": 1, "first": 0.5, "again": 0.501}],
        changed=["cpu"],
        why="within the noise",
        by="harness",
    )


def gate_mode_set(mode: str) -> GateModeSet:
    return GateModeSet(plan="digits", mode=mode, before="auto", by="human:ada", reason="I watch.")


def phase_facts() -> list[Fact]:
    """A note, a passing by it, and an opening again."""
    of = {"plan": "digits", "phase": "data"}
    return [
        PhaseNoted(**of, by="data-engineer", session="5b0c", text="60 rows.", sources=["a.csv"]),
        PhasePassed(
            **of,
            by="harness",
            decision="d-0001",
            evidence={"note": "60 rows."},
            missing=[],
            override=False,
        ),
        PhaseReopened(**of, by="analyst", decision="d-0002", agent=True),
    ]


IDENTITY = {"pid": 1, "boot": "b", "started": 1.5}


class TickingClock(ManualClock):
    """Each look at the time is one second later, so that times in tests differ and are the same in
    every run."""

    def now(self) -> datetime:
        self.sleep(1.0)
        return super().now()


def late_clock(hours: int) -> TickingClock:
    return TickingClock(datetime(2026, 1, 1, hours, tzinfo=UTC))


PLACES: list[Callable[[Path], Place]] = []
"""The last one says where the ledger of a folder is; none: in its file `ledger.db`."""


def place(folder: Path) -> Place:
    return PLACES[-1](folder) if PLACES else folder / "ledger.db"


def open_ledger(folder: Path, *, clock: Clock | None = None, **options: Any) -> Ledger:
    """The ledger of `folder` with anchors in it; the writer is "alice" unless told."""
    options.setdefault("writer", "alice")
    return Ledger.open(
        place(folder), anchors=folder / "anchors", clock=clock or TickingClock(), **options
    )


def plan(version: int = 1, *, name: str = "digits", direction: str = "maximize") -> PlanApproved:
    content = {
        "name": name,
        "objective": "Tell digits apart",
        "oracle": {
            "metric": "accuracy",
            "direction": direction,
            "tiers": {"must": 0.9},
            "seeds": 1,
            "queries": 2,
            "bits": 20.0,
        },
    }
    return PlanApproved(
        name=name,
        version=version,
        path="plan.md",
        sha256="ab" * 32,
        content=content,
        splits={},
        scorer={"name": "accuracy"},
        by="human",
    )


def register(ledger: Ledger, experiment: str, seed: int = 7) -> str:
    return ledger.register_run(
        experiment=experiment,
        seed=seed,
        argv=["python", "train.py"],
        code="c" * 64,
        data=dict.fromkeys(("train", "validation", "held_out"), "d" * 64),
        environment={"python": "3.11"},
        sandbox="bwrap",
        caller="person",
        token="e" * 64,
    ).id


def started(experiment: str, run: str) -> RunStarted:
    return RunStarted(
        experiment=experiment,
        run=run,
        supervisor=dict(IDENTITY),
        job=local_job({"pid": 2, "boot": "b", "started": 2.5}),
    )


def ended(experiment: str, run: str, status: str = "completed", **fields: Any) -> RunEnded:
    values: dict[str, Any] = {
        "exit_code": 0,
        "reason": "it ended",
        "seconds": 3.0,
        "rows": 5,
        **fields,
    }
    return RunEnded(experiment=experiment, run=run, status=status, **values)


def evaluated(experiment: str, run: str, value: float | None, **fields: Any) -> EvaluationRecorded:
    values: dict[str, Any] = {
        "seed": 7,
        "split": "validation",
        "metric": "accuracy",
        "n": 100,
        "interval": [0.1, 0.9],
        "checkpoint": "f" * 64,
        "code": "c" * 64,
        "inputs": "1" * 64,
        "labels": "2" * 64,
        "scorer": "3" * 64,
        "predictions": "4" * 64,
        "query": 1,
        "sandbox": "bwrap",
        "caller": "person",
        "plan_version": 1,
        "baseline": 0.1,
        **fields,
    }
    return EvaluationRecorded(experiment=experiment, run=run, value=value, **values)


def released(experiment: str, **fields: Any) -> ScoreReleased:
    """What a look at held-out was answered."""
    values: dict[str, Any] = {
        "split": "held_out",
        "plan_version": 1,
        "metric": "accuracy",
        "answer": "scored",
        "mean": 0.86,
        "bound": None,
        "best": None,
        "step": 0.02,
        "cell": 43,
        "grid": "9" * 32,
        "tier": "must",
        "better": None,
        "comparison": None,
        "codes": [],
        "n_seeds": 3,
        "rows": 100,
        "not_isolated": [],
        "inputs": "8" * 32,
        "bits": 2.5,
        "spent": 2.5,
        **fields,
    }
    return ScoreReleased(experiment=experiment, **values)


def judged(
    ledger: Ledger, experiment: str, mean: float | None, verdict: str = "FAIL", **fields: Any
) -> str:
    score = None
    if mean is not None:
        score = {
            "metric": "accuracy",
            "split": "validation",
            "mean": mean,
            "n_seeds": 1,
            "not_isolated": [],
        }
    values: dict[str, Any] = {
        "gate": "validation",
        "findings": [],
        "evidence": {"metrics": "5" * 64},
        "score": score,
        "tier": None,
        "comparison": None,
        **fields,
    }
    return ledger.record_verdict(experiment=experiment, verdict=verdict, **values).id


def decided(ledger: Ledger, experiment: str | None, kind: str = "DISCARD", **fields: Any) -> str:
    values: dict[str, Any] = {
        "by": "loop",
        "context": "after the verdict",
        "choice": "drop it",
        "alternatives": "keep it",
        "reason": "below must",
        "confidence": "high",
        "verdict": None,
        **fields,
    }
    return ledger.record_decision(kind=kind, experiment=experiment, **values).id


def life(
    ledger: Ledger, mean: float = 0.5, *, parent: str | None = None, keep: bool = False
) -> str:
    """One experiment from its opening to its decision, with every kind of fact but plans; its
    id."""
    session = f"s{ledger.position():06d}"
    ledger.append(
        SessionStarted(
            session=session,
            role="model-builder",
            experiment=None,
            step="build",
            sandbox="bwrap",
            driver=dict(IDENTITY),
        )
    )
    identifier = ledger.open_experiment(
        hypothesis="wider is better", parent=parent, by="model-builder"
    ).id
    log = {
        "path": "a.csv",
        "sha256": "0" * 64,
        "bytes": 9,
        "format": "CSV",
        "runs": [{"run": "run 1"}],
        "notes": [],
    }
    ledger.append(LogImported(**log, experiment=identifier, by="human:ada"))
    run = register(ledger, identifier)
    ledger.append(started(identifier, run))
    if keep:
        ledger.append(AlarmRaised(experiment=identifier, run=run, alarm=ALARM))
        ledger.append(ended(identifier, run, "lost"))
        ledger.resume_run(
            experiment=identifier, run=run, environment={"python": "3.12"}, session=session
        )
        ledger.append(started(identifier, run))
    ledger.append(
        CheckpointRecorded(
            experiment=identifier,
            run=run,
            checkpoint="f" * 64,
            path="c.pt",
            bytes=9,
            epoch=None,
            final=True,
            told=1,
        )
    )
    ledger.append(ended(identifier, run))
    query = ledger.queries("digits", Split.VALIDATION) + 1
    ledger.append(HeldOutQueried(experiment=identifier, split="validation", query=query))
    ledger.append(evaluated(identifier, run, mean))
    finding = Finding("below_must", f"accuracy {mean} is below 0.9.", "Try another.")
    verdict = judged(
        ledger, identifier, mean, "PASS" if keep else "FAIL", findings=[] if keep else [finding]
    )
    ledger.move_experiment(identifier, ExperimentStatus.JUDGED, "judged")
    decided(ledger, identifier, "KEEP" if keep else "DISCARD", verdict=verdict)
    after = ExperimentStatus.KEPT if keep else ExperimentStatus.DISCARDED
    ledger.move_experiment(identifier, after, "decided")
    ledger.append(
        SessionEnded(session=session, outcome="finished", detail="", turns=3, cost_usd=None)
    )
    return identifier


def prior(ledger: Ledger, **fields: Any) -> str:
    values: dict[str, Any] = {
        "lesson": "Wider is better",
        "evidence": "exp-0001 to exp-0003",
        "rule": "Try wider first.",
        "check": None,
        "by": "human:ada",
        **fields,
    }
    return ledger.record_prior(**values).id


def prior_told(name: str) -> list[Fact]:
    """Activated, said to have refused what was right, and retired."""
    by = {"prior": name, "by": "human:ada"}
    return [
        PriorMoved(**by, status="active", reason="twice now", recurrences=0),
        FalseRefusalTold(**by, reason="0.2 trains well with warm-up"),
        PriorMoved(**by, status="retired", reason="it refuses what is right", recurrences=1),
    ]


def full_ledger(folder: Path, lives: int = 3, **options: Any) -> Ledger:
    """A plan, some experiments, a hand-off, two priors, a noticed tampering and an end of the
    loop."""
    ledger = open_ledger(folder, **options)
    ledger.append(plan())
    parent = None
    for index in range(lives):
        parent = life(ledger, 0.5 + index / 10, parent=parent, keep=index == lives - 1)
    ledger.append(
        HandOffWritten(
            by="agent", session="5b0c", text="exp-0003 is kept.\nNext: deeper.", experiment=parent
        )
    )
    first = prior(ledger, check=["python", "-c", "pass"])
    prior(ledger, lesson="Wider is not always better", supersedes=first)
    ledger.append(
        TamperingNoticed(what="scorer_changed", path="score.py", expected="1", actual="2")
    )
    ledger.append(LoopEnded(plan="digits", reason="target", detail="must was reached"))
    return ledger


def program(ledger: Ledger) -> str:
    """A training program whose model was deployed."""
    name = ledger.open_experiment(hypothesis="orpo", parent=None, by="me", of_plan=False).id
    ledger.append(
        TrainingSpecified(experiment=name, spec={"backend": "command"}, sha256="s", by="me")
    )
    run = register(ledger, name)
    ledger.append(started(name, run))
    ledger.append(
        TrainingJudged(
            experiment=name,
            run=run,
            accepted=True,
            source="stdout",
            problems=[],
            result={},
            artifact="a" * 64,
        )
    )
    model = "a" * 64
    ledger.append(
        CheckpointRecorded(
            experiment=name, run=run, checkpoint=model, path="x", bytes=1, epoch=None, final=True
        )
    )
    ledger.append(
        ModelRegistered(
            model=model,
            experiment=name,
            run=run,
            profile="local-reader",
            path="x",
            format="peft-adapter",
            base={},
        )
    )
    spare = {"experiment": name, "run": run, "checkpoint": "b" * 64, "path": "y", "bytes": 1}
    ledger.append(CheckpointRecorded(**spare, epoch=0, final=False))
    ledger.append(ended(name, run))
    ledger.append(CheckpointRemoved(**spare, sha256="b" * 64, by="human"))
    ledger.record_model_evaluation(
        model=model,
        against="base",
        benchmark={"sha256": "b"},
        mode="reduced_prompt",
        verdict="PASS",
        reason="",
        baseline=0.5,
        candidate=0.7,
        delta=0.2,
        interval=[0.1, 0.3],
        margin=None,
        n=80,
        seed=1,
        evidence={},
    )
    ledger.append(ShadowObserved(model=model, outcome="accepted", by="me"))
    states = ("registered", "candidate", "shadow", "promotable", "deployed")
    for before, after in pairwise(states):
        ledger.append(
            ModelMoved(
                model=model,
                before=before,
                after=after,
                why="w",
                by="me",
                checks=[],
                evidence={},
                decision=None,
            )
        )
    ledger.append(
        ModelServed(
            profile="local-reader",
            model=model,
            before=None,
            how="deploy",
            why="w",
            by="me",
            decision=None,
        )
    )
    return model


def read_state(connection: Connection) -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
    """All rows of the state tables, in the form of `MemoryState.tables`."""
    return {
        table.name: {
            tuple(row[name] for name in table.key): row
            for row in connection.rows(f"SELECT * FROM {table.name}")
        }
        for table in state_tables()
    }
