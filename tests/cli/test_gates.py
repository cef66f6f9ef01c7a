"""`harness gates`: what the loop may decide by itself, set while it runs."""

from pathlib import Path

import pytest

from harness.cli import gates
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import GateMode, SandboxKind
from harness.driver.loop_runner import run_loop
from harness.errors import RefusedError, UsageError
from harness.ledger.facts import GateModeSet, RunStarted, local_job
from harness.ledger.project import open_project
from harness.loop.load_state import load_state
from harness.plans.approval import approve_plan
from harness.process import identity
from harness.sandbox import select
from tests.cli.journey import Again, Journey, make_project
from tests.world import InProcess, World


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    again = Again(tmp_path_factory.mktemp("gates"), ("init",), ("plan", "approve"))
    return again.journey()


def test_a_person_sets_the_mode_with_a_reason(journey: Journey) -> None:
    assert journey.harness("gates", "show").stdout.startswith("auto  of the plan, approved by")
    words = ("gates", "set", "supervised", "--reason", "I want to see each one.")
    made = journey.harness(*words, "--json")
    assert made.exit_code == 0, made.stderr
    assert (made.document["before"], made.document["mode"]) == ("auto", "supervised")
    shown = journey.harness("gates", "show").stdout
    assert "supervised  set by " in shown
    assert "I want to see each one." in shown
    status = journey.harness("status", "--json").document
    assert status["plan"]["gates"] == "supervised"
    (decision,) = journey.harness("decisions", "--json").document["decisions"]
    assert (decision["kind"], decision["reason"]) == ("MODE", "I want to see each one.")
    assert "could None" not in journey.harness("status", "--briefing").stdout
    log = (journey.root / ".harness/memory/DECISION_LOG.md").read_text("utf-8")
    assert "supervised from the loop's next step on" in log
    refused = journey.harness(*words, CLAUDECODE="1")
    assert refused.exit_code == 2
    assert journey.harness("gates", "set", "auto").exit_code == 2
    assert journey.harness("ledger", "verify").exit_code == 0


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("modes"))


def set_mode(world: World, mode: str) -> None:
    fact = GateModeSet(plan="signs", mode=mode, before="auto", by="human:ada", reason="a test")
    world.project.ledger.append(fact)


def mode_of(world: World) -> GateMode:
    return load_state(world.project, supervised=lambda _run: False).limits.mode


def test_the_next_step_has_the_mode_and_a_new_approval_ends_it(world: World) -> None:
    assert mode_of(world) is GateMode.AUTO
    set_mode(world, "supervised")
    assert mode_of(world) is GateMode.SUPERVISED
    set_mode(world, "full-auto")
    assert mode_of(world) is GateMode.FULL_AUTO
    path = world.root / "plan.md"
    path.write_text(path.read_text().replace("experiments: 6", "experiments: 7"))
    world.project.clock.sleep(5)
    approve_plan(world.project, path, by="a person")
    assert mode_of(world) is GateMode.AUTO
    with pytest.raises(UsageError, match="A mode"):
        set_mode(world, "whatever")
    world.project.close()


def test_full_auto_is_refused_without_a_sandbox(world: World) -> None:
    set_mode(world, "full-auto")
    gateway = None  # never asked: the loop does not begin
    with pytest.raises(RefusedError) as refused:
        run_loop(world.project, gateway, InProcess())  # type: ignore[arg-type]
    assert refused.value.code == "isolation_absent"
    assert world.project.ledger.loop_end() is None
    world.project.close()


def test_setting_it_is_refused_where_no_sandbox_works(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:

    def none(*_: object, **__: object) -> Sandbox:
        return InProcess()  # type: ignore[return-value]

    assert select.choose(SandboxKind.NONE, required=False).kind is SandboxKind.NONE
    monkeypatch.setattr(gates, "choose", none)
    with pytest.raises(RefusedError, match="nothing isolates"):
        gates._require_sandbox()
    world.project.close()


def test_full_auto_is_refused_for_a_plan_of_two_seeds(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    plan = journey.root / "plan.md"
    text = plan.read_text("utf-8")
    assert "seeds: 3" in text
    plan.write_text(text.replace("seeds: 3", "seeds: 2"), "utf-8")
    assert journey.harness("plan", "approve").exit_code == 0
    refused = journey.harness("gates", "set", "full-auto", "--reason", "All night.", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "seeds_too_few")
    assert journey.harness("gates", "set", "auto", "--reason", "All night.").exit_code == 0


def test_who_rejects_what_trains_is_told_how_to_end_it(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve"), ("experiment", "new", "--hypothesis", "wide")):
        assert journey.harness(*words).exit_code == 0
    with open_project(journey.root, journey.environment()) as project:
        run = project.ledger.register_run(
            experiment="exp-0001",
            seed=1,
            argv=["python", "train.py"],
            code="0" * 64,
            data={},
            environment={},
            sandbox="none",
            token="0" * 64,
        )
        me = identity()
        started = RunStarted(experiment="exp-0001", run=run.id, supervisor=me, job=local_job(me))
        project.ledger.append(started)
    said = journey.harness("gate", "reject", "exp-0001", "--reason", "Too wide.")
    assert said.exit_code == 0, said.stderr
    assert f"`kill {me['pid']}` ends it as cancelled" in said.stdout
