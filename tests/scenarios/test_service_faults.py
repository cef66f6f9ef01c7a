"""Faults of the model service at each role: what is short the loop survives as if undisturbed, what
lasts ends it under its own name, and no experiment is decided for it."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_alarms import BROKEN, DIAGNOSIS, METHODS, session
from toy_project import (
    PLAN,
    Played,
    approved,
    builder,
    make_project,
    oracle,
    play,
    tool,
    write_scenario,
)

from harness.clock import ManualClock
from harness.domain.statuses import SandboxKind
from harness.driver.loop_runner import open_gateway
from harness.ledger.project import Project
from harness.model_gateway.live import Live
from tests.model_gateway.upstream import Faults, Upstream

BUILDER, ORACLE, CHECKER, SCOUT = "model-builder", "oracle", "training-checker", "research-scout"
Running = Callable[..., tuple[Played, Upstream]]


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[Project]:
    root = make_project(tmp_path / "a project")
    plan = PLAN.replace("total_minutes: 5}", "total_minutes: 5, usd: 900}")
    plan = plan.replace("experiments: 3", "experiments: 1")
    plan = plan.replace("patience: 3}", "patience: 3, service_hours: 0.02}")
    plan = plan.replace("loop: {", "references: [papers]\nloop: {", 1)
    (root / "papers").mkdir()
    (root / "papers" / "centroids.md").write_text("# 1 Nearest centroids\n", "utf-8")
    (root / "plan.md").write_text(plan, "utf-8")
    with approved(root, os.environ) as opened:
        yield opened


@pytest.fixture
def run(paid: Project, sandbox: SandboxKind, tmp_path: Path) -> Iterator[Running]:
    opened: list[Upstream] = []

    def running(faults: Faults, *sessions: dict[str, Any]) -> tuple[Played, Upstream]:
        played_by = sessions or (builder(1), oracle(1))
        scenario = write_scenario(tmp_path / "s.yaml", *played_by)
        upstream = Upstream(scenario, faults)
        opened.append(upstream)
        environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": upstream.url}
        gateway = open_gateway(paid, paid.plan(), environment)
        live = gateway.answerer
        assert isinstance(live, Live)
        gateway.retries = 0
        live._trust_environment, live._idle_s = False, 1.0
        live._timeout.read = 2.0
        played = play(paid, scenario, sandbox=sandbox, gateway=gateway, waiting=ManualClock())
        return played, upstream

    yield running
    for upstream in opened:
        upstream.close()


def at(role: str, first: int, fault: str, times: int = 1) -> Faults:
    """`fault` at `times` requests of `role` from its request `first` on; 0: at all of them."""

    def faults(asker: str, number: int) -> str | None:
        over = times and number >= first + times
        return fault if asker == role and number >= first and not over else None

    return faults


SHORT = ("529", "429", "dropped", "cut", "hang", "silent", "garbled", "overloaded", "portal")
LASTING = {
    "529": "service_unavailable",
    "cut": "service_unavailable",
    "key": "key_refused",
    "credit": "credit_empty",
    "model": "model_not_found",
    "refusal": "refused",
    "max_tokens": "max_tokens",
    "bad json": "malformed",
    "bad tool": "malformed",
    "rejected": "rejected",
}
AT_ONCE = ("key", "credit", "model")
ALSO_BUILDER = ("529", "cut", "key", "refusal")


IN_CI = {(BUILDER, "529"), (BUILDER, "key"), (ORACLE, "overloaded")}
"""Of each kind a quick one."""


def of_roles(faults: Iterable[str]) -> list[Any]:
    """All at the oracle, where an experiment hangs on it; some at the builder."""
    several = [(BUILDER, fault) for fault in faults if fault in ALSO_BUILDER]
    cases = [*several, *((ORACLE, fault) for fault in faults)]
    ci = [pytest.mark.ci]
    return [pytest.param(*case, marks=ci if case in IN_CI else []) for case in cases]


@pytest.mark.parametrize(("role", "fault"), of_roles(SHORT))
def test_a_short_fault_leaves_the_loop_as_if_undisturbed(
    run: Running, paid: Project, role: str, fault: str
) -> None:
    played, upstream = run(at(role, 1, fault))
    assert played.ended.reason == "target", played.told
    assert [item.status for item in paid.ledger.experiments()] == ["kept"]
    assert {item.step for item in paid.ledger.sessions()} == {"build-1-1", "judge-1-1"}
    assert {item.outcome for item in paid.ledger.sessions()} <= {"finished", "unserved"}
    assert ((role, fault) in upstream.asked, upstream.wrong) == (True, [])
    paying = [item.cost_usd or 0.0 for item in paid.ledger.sessions()]
    assert sum(paying) < 0.5, paying  # the worst case of one request alone is above 2.5


@pytest.mark.parametrize(("role", "fault"), of_roles(LASTING))
def test_a_lasting_fault_ends_the_loop_under_its_name_and_discards_nothing(
    run: Running, paid: Project, role: str, fault: str
) -> None:
    played, upstream = run(at(role, 0, fault, 0))
    assert played.ended.reason == LASTING[fault], played.told
    assert all(item.status in ("open", "running") for item in paid.ledger.experiments())
    assert paid.ledger.open_runs() == []
    sessions = [item for item in paid.ledger.sessions() if item.role == role]
    assert len(sessions) <= 5
    if fault in AT_ONCE:
        assert len(sessions) == 1
    if LASTING[fault] == "service_unavailable":
        assert "asking again in 15 s; 0 s of 72 s are waited" in played.told
        assert {item.step.rpartition("-")[2] for item in sessions} == {"1"}
    assert sum(item.cost_usd or 0.0 for item in sessions) < 0.5

    if role == BUILDER or fault not in ALSO_BUILDER:
        return
    again, upstream = run(lambda _role, _number: None)
    assert (again.ended.reason, upstream.wrong) == ("target", []), again.told
    assert [item.status for item in paid.ledger.experiments()] == ["kept"]


@pytest.mark.parametrize(
    ("role", "fault", "times", "reason"),
    [
        (CHECKER, "529", 1, "budget"),
        (SCOUT, "cut", 1, "budget"),
        (CHECKER, "refusal", 0, "refused"),
        (SCOUT, "529", 0, "service_unavailable"),
    ],
)
def test_faults_at_the_checker_and_at_the_scout(
    run: Running, paid: Project, role: str, fault: str, times: int, reason: str
) -> None:
    """Of a broken run, with a plan of one experiment."""
    diagnose = tool("diagnose", "mcp__harness__record_diagnosis", **DIAGNOSIS)
    methods = tool("methods", "mcp__harness__record_methods", methods=METHODS)
    told = {"claims": {}, "summary": "It broke.", "shortfalls": ["NaN"]}
    sessions = (
        builder(1, train=BROKEN, hypothesis="A rate of 5.0 is fine"),
        session(CHECKER, diagnose),
        session(SCOUT, methods),
        session(ORACLE, tool("record", "mcp__harness__record_result", **told)),
    )
    played, upstream = run(at(role, 0, fault, times), *sessions)
    assert (played.ended.reason, upstream.wrong) == (reason, []), played.told
    (one,) = paid.ledger.experiments()
    written = paid.layout.experiment(one.id, "methods").exists()
    assert (one.status == "discarded", written) == (times > 0, times > 0)
