"""Where the work stands, in few words: at each stage of an experiment's life the one next step, the
same for hooks, pages and `harness status`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.contract.artifacts import INNER_PLAN
from harness.decisions.person import approve, reject
from harness.domain.records import Run
from harness.domain.statuses import GateName, RunStatus, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.guard.hooks.projects import Projects
from harness.guard.hooks.standing import opening_line, status_line
from harness.ledger.facts import AlarmRaised
from harness.ledger.project import open_project
from harness.rendering.derived import write_derived
from harness.rendering.policy_snapshot import policy_snapshot
from harness.rendering.standing import next_step
from harness.views.snapshot import snapshot
from tests.world import GOOD, POOR, InProcess, World, make_root


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()


def said(world: World) -> dict[str, Any]:
    return policy_snapshot(world.project)["standing"]


def due(world: World) -> tuple[str, str]:
    """The next step, which every place that shows one says alike."""
    project, step = world.project, next_step(world.project)
    write_derived(project)
    layout = project.layout
    home = Projects(by_plugin=False).at(str(world.root))
    assert home is not None
    shown = {
        "state": line_of(layout.state_md, "- next step: ")[len("- next step: ") :],
        "briefing": layout.briefing.read_text("utf-8").split("## Next step\n\n")[1].split("\n")[0],
        "status": snapshot(project, sandbox="none")["next"]["text"],
    }
    assert shown == dict.fromkeys(shown, step.text)
    assert opening_line(home).endswith(f"; next: {step.text.replace('`', '')}")
    assert status_line(home).endswith(f"next: {step.words}")
    return step.words, step.command


def line_of(path: Path, start: str) -> str:
    (line,) = [line for line in path.read_text("utf-8").splitlines() if line.startswith(start)]
    return line


def evaluate(world: World, experiment: str, split: Split) -> None:
    evaluate_experiment(
        world.project,
        experiment,
        split,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )


def test_before_a_plan_is_approved(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    with open_project(root, {"XDG_STATE_HOME": str(tmp_path / "s"), "HOME": "/"}) as project:
        standing = policy_snapshot(project)["standing"]
        ready = snapshot(project, sandbox="none")["next"]
        (root / "plan.md").write_text("# no plan yet\n")
        unready = snapshot(project, sandbox="none")["next"]
    assert ready["text"] == "approve the plan: `harness plan approve` (by a person)"
    assert unready["text"] == "write a plan: `harness plan check`"
    assert standing == {
        "plan": "",
        "best": "",
        "next": "write a plan",
        "command": "harness plan check",
        "text": "write a plan: harness plan check",
    }


def test_the_plan_of_a_plugins_project_lies_below_harness(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    config = root / ".harness/config.toml"
    config.write_text(config.read_text("utf-8") + 'hooks = "plugin"\n', "utf-8")
    with open_project(root, {"XDG_STATE_HOME": str(tmp_path / "s"), "HOME": "/"}) as project:
        standing = policy_snapshot(project)["standing"]
    assert standing["command"] == f"harness plan check {INNER_PLAN}"


def test_with_one_seed_of_several_it_trains_on(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, GOOD[:1])
    assert world.project.plan().content["oracle"]["seeds"] > 1
    assert due(world) == ("train", f"harness train {experiment}")


def test_each_stage_names_its_command_and_held_out_is_never_told(world: World) -> None:
    assert said(world)["plan"].endswith(" v1")
    assert due(world) == ("try an idea", 'harness try "IDEA"')
    experiment = world.open().id
    assert due(world) == ("train", f"harness train {experiment}")
    world.train(experiment)
    assert due(world) == ("evaluate", f"harness evaluate {experiment}")
    assert said(world)["best"] == ""
    evaluate(world, experiment, Split.VALIDATION)
    result = f"harness experiment result {experiment} --summary TEXT"
    assert due(world) == ("write the result", result)
    world.result(experiment)
    assert due(world) == ("ask the gate", f"harness gate check {experiment}")
    assert check_gate(world.project, experiment, GateName.VALIDATION).verdict is Verdict.PASS
    best = said(world)["best"]
    assert 0.9 < float(best) <= 1.0
    assert due(world) == ("decide", f"harness keep {experiment}")
    evaluate(world, experiment, Split.HELD_OUT)
    assert due(world) == ("decide", f"harness keep {experiment}")
    verdict = check_gate(world.project, experiment, GateName.HELD_OUT)
    assert due(world) == ("decide", f"harness keep {experiment}")
    approve(world.project, experiment, by="Ada", reason="good")
    assert due(world) == ("try an idea", 'harness try "IDEA"')
    assert said(world)["best"] == best
    held_out = verdict.score["mean"]
    assert f"{held_out:.4g}" != best
    assert f"{held_out:.4g}" not in str(said(world))


def test_while_it_trains_and_after_a_failed_run(world: World) -> None:
    experiment = world.open().id
    run = open_run(world, experiment)
    assert due(world) == ("wait for the training", f"harness watch {experiment}")
    world._collect(run, world.project.layout.run(experiment, run.id), RunStatus.FAILED, [])
    assert due(world) == ("mend the training", "harness try --continue")


def open_run(world: World, experiment: str) -> Run:
    """As the supervisor registers one."""
    return world.project.ledger.register_run(
        experiment=experiment,
        seed=world.seed(1),
        argv=["python", "train.py"],
        code="0" * 64,
        data={},
        environment={},
        sandbox="none",
        token="0" * 64,
        session=None,
        caller="person",
    )


def test_an_alarm_that_nobody_explained_comes_first(world: World) -> None:
    experiment = world.open().id
    (run, *_) = world.train(experiment, GOOD)
    alarm = {
        "code": "non_finite",
        "severity": "fatal",
        "metric": "loss",
        "row": 2,
        "place": 2,
        "evidence": [],
        "threshold": "rows",
        "limit": 1,
        "message": "loss is NaN",
        "recovered": False,
        "try": [],
    }
    world.project.ledger.append(AlarmRaised(experiment=experiment, run=run.id, alarm=alarm))
    assert due(world) == ("explain the alarm", f"harness watch {experiment} --once")


def test_a_verdict_that_is_no_pass_says_so(world: World) -> None:
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment, Split.VALIDATION)
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)  # result.md is missing
    assert verdict.verdict is not Verdict.PASS
    assert due(world) == ("mend what the gate found", "harness try --continue")


def test_a_score_below_every_tier_is_decided(world: World) -> None:
    experiment = world.open().id
    world.train(experiment, POOR)
    evaluate(world, experiment, Split.VALIDATION)
    world.result(experiment)
    assert check_gate(world.project, experiment, GateName.VALIDATION).verdict is Verdict.FAIL
    step = next_step(world.project)
    assert (step.text, step.by_person) == (
        "try another hypothesis: `harness gate reject exp-0001 --reason TEXT` (by a person)",
        True,
    )
    assert due(world)[0] == "try another hypothesis"


def test_one_that_is_decided_leads_to_the_next(world: World) -> None:
    experiment = world.open().id
    reject(world.project, experiment, by="Ada", reason="No.")
    assert next_step(world.project, experiment).words == "try an idea"
    assert due(world)[0] == "try an idea"
