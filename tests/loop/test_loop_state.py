"""The loop on a real ledger, and cut before every single fact that it writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.clock import Clock
from harness.decisions.experiments import MOVES, decide
from harness.domain.statuses import FINAL_RUNS, DecisionKind, RunStatus, SandboxKind, Tier, Verdict
from harness.evaluation import concurrent_seeds
from harness.evaluation.evaluate_run import EvaluationOutcome, EvaluationRequest
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.ledger import Ledger
from harness.ledger.facts import (
    LoopEnded,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    local_job,
)
from harness.loop.load_state import load_state
from harness.loop.next_step import next_step
from harness.loop.steps import (
    Build,
    CheckGate,
    Decide,
    Evaluate,
    JudgeResult,
    Recover,
    Settle,
    Step,
    StopLoop,
    Train,
)
from harness.sandbox.none import NoSandbox
from tests.world import GOOD, PLAN, POOR, World

CUTS = {1: POOR, 2: GOOD}
WORDS = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")


class Killed(BaseException):
    """The process is gone: nothing after it happens."""


def quick_evaluation(request: EvaluationRequest, sandbox: Any, clock: Clock) -> EvaluationOutcome:
    run = request.checkpoint.parents[1].name
    seed = int(run.removeprefix("run-")) % 7
    poor = "exp-0001" in request.checkpoint.parts
    return EvaluationOutcome(
        metric=request.metric,
        value=(0.6 if poor else 0.95) + seed / 1000,
        n=200,
        interval=None,
        checkpoint=request.checkpoint_hash,
        code=request.snapshot.hash,
        inputs="i",
        labels="l",
        scorer=request.scorer.hash(),
        predictions=f"p{seed}",
        sandbox=SandboxKind.BWRAP,
        baseline=0.5,
        findings=(),
        at="2026-01-01T00:00:00.000Z",
        seconds=0.0,
        predict_seconds=0.0,
    )


class Driver:
    """Does the loop's steps as harness.driver does, with sessions that do their work at once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.trail: list[str] = []

    def run(self) -> StopLoop:
        project = self.world.project
        for session in project.ledger.sessions(open_only=True):
            project.ledger.append(
                SessionEnded(session=session.id, outcome="cut", detail="", turns=0, cost_usd=None)
            )
        for _ in range(100):
            step = next_step(load_state(project, supervised=lambda run: False))
            self.trail.append(step.key)
            if isinstance(step, StopLoop):
                return step
            self.do(step)
        raise AssertionError(f"no end: {self.trail}")

    def do(self, step: Step) -> None:
        project = self.world.project
        match step:
            case Build():
                self.session(step.key, "model-builder", lambda: self.build(step))
            case JudgeResult():
                self.session(step.key, "oracle", lambda: self.world.result(step.experiment))
            case Recover():
                for run in project.ledger.open_runs():
                    self.lose(run.experiment, run.id)
            case Train():
                self.train(step.experiment)
            case Evaluate():
                evaluate_experiment(
                    project,
                    step.experiment,
                    step.split,
                    NoSandbox(),
                    environment={},
                    admit=require_validation_passed,
                )
            case CheckGate():
                check_gate(project, step.experiment, step.gate)
            case Decide():
                decide(
                    project,
                    kind=step.kind,
                    experiment=step.experiment,
                    by="harness",
                    context=step.context,
                    choice=step.choice,
                    alternatives=step.alternatives,
                    reason=step.reason,
                    confidence=step.confidence,
                    verdict=step.verdict,
                )
            case Settle():
                project.ledger.move_experiment(step.experiment, MOVES[step.kind], "settled")

    def session(self, key: str, role: str, work: Any) -> None:
        ledger = self.world.project.ledger
        name = f"s-{len(ledger.sessions()):03d}"
        ledger.append(
            SessionStarted(
                session=name,
                role=role,
                experiment=None,
                step=key,
                sandbox="none",
                driver={"pid": 1},
            )
        )
        work()
        ledger.append(
            SessionEnded(session=name, outcome="finished", detail="", turns=1, cost_usd=0.0)
        )

    def build(self, step: Build) -> None:
        self.train(self.world.open(f"Idea {step.index}", step.parent).id, step.index)

    def train(self, experiment: str, index: int | None = None) -> None:
        index = index or int(experiment.removeprefix("exp-"))
        runs = self.world.project.ledger.runs(experiment)
        done = {run.seed for run in runs if run.status is RunStatus.COMPLETED}
        for number, cut in enumerate(CUTS[index], start=1):
            if (seed := self.world.seed(number)) not in done:
                self.world.train_one(experiment, seed, cut)

    def lose(self, experiment: str, run: str) -> None:
        lost = RunEnded(
            experiment=experiment,
            run=run,
            status="lost",
            exit_code=None,
            reason="its supervisor is gone",
            seconds=None,
            rows=0,
        )
        self.world.project.ledger.append(lost)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(concurrent_seeds, "evaluate_run", quick_evaluation)
    made = World.make(tmp_path)
    yield made
    made.project.close()


