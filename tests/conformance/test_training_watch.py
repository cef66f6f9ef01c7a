"""What Zero Operators' pull request 95 asks of a training phase: the checker fires whatever the roster says, works
through its checklist, and its diagnosis is part of what a gate asks for. There prose asks for it, here code."""

from dataclasses import replace

import pytest

from harness.artifacts.diagnosis import Diagnosed, Diagnosis, RunDiagnosis
from harness.artifacts.plan import parse_plan
from harness.contract.roles import ROLE_BY_NAME
from harness.detectors.alarm import Alarm, Severity
from harness.detectors.kinds import KINDS
from harness.domain.findings import as_text
from harness.domain.statuses import ExperimentStatus, Verdict
from harness.gates.evidence import GateEvidence
from harness.gates.validation import judge
from harness.loop.next_step import next_step
from harness.loop.steps import Diagnose
from harness.rendering.prompts import system_prompt
from tests.gates.evidence import evidence, run
from tests.loop.states import BUILT, DONE, experiment, state
from tests.plan_text import plan_text

PLAN = plan_text("x", "y", tiers="must: 0.9", budget="experiments: 1, run_minutes: 1, total_minutes: 1")
CHECKLIST = ("NaN", "diverge", "gradient", "vanishing", "overfit", "rate of zero", "memory", "resume")
"""What its checker looks at: NaN and infinities, divergence, gradients, overfit, a dead rate, stalls, variance."""


def alarm(code: str = "divergence", severity: Severity = Severity.WARNING, **changes: object) -> Alarm:
    plain = Alarm(code=code, severity=severity, metric="loss", row=5, place=4.0, message="loss: it rose", evidence=(),
                  threshold=f"{code}.rows", limit=2.0, tries=())  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def alarmed(*alarms: Alarm, diagnosis: Diagnosis | None = None) -> GateEvidence:
    launched = (run(1, rows=12),)
    return evidence(alarms={"run-01": alarms} if alarms else {}, diagnosis=diagnosis, launched=launched)


def explaining(*codes: str, rows: tuple[int, ...] = (5,)) -> Diagnosis:
    named = tuple(Diagnosed(run="run-01", code=code, metric="loss", rows=rows) for code in codes)
    part = RunDiagnosis(run="run-01", what_happened="It rose.", mechanism="The rate.", evidence="- row 5")
    return Diagnosis(experiment="exp-0001", alarms=named, runs=(part,))


@pytest.mark.parametrize("agents", ["", "agents: {profile: default}\n"])
def test_no_roster_keeps_the_checker_away(agents: str) -> None:
    plan = parse_plan(PLAN.replace("loop: {", f"{agents}loop: {{", 1), where="plan.md")
    assert "checker" not in str(plan.plain()["agents"])
    broken = experiment(1, ExperimentStatus.RUNNING, runs=DONE, undiagnosed=("run-01",), model=plan.name)
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
