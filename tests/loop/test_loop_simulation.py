"""The loop against worlds that answer anything: it always stops, and a cut changes nothing about
how it ends."""

from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Split,
    Tier,
    Verdict,
)
from harness.loop.next_step import next_step
from harness.loop.state import ExperimentState, LoopSpending, LoopState, SessionState
from harness.loop.steps import (
    Build,
    CheckGate,
    Decide,
    Diagnose,
    Evaluate,
    JudgeResult,
    Recover,
    Scout,
    Settle,
    Step,
    StopLoop,
    StopReason,
    Train,
    Wait,
)
from tests.loop.states import SEEDS, limits, runs, verdict

BOUND = 1500
EXPERIMENTS = 4


@dataclass
class World:
    """Does each step as `draw` says and keeps the state that a ledger would give back."""

    draw: Any
    state: LoopState
    trail: list[str] = field(default_factory=list)

    def run(self) -> StopLoop:
        unchanged, before = 0, None
        for _ in range(BOUND):
            unchanged = unchanged + 1 if self.state == before else 0
            before = self.state
            step = next_step(replace(self.state, unchanged=unchanged))
            self.trail.append(step.key)
            if isinstance(step, StopLoop):
                return step
            self.do(step)
        raise AssertionError(f"no end after {BOUND} steps: ... {self.trail[-12:]}")

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def do(self, step: Step) -> None:
        if self.draw(st.booleans()) and self.pick(True, False, False):
            return  # nothing came of it
        match step:
            case Build():
                self.build(step)
            case JudgeResult():
                self.session(step.key)
                self.change(step.experiment, result_written=self.pick(True, True, False))
            case Diagnose():
                self.session(step.key)
                left = tuple(run for run in self.undiagnosed(step.experiment) if run != step.run)
                self.change(
                    step.experiment,
                    **({"undiagnosed": left} if self.pick(True, True, False) else {}),
                )
            case Scout():
                self.session(step.key)
                self.change(step.experiment, methods_written=self.pick(True, False))
            case Wait() | Recover() | Train():
                self.train(step.experiment)
            case Evaluate(split=Split.VALIDATION):
                self.change(step.experiment, awaiting=frozenset())
            case Evaluate():
                self.spend(held_out_left=self.state.spent.held_out_left - 1)
                self.change(step.experiment, awaiting_held_out=frozenset())
            case CheckGate():
                self.check(step)
            case Decide() | Settle():
                moved = {DecisionKind.KEEP: ExperimentStatus.KEPT}.get(
                    step.kind, ExperimentStatus.DISCARDED
                )
                done = self.pick(True, True, False)
                changes = (
                    {"status": moved, "improved": self.pick(True, False)}
                    if done
                    else {"decided": step.kind}
                )
                self.change(step.experiment, **changes)

    def session(self, key: str) -> None:
        outcome = self.pick("finished", "finished", "failed", "refused", "cut")
        self.state = replace(
            self.state, sessions=(*self.state.sessions, SessionState(step=key, outcome=outcome))
        )

    def build(self, step: Build) -> None:
        self.session(step.key)
        if step.experiment is None and self.pick(True, True, False):
            opened = ExperimentState(id=f"exp-{step.index:04d}", status=ExperimentStatus.OPEN)
            self.state = replace(self.state, experiments=(*self.state.experiments, opened))
        if len(self.state.experiments) == step.index and self.pick(True, True, False):
            self.train(f"exp-{step.index:04d}")

    def train(self, experiment: str) -> None:
        statuses = [
            self.pick(*[RunStatus.COMPLETED] * 4, *RunStatus)
            for _ in range(self.pick(1, SEEDS, SEEDS, SEEDS))
        ]
        trained = runs(
            *statuses,
            bypassed=self.pick(False, False, False, True),
            supervised=self.pick(True, False),
        )
        scorable = frozenset(
            run.id for run in trained if run.status is RunStatus.COMPLETED and not run.bypassed
        )
        broken = tuple(run.id for run in trained if self.pick(False, False, True))
        lost = next(item.lost for item in self.state.experiments if item.id == experiment)
        self.spend(minutes=self.state.spent.minutes + self.pick(0.0, 1.0, 9.0))
        self.change(
            experiment,
            status=ExperimentStatus.RUNNING,
            runs=trained,
            argv=("python", "train.py"),
            lost=lost + statuses.count(RunStatus.LOST),
            awaiting=scorable,
            awaiting_held_out=scorable,
            undiagnosed=broken,
            alarms={"divergence": "fatal"} if broken else {},
        )

    def undiagnosed(self, experiment: str) -> tuple[str, ...]:
        return next(item.undiagnosed for item in self.state.experiments if item.id == experiment)

    def check(self, step: CheckGate) -> None:
        before = next(
            item for item in self.state.experiments if item.id == step.experiment
        ).verdict(step.gate)
        told = verdict(
            self.pick(Verdict.PASS, Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE),
            current=self.pick(True, True, True, False),
            better=self.pick(True, False, None),
            tier=self.pick(None, *Tier),
            recorded=1 + (before.recorded if before else 0),
        )
        name = "validation" if step.gate is GateName.VALIDATION else "held_out"
        moved = self.pick(True, True, False)
        self.change(
            step.experiment,
            **{name: told},
            **({"status": ExperimentStatus.JUDGED} if moved else {}),
        )

    def change(self, experiment: str, **changes: Any) -> None:
        self.state = replace(
            self.state,
            experiments=tuple(
                replace(item, **changes) if item.id == experiment else item
                for item in self.state.experiments
            ),
        )

    def spend(self, **changes: Any) -> None:
        self.state = replace(self.state, spent=replace(self.state.spent, **changes))


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_the_loop_stops_whatever_happens(data: st.DataObject) -> None:
    plan = limits(
        experiments=EXPERIMENTS,
        patience=data.draw(st.integers(1, EXPERIMENTS)),
        stop_tier=data.draw(st.sampled_from(Tier)),
        mode=data.draw(st.sampled_from(GateMode)),
        references=data.draw(st.booleans()),
    )
    begun = LoopState(
        limits=plan,
        spent=LoopSpending(held_out_left=5),
        parallel=data.draw(st.integers(1, 3)),
    )
    end = World(data.draw, begun).run()
    assert end.reason in StopReason
    assert end.detail
    assert (end.reason is StopReason.WAITING) <= (plan.mode is not GateMode.FULL_AUTO)