def outcome(world: World) -> list[tuple[Any, ...]]:
    """How the experiments ended: what a person reads, without ids and times."""
    ledger = world.project.ledger
    rows = []
    for item in ledger.experiments():
        last = ledger.verdicts(item.id)[-1]
        kinds = [decision.kind for decision in ledger.decisions(item.id)]
        tested = [verdict.verdict for verdict in ledger.verdicts(item.id)]
        rows.append(
            (
                item.id,
                item.status,
                item.hypothesis,
                last.gate,
                last.verdict,
                last.tier,
                kinds,
                tested,
            )
        )
    return rows


CALM = [
    (
        "exp-0001",
        "discarded",
        "Idea 1",
        "validation",
        Verdict.FAIL,
        None,
        [DecisionKind.DISCARD],
        [Verdict.FAIL],
    ),
    (
        "exp-0002",
        "kept",
        "Idea 2",
        "held_out",
        Verdict.PASS,
        Tier.SHOULD,
        [DecisionKind.KEEP],
        [Verdict.PASS, Verdict.PASS],
    ),
]


def test_an_undisturbed_loop_keeps_the_good_experiment(world: World) -> None:
    driver = Driver(world)
    assert driver.run().reason == "target"
    assert outcome(world) == CALM
    assert driver.trail[:5] == [
        "build-1-1",
        "evaluate-exp-0001-validation",
        "judge-1-1",
        "check-exp-0001-validation",
        "decide-exp-0001-DISCARD",
    ]
    again = Driver(world)
    assert again.run().reason == "target"
    assert again.trail == ["stop-target"]


def cut_before(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> bool:
    """Run the loop and kill it before its transaction `number`; False when it ended before that."""
    left, real = [number], Ledger.transaction

    def transaction(self: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return real(self)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "transaction", transaction)
        try:
            Driver(world).run()
        except Killed:
            return True
    return False


def check_every_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: range) -> None:
    monkeypatch.setattr(concurrent_seeds, "evaluate_run", quick_evaluation)
    for number in numbers:
        world = World.make(tmp_path / str(number))
        cut = cut_before(world, monkeypatch, number)
        if cut:
            assert Driver(world).run().reason == "target", f"killed before transaction {number}"
        assert outcome(world) == CALM, f"killed before transaction {number}"
        assert all(
            run.status in FINAL_RUNS
            for item in world.project.ledger.experiments()
            for run in world.project.ledger.runs(item.id)
        )
        world.project.close()
        if not cut:
            return
    assert numbers.step > 1, "the loop writes more facts than were tried"


def test_a_loop_killed_at_some_moments_ends_as_if_undisturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_every_cut(tmp_path, monkeypatch, range(1, 60, 9))


