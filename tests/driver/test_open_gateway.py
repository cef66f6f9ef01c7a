"""Which gateway a loop gets, and what a live one needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_project import PLAN, approved, builder, make_project, write_scenario

from harness.contract.profiles import DEFAULT, LOW_TOKEN, PROFILES
from harness.decisions.phases import note_phase
from harness.domain.prices import MODEL
from harness.driver.loop_runner import (
    SCRIPTED_RETRIES,
    close_cut_sessions,
    expected_night,
    open_gateway,
)
from harness.errors import RefusedError, UsageError
from harness.ledger.facts import SessionEnded, SessionStarted
from harness.ledger.project import Project
from harness.ledger.spending import SpendingLog, read_spending
from harness.loop.load_state import load_state
from harness.model_gateway.estimate import assumed
from harness.model_gateway.gateway import RETRIES, Gateway
from harness.model_gateway.live import Live
from harness.model_gateway.meter import Meter
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.service import Service
from harness.model_gateway.wire import Asker, read_request


@pytest.fixture
def paid_project(tmp_path: Path) -> Iterator[Project]:
    root = make_project(tmp_path / "paid")
    (root / "plan.md").write_text(
        PLAN.replace("total_minutes: 5}", "total_minutes: 5, usd: 10}"), "utf-8"
    )
    with approved(root, {"XDG_STATE_HOME": str(tmp_path / "paid state")}) as opened:
        yield opened


def test_a_scenario_needs_neither_key_nor_budget(project: Project, tmp_path: Path) -> None:
    gateway = open_gateway(
        project, project.plan(), {}, scenario=write_scenario(tmp_path / "s.yaml", builder(1))
    )
    assert isinstance(gateway.answerer, Scripted)
    assert gateway.retries == SCRIPTED_RETRIES


def test_a_live_gateway_needs_a_budget_in_the_plan(project: Project) -> None:
    with pytest.raises(RefusedError, match=r"neither budget\.tokens nor budget\.usd"):
        open_gateway(project, project.plan(), {"ANTHROPIC_API_KEY": "k"})


def test_a_scenario_is_not_recorded(project: Project, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1))
    with pytest.raises(UsageError, match="exclude each other"):
        open_gateway(project, project.plan(), {}, scenario=scenario, record=tmp_path / "r.yaml")


KEY = {"ANTHROPIC_API_KEY": "k"}


def test_money_of_earlier_sessions_of_the_plan_counts_in_the_gateway_and_in_the_loop(
    paid_project: Project,
) -> None:
    project = paid_project
    log = SpendingLog(project.layout.spending, "toy")
    log.settle(log.reserve(session="here", role="oracle", usd=5.0), usd=1.5, usage={})
    log.reserve(session="killed", role="oracle", usd=2.0)
    SpendingLog(project.layout.spending, "another plan").reserve(
        session="other", role="oracle", usd=50.0
    )
    for session, cost in (("here", 1.5), ("elsewhere", 0.25)):
        started = {
            "experiment": None,
            "step": "build-1-1",
            "sandbox": "none",
            "driver": {"pid": 1},
        }
        project.ledger.append(SessionStarted(session=session, role="oracle", **started))
        project.ledger.append(
            SessionEnded(session=session, outcome="finished", detail="", turns=1, cost_usd=cost)
        )
    assert load_state(project, supervised=lambda run: False).spent.usd == pytest.approx(3.75)
    gateway = open_gateway(project, project.plan(), KEY)
    assert isinstance(gateway.answerer, Live)
    meter = gateway.answerer.meter
    body = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": []}
    meter.reserve(read_request(Asker(role="oracle", session="new"), {}, body, 100))
    assert meter.spent_usd == pytest.approx(3.75)
    assert [item.session for item in read_spending(project.layout.spending).values()][-1] == "new"


def test_a_cut_session_is_closed_with_what_it_may_have_cost(project: Project) -> None:
    SpendingLog(project.layout.spending, "toy").reserve(session="cut", role="oracle", usd=0.5)
    start = SessionStarted(
        session="cut",
        role="oracle",
        experiment=None,
        step="judge-1-1",
        sandbox="none",
        driver={"pid": 1},
    )
    project.ledger.append(start)
    close_cut_sessions(project.ledger, project.layout)
    closed = project.ledger.session("cut")
    assert closed is not None
    assert (closed.outcome, closed.cost_usd) == ("cut", 0.5)


def test_a_live_endpoint_is_asked_again_more_patiently() -> None:
    live = Live(service=Service(url="http://127.0.0.1:9"), meter=Meter(budget_usd=1.0))
    gateway = Gateway(live)
    assert not isinstance(gateway.answerer, Scripted)
    assert gateway.retries == RETRIES


def test_a_night_counts_the_sessions_of_phases(tmp_path: Path) -> None:
    root = make_project(tmp_path / "gated")
    gated = PLAN.replace("total_minutes: 5}", "total_minutes: 5, usd: 10}")
    (root / "plan.md").write_text(
        gated.replace("loop: {", "gates: {mode: auto, phases: true}\nloop: {"), "utf-8"
    )
    with approved(root, {"XDG_STATE_HOME": str(tmp_path / "state of it")}) as project:
        plan = project.plan()
        night = expected_night(project, plan, {})
        assert (night.experiments, night.phases) == (3, 3)
        one = assumed("analyst", night.model)
        note_phase(project, text="200 rows", sources=(), by="data-engineer", session="s")
        later = expected_night(project, plan, {})
        assert later.phases == 2
        assert later.expected.tokens == pytest.approx(night.expected.tokens - one.tokens)


def test_a_night_goes_by_the_profile_of_the_plan_or_by_the_one_that_is_asked_for(
    tmp_path: Path,
) -> None:
    root = make_project(tmp_path / "low")
    many = PLAN.replace("experiments: 3", "experiments: 9")
    assert many != PLAN
    (root / "plan.md").write_text(
        many.replace("loop: {", "agents: {profile: low-token}\nloop: {"), "utf-8"
    )
    with approved(root, {"XDG_STATE_HOME": str(tmp_path / "state of low")}) as project:
        plan, named = project.plan(), {MODEL: "claude-haiku-5-5"}
        night = expected_night(project, plan, named)
        assert (night.experiments, night.model) == (4, PROFILES[LOW_TOKEN].model)
        plain = expected_night(project, plan, named, PROFILES[DEFAULT])
        assert (plain.experiments, plain.model) == (9, "claude-haiku-5-5")