class Undisturbed(World):
    """Everything works; the numbers are those of a plan that is met by the third experiment."""

    def do(self, step: Step) -> None:
        match step:
            case Build():
                self.finish(step.key)
                if step.experiment is None:
                    opened = ExperimentState(
                        id=f"exp-{step.index:04d}", status=ExperimentStatus.OPEN
                    )
                    self.state = replace(self.state, experiments=(*self.state.experiments, opened))
                self.trained(f"exp-{step.index:04d}")
            case Train() | Wait() | Recover():
                self.trained(step.experiment)
            case JudgeResult():
                self.finish(step.key)
                self.change(step.experiment, result_written=True)
            case Evaluate(split=Split.VALIDATION):
                self.change(step.experiment, awaiting=frozenset())
            case Evaluate():
                self.change(step.experiment, awaiting_held_out=frozenset())
            case CheckGate():
                good = step.experiment == "exp-0003"
                told = verdict(Verdict.PASS if good else Verdict.FAIL)
                name = "validation" if step.gate is GateName.VALIDATION else "held_out"
                self.change(step.experiment, **{name: told}, status=ExperimentStatus.JUDGED)
            case Decide() | Settle():
                kept = step.kind is DecisionKind.KEEP
                self.change(
                    step.experiment,
                    status=ExperimentStatus.KEPT if kept else ExperimentStatus.DISCARDED,
                )

    def finish(self, key: str) -> None:
        self.state = replace(
            self.state, sessions=(*self.state.sessions, SessionState(step=key, outcome="finished"))
        )

    def trained(self, experiment: str) -> None:
        done = runs(*[RunStatus.COMPLETED] * SEEDS)
        ids = frozenset(run.id for run in done)
        self.change(
            experiment,
            status=ExperimentStatus.RUNNING,
            runs=done,
            awaiting=ids,
            awaiting_held_out=ids,
            argv=("train",),
        )


class Killed(Undisturbed):
    """The same, but before each step the driver may be killed half-way through it."""

    def do(self, step: Step) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.half(step)
        if next_step(self.state) == step:
            super().do(step)

    def half(self, step: Step) -> None:
        match step:
            case Build() | JudgeResult():
                cut = SessionState(step=step.key, outcome=self.pick(None, "cut"))
                self.state = replace(self.state, sessions=(*self.state.sessions, cut))
                if (
                    isinstance(step, Build)
                    and len(self.state.experiments) < step.index
                    and self.pick(True, False)
                ):
                    opened = ExperimentState(
                        id=f"exp-{step.index:04d}", status=ExperimentStatus.OPEN
                    )
                    self.state = replace(self.state, experiments=(*self.state.experiments, opened))
            case Train() | Wait() | Recover():
                self.change(step.experiment, runs=runs(RunStatus.COMPLETED, RunStatus.LOST))
            case CheckGate():  # the verdict is recorded, the experiment not moved
                good = step.experiment == "exp-0003"
                name = "validation" if step.gate is GateName.VALIDATION else "held_out"
                self.change(
                    step.experiment, **{name: verdict(Verdict.PASS if good else Verdict.FAIL)}
                )
            case Decide():  # the decision is recorded, the experiment not moved
                self.change(step.experiment, decided=step.kind)


def plan() -> LoopState:
    return LoopState(limits=limits(patience=8), spent=LoopSpending(held_out_left=20))


def test_an_undisturbed_loop_reaches_its_target_in_order() -> None:
    world = Undisturbed(None, plan())
    assert world.run().reason == "target"
    assert world.trail == [
        *(
            key
            for number in (1, 2)
            for key in (
                f"build-{number}-1",
                f"evaluate-exp-000{number}-validation",
                f"judge-{number}-1",
                f"check-exp-000{number}-validation",
                f"decide-exp-000{number}-DISCARD",
            )
        ),
        "build-3-1",
        "evaluate-exp-0003-validation",
        "judge-3-1",
        "check-exp-0003-validation",
        "evaluate-exp-0003-held_out",
        "check-exp-0003-held_out",
        "decide-exp-0003-KEEP",
        "stop-target",
    ]


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_loop_that_is_killed_anywhere_ends_as_if_undisturbed(data: st.DataObject) -> None:
    calm, killed = Undisturbed(None, plan()), Killed(data.draw, plan())
    calm_end, killed_end = calm.run(), killed.run()
    assert killed_end == calm_end
    assert [item.status for item in killed.state.experiments] == [
        item.status for item in calm.state.experiments
    ]