@pytest.mark.slow
def test_a_loop_killed_before_any_fact_ends_as_if_undisturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_every_cut(tmp_path, monkeypatch, range(200))


def test_supervised_waits_for_a_person_and_does_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_seeds, "evaluate_run", quick_evaluation)
    for kind, status in ((DecisionKind.APPROVE, "kept"), (DecisionKind.REJECT, "discarded")):
        plan = PLAN.replace("loop:", "gates: {mode: supervised}\nloop:").replace(
            "experiments: 6", "experiments: 2"
        )
        world = World.make(tmp_path / kind, plan)
        assert Driver(world).run().reason == "waiting"
        assert Driver(world).run().reason == "waiting"
        decide(
            world.project, kind=kind, experiment="exp-0002", by="Ada", confidence="high", **WORDS
        )
        Driver(world).run()
        assert world.project.ledger.experiment("exp-0002").status == status
        world.project.close()


@pytest.mark.parametrize("mode", ["auto", "full-auto"])
def test_what_is_better_is_kept_without_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(concurrent_seeds, "evaluate_run", quick_evaluation)
    world = World.make(tmp_path, PLAN.replace("loop:", f"gates: {{mode: {mode}}}\nloop:"))
    assert Driver(world).run().reason == "target"
    assert load_state(world.project, supervised=lambda run: False).limits.mode == mode
    world.project.close()


def test_a_person_who_iterates_gets_another_attempt(world: World) -> None:
    driver = Driver(world)
    while not driver.trail or driver.trail[-1] != "check-exp-0001-validation":
        step = next_step(load_state(world.project, supervised=lambda run: False))
        driver.trail.append(step.key)
        driver.do(step)
    decide(
        world.project, kind="ITERATE", experiment="exp-0001", by="Ada", confidence="low", **WORDS
    )
    step = next_step(load_state(world.project, supervised=lambda run: False))
    assert (
        step.key == "check-exp-0001-validation"
    )  # it was moved to open: the verdict stands, the status follows
    driver.do(step)
    step = next_step(load_state(world.project, supervised=lambda run: False))
    assert isinstance(step, Build)
    assert (step.key, step.experiment) == ("build-1-2", "exp-0001")
    assert step.findings[0].code == "below_tier"


def test_sessions_before_the_loops_end_are_not_held_against_its_continuation(world: World) -> None:
    driver, ledger = Driver(world), world.project.ledger
    for attempt in (1, 2, 3):
        driver.session(f"build-1-{attempt}", "model-builder", lambda: None)
    assert (
        next_step(load_state(world.project, supervised=lambda run: False)).key == "stop-failures"
    )
    ledger.append(LoopEnded(plan="signs", reason="failures", detail="three sessions did nothing"))
    world.project.clock.sleep(1)  # type: ignore[attr-defined]
    assert next_step(load_state(world.project, supervised=lambda run: False)).key == "build-1-4"


def test_the_state_counts_minutes_looks_and_supervision(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, GOOD)
    world.project.ledger.query_held_out(experiment, 3)
    code = world.project.ledger.runs(experiment)[0].code
    world.project.ledger.register_run(
        experiment=experiment,
        seed=4,
        argv=["python", "train.py"],
        code=code,
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
    )
    state = load_state(world.project, supervised=lambda run: run.seed == 4)
    assert state.spent.minutes == pytest.approx(3 / 60)
    assert state.spent.held_out_left == 2
    assert [run.supervised for run in state.experiments[0].runs] == [False, False, False, True]
    assert next_step(state).key == f"wait-{experiment}"


