"""What Zero Operators' pull request 95 asks of a training phase: checkpoints at a cadence, a
CHECKLIST.md that the platform renders, and a checker that fires whatever the roster says, works
through its checklist, and whose diagnosis is part of what a gate asks for. There prose asks for it,
here code."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts.experiment_files import DiagnosedAlarm, Diagnosis, RunDiagnosis
from harness.contract.roles import ROLE_BY_NAME
from harness.detectors.alarm import Alarm, Severity
from harness.detectors.kinds import KINDS
from harness.domain.findings import as_text
from harness.domain.statuses import ExperimentStatus, Verdict
from harness.errors import UsageError
from harness.gates.check import judge
from harness.gates.evidence import GateEvidence
from harness.loop.next_step import next_step
from harness.loop.steps import Diagnose
from harness.plans.parse import parse_plan
from harness.projections.refresh import refresh
from harness.rendering.prompts import system_prompt
from harness.training.cadence import should_checkpoint
from tests.gates.evidence import evidence, run, with_run
from tests.loop.states import BUILT, DONE, experiment, state
from tests.plan_text import plan_text
from tests.world import World

PLAN = plan_text(
    "x", "y", tiers="must: 0.9", budget="experiments: 1, run_minutes: 1, total_minutes: 1"
)
CHECKLIST = (
    "NaN",
    "diverge",
    "gradient",
    "vanishing",
    "overfit",
    "rate of zero",
    "memory",
    "resume",
)
"""What its checker looks at: NaN and infinities, divergence, gradients, overfit, a dead rate,
stalls, variance."""


def alarm(
    code: str = "divergence", severity: Severity = Severity.WARNING, **changes: object
) -> Alarm:
    plain = Alarm(
        code=code,
        severity=severity,
        metric="loss",
        row=5,
        place=4.0,
        message="loss: it rose",
        evidence=(),
        threshold=f"{code}.rows",
        limit=2.0,
        tries=(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def alarmed(*alarms: Alarm, diagnosis: Diagnosis | None = None) -> GateEvidence:
    launched = (run(1, rows=12),)
    return evidence(
        alarms={"run-01": alarms} if alarms else {}, diagnosis=diagnosis, launched=launched
    )


def explaining(*codes: str, rows: tuple[int, ...] = (5,)) -> Diagnosis:
    named = tuple(
        DiagnosedAlarm(run="run-01", code=code, metric="loss", rows=rows) for code in codes
    )
    part = RunDiagnosis(
        run="run-01", what_happened="It rose.", mechanism="The rate.", evidence="- row 5"
    )
    return Diagnosis(experiment="exp-0001", alarms=named, runs=(part,))


@pytest.mark.parametrize("agents", ["", "agents: {profile: default}\n"])
def test_no_roster_keeps_the_checker_away(agents: str) -> None:
    plan = parse_plan(PLAN.replace("loop: {", f"{agents}loop: {{", 1), where="plan.md")
    assert "checker" not in str(plan.plain()["agents"])
    broken = experiment(
        1, ExperimentStatus.RUNNING, runs=DONE, undiagnosed=("run-01",), model=plan.name
    )
    step = next_step(state(broken, sessions=BUILT))
    assert isinstance(step, Diagnose)
    assert step.name == "training-x-checker"


def test_the_checker_has_a_checklist_and_no_way_to_change_what_it_explains() -> None:
    role = ROLE_BY_NAME["training-checker"]
    prompt = system_prompt(role)
    assert [word for word in CHECKLIST if word not in prompt] == []
    assert not role.writes_code
    assert {artifact.name for artifact in role.owns} == {"diagnosis"}
    assert "start_run" not in role.mcp_tools


@pytest.mark.parametrize("code", KINDS)
def test_no_kind_of_alarm_passes_undiagnosed(code: str) -> None:
    outcome = judge(alarmed(alarm(code)))
    assert outcome.verdict is Verdict.FAIL
    assert f"exp-0001/run-01 raised the alarm {code} at row 5" in as_text(outcome.findings)
    assert judge(alarmed(alarm(code), diagnosis=explaining(code))).verdict is Verdict.PASS


def test_a_diagnosis_of_something_else_is_none() -> None:
    given = alarmed(alarm("divergence"), alarm("stall"), diagnosis=explaining("divergence"))
    assert [found.data["alarm"] for found in judge(given).findings] == ["stall"]
    beyond = alarmed(alarm(), diagnosis=explaining("divergence", rows=(5, 13)))
    assert "quotes row 13 of run-01, which has 12" in as_text(judge(beyond).findings)


def there(epoch: int, total: int, every: int = 10, is_best: bool = False) -> bool:
    """Its should_checkpoint, for counts that can be."""
    return is_best or epoch == total - 1 or (epoch + 1) % max(1, every) == 0


@pytest.mark.parametrize("every", [1, 3, 10, 50])
@pytest.mark.parametrize("total", [1, 9, 10, 11, 100])
def test_checkpoints_are_due_as_there(total: int, every: int) -> None:
    for epoch in range(total):
        for best in (False, True):
            assert should_checkpoint(epoch, total, every, is_best=best) == there(
                epoch, total, every, best
            )
    assert [epoch for epoch in range(25) if should_checkpoint(epoch, 25)] == [
        9,
        19,
        24,
    ], "ten by default"


@pytest.mark.parametrize(("epoch", "total"), [(-1, 10), (0, 0), (0, -3)])
def test_counts_that_cannot_be_are_an_error_where_it_said_no(epoch: int, total: int) -> None:
    """A difference: there a wrong total meant a run without any checkpoint, and nobody was told."""
    with pytest.raises(UsageError):
        should_checkpoint(epoch, total)


def test_the_cadence_is_the_gates_and_stands_in_the_builders_prompt() -> None:
    given = replace(evidence(), checkpoint_every=10)
    assert judge(given).verdict is Verdict.PASS
    late = judge(with_run(given, 1, without_checkpoint=(3, 13)))
    assert [found.code for found in late.findings] == ["checkpoint_cadence"]
    assert late.verdict is Verdict.FAIL
    assert judge(with_run(given, 1, without_checkpoint=(3, 12))).verdict is Verdict.PASS
    prompt = system_prompt(ROLE_BY_NAME["model-builder"])
    for words in (
        "## Checkpointing",
        "log.checkpoint_every",
        "optimizer, scheduler",
        "random states",
        "## Disaster",
    ):
        assert words in prompt


def test_the_checklist_is_rendered_from_the_ledger_after_each_change_and_by_nobody_else(
    tmp_path: Path,
) -> None:
    world = World.make(tmp_path)
    ledger, layout = world.project.ledger, world.project.layout
    page = layout.experiments / "CHECKLIST.md"
    seen = []
    for change in (lambda: world.open("A cut at 0"), lambda: world.open_another("exp-0001")):
        change()
        refresh(ledger, layout, "train")
        seen.append(page.read_text("utf-8"))
    assert "| exp-0001 |" in seen[0]
    assert "A cut at 0" in seen[0]
    assert "| exp-0002 |" not in seen[0]
    assert "| exp-0002 |" in seen[1]
    page.write_text(seen[1].replace("exp-0002", "exp-0009"))
    refresh(ledger, layout, "train", everything=True)
    assert page.read_text("utf-8") == seen[1]
    assert "checklist" not in {item.name for role in ROLE_BY_NAME.values() for item in role.owns}
    world.project.close()
