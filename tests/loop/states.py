"""Loop states for tests, each a small change of a plain one."""

from dataclasses import replace
from typing import Any

from harness.domain.findings import Finding
from harness.domain.statuses import ExperimentStatus, RunStatus, Tier, Verdict
from harness.loop.state import (
    ExperimentState,
    LoopLimits,
    LoopSpending,
    LoopState,
    RunState,
    SessionState,
    VerdictState,
)

SEEDS = 3
LOW = Finding(
    "below_tier",
    "accuracy on validation is 0.68; the tier must needs >= 0.9.",
    "Try another hypothesis.",
)


def limits(**changes: Any) -> LoopLimits:
    plain = LoopLimits(
        seeds=SEEDS, experiments=8, total_minutes=40, usd=None, stop_tier=Tier.MUST, patience=3
    )
    return replace(plain, **changes)


def runs(*statuses: RunStatus, **changes: Any) -> tuple[RunState, ...]:
    """One run a status; completed ones have a final checkpoint."""
    return tuple(
        RunState(
            id=f"run-{place:02d}",
            seed=place,
            status=status,
            reason="stopped",
            **changes,
        )
        for place, status in enumerate(statuses, start=1)
    )


DONE = runs(*[RunStatus.COMPLETED] * SEEDS)
ALL = frozenset(run.id for run in DONE)


def verdict(kind: Verdict = Verdict.PASS, **changes: Any) -> VerdictState:
    findings = () if kind is Verdict.PASS else (LOW,)
    tier = Tier.MUST if kind is Verdict.PASS else None
    plain = VerdictState(
        id="v-000001",
        verdict=kind,
        current=True,
        findings=findings,
        tier=tier,
        better=True,
        why="+0.2 beyond 0.01.",
    )
    return replace(plain, **changes)


def experiment(
    number: int = 1, status: ExperimentStatus = ExperimentStatus.OPEN, **changes: Any
) -> ExperimentState:
    return replace(ExperimentState(id=f"exp-{number:04d}", status=status), **changes)


def judged(number: int = 1, **changes: Any) -> ExperimentState:
    """Trained, evaluated, with result.md and a PASS on validation."""
    whole: dict[str, Any] = {
        "runs": DONE,
        "result_written": True,
        "validation": verdict(),
    } | changes
    return experiment(number, ExperimentStatus.JUDGED, **whole)


def closed(number: int, status: ExperimentStatus, **changes: Any) -> ExperimentState:
    return replace(judged(number, **changes), status=status)


def session(step: str, outcome: str | None = "finished", *, counted: bool = True) -> SessionState:
    return SessionState(step=step, outcome=outcome, counted=counted)


BUILT = (session("build-1-1"),)
READ = (*BUILT, session("judge-1-1"))


def state(
    *experiments: ExperimentState, sessions: tuple[SessionState, ...] = (), **changes: Any
) -> LoopState:
    """`spent` and `limits` may be given; the rest is a fresh loop."""
    plain = LoopState(
        limits=limits(),
        spent=LoopSpending(held_out_left=20),
        experiments=experiments,
        sessions=sessions,
    )
    return replace(plain, **changes)