@pytest.mark.parametrize(("passed", "supervised", "minutes"), [(30, True, 0.5), (30, False, 0.0)])
def test_a_run_that_goes_on_counts_with_what_it_took_so_far(
    world: World, passed: float, supervised: bool, minutes: float
) -> None:
    experiment = world.open().id
    run = world.project.ledger.register_run(
        experiment=experiment,
        seed=4,
        argv=["python", "train.py"],
        code="c",
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
    )
    me = {"pid": 1, "boot": "b", "started": 1.0}
    started = RunStarted(experiment=experiment, run=run.id, supervisor=me, job=local_job(me))
    world.project.ledger.append(started)
    clock = world.project.clock
    clock.sleep(passed)  # type: ignore[attr-defined]
    spent = load_state(world.project, supervised=lambda run: supervised).spent.minutes
    assert spent == pytest.approx(minutes)
    # No run takes longer than the plan allows: it is ended then.
    clock.sleep(9_000)  # type: ignore[attr-defined]
    spent = load_state(world.project, supervised=lambda run: supervised).spent.minutes
    assert spent == pytest.approx(1.0 if supervised else 0.0)


class Flaky(Driver):
    """The third seed crashes in the first attempts."""

    def __init__(self, world: World, failures: int) -> None:
        super().__init__(world)
        self.failures = failures

    def build(self, step: Build) -> None:
        if step.experiment is None:
            self.world.open(f"Idea {step.index}", step.parent)
        experiment = step.experiment or f"exp-{step.index:04d}"
        done = {
            r.seed
            for r in self.world.project.ledger.runs(experiment)
            if r.status is RunStatus.COMPLETED
        }
        for number, cut in enumerate(CUTS[2], start=1):
            crashed = number == 3 and step.attempt <= self.failures
            if (seed := self.world.seed(number)) not in done:
                self.world.train_one(
                    experiment, seed, cut, RunStatus.FAILED if crashed else RunStatus.COMPLETED
                )


def test_failed_seeds_are_trained_again_in_the_next_attempt(world: World) -> None:
    driver = Flaky(world, failures=1)
    driver.run()
    assert driver.trail[:8] == [
        "build-1-1",
        "evaluate-exp-0001-validation",
        "judge-1-1",
        "check-exp-0001-validation",
        "build-1-2",
        "evaluate-exp-0001-validation",
        "judge-1-2",
        "check-exp-0001-validation",
    ]
    verdicts = [item.verdict for item in world.project.ledger.verdicts("exp-0001")]
    assert verdicts[:2] == [
        Verdict.INCONCLUSIVE,
        Verdict.FAIL,
    ]  # exp-0001 scores 0.6 here, now over all seeds


def test_w6_failures_end_the_loop(world: World) -> None:
    """There failed runs never counted: fifty of them went on."""
    driver = Flaky(world, failures=99)
    assert driver.run().reason == "patience"
    assert [item.status for item in world.project.ledger.experiments()] == ["discarded"] * 3
    assert [key for key in driver.trail if key.startswith("build-1-")] == [
        "build-1-1",
        "build-1-2",
        "build-1-3",
    ]


def test_neither_the_state_nor_a_decision_reads_every_fact_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are thousands of them after some hundred experiments, and a step is asked for after
    each."""
    driver, ledger = Driver(world), world.project.ledger
    driver.session("build-1-1", "model-builder", lambda: None)
    ledger.append(LoopEnded(plan="signs", reason="failures", detail="a test"))
    experiment = world.open().id
    verdict = dict(kind="DISCARD", experiment=experiment, by="Ada", confidence="low", **WORDS)

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("all facts were read")

    monkeypatch.setattr(Ledger, "facts", forbidden)
    assert [
        item.counted for item in load_state(world.project, supervised=lambda run: False).sessions
    ] == [False]
    with monkeypatch.context() as cut:
        cut.setattr(Ledger, "move_experiment", forbidden)
        with pytest.raises(AssertionError, match="all facts were read"):
            decide(world.project, **verdict)
    finished = decide(world.project, **verdict)
    assert [item.id for item in ledger.decisions(experiment)] == [finished.id]
    assert ledger.moved_after(finished.id, experiment)
    assert ledger.experiment(experiment).status == "discarded"
