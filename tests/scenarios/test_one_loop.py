"""One loop at a time, and a loop that the model gateway refuses for the budget."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, write_scenario

from harness.domain.prices import DEFAULT_MODEL, FAMILIES
from harness.domain.statuses import SandboxKind
from harness.driver.loop_runner import open_gateway, run_loop
from harness.ledger.project import Project
from harness.model_gateway.costs import worst_case
from harness.plans.model_budget import FIRST_BYTES, MOST_OUTPUT, first_request
from harness.runs.lock import looping
from harness.sandbox.select import choose
from tests.model_gateway.kept import keep
from tests.model_gateway.test_live_gateway import Service

PACKAGE = Path(__file__).resolve().parents[2]


def test_a_second_loop_is_refused_also_between_two_sessions(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1), oracle(1))
    command = [
        sys.executable,
        "-m",
        "harness",
        "continue",
        "--scenario",
        str(scenario),
        "--sandbox",
        "none",
        "--reason",
        "A test.",
        "--json",
    ]
    seconds: list[subprocess.CompletedProcess[str]] = []

    def start_second(event: Mapping[str, Any]) -> None:
        if event["event"] == "evaluate" and not seconds:
            assert project.ledger.sessions(open_only=True) == []
            # Another terminal's: this process's own says that the loop vouches for its children.
            own = {name: os.environ[name] for name in os.environ if "CALLER" not in name}
            environment = {**own, "PYTHONPATH": str(PACKAGE)}
            root = project.layout.root
            seconds.append(
                subprocess.run(
                    command, cwd=root, env=environment, capture_output=True, text=True, check=False
                )
            )

    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    ended = run_loop(project, gateway, choose(sandbox, required=False), on_progress=start_second)
    assert ended.reason == "target"
    (second,) = seconds
    assert second.returncode == 2, second.stdout + second.stderr
    assert '"code": "loop_running"' in second.stdout
    assert f"process {os.getpid()}" in second.stdout
    with looping(project.layout):
        pass  # it was given back


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.server.shutdown()
    service.server.server_close()


def test_a_refusal_for_the_budget_stops_the_loop_for_the_budget(
    service: Service, sandbox: SandboxKind, tmp_path: Path
) -> None:
    """The first answer costs more than is left for another, and less than the budget."""
    service.usage = {**service.usage, "output_tokens": 100_000}
    look = {"command": "true", "description": "Look"}
    service.answers = [[{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": look}]]
    root = make_project(tmp_path / "paid")
    (root / "plan.md").write_text(
        PLAN.replace("total_minutes: 5}", "total_minutes: 5, usd: 4}"), "utf-8"
    )
    with approved(root, os.environ) as project:
        gateway = open_gateway(
            project, project.plan(), {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": service.url}
        )
        requests = keep(gateway)
        told: list[str] = []
        ended = run_loop(
            project,
            gateway,
            choose(sandbox, required=False),
            lambda event: told.append(event["text"]),
        )
        sessions = project.ledger.sessions()
    assert ended.reason == "budget", told
    # Not the login is blamed, neither to the person nor in the ledger.
    assert sessions[0].detail.startswith("budget: The budget would be exceeded")
    assert not [text for text in told if "uthenticat" in text]
    # What `plan check` takes the least budget from.
    first = requests[0]
    assert FIRST_BYTES <= first.bytes < 2 * FIRST_BYTES
    assert (first.body["max_tokens"], first.body["model"]) == (MOST_OUTPUT, DEFAULT_MODEL)
    told_usd, told_tokens = worst_case(first, FAMILIES[DEFAULT_MODEL])
    least = first_request()
    assert least.usd is not None
    assert least.usd <= told_usd
    assert least.tokens <= told_tokens
    assert "The budget would be exceeded" in ended.detail
    assert [item.outcome for item in sessions] == ["cut"], told
    assert len([item for item in service.asked if "count_tokens" not in item["path"]]) == 1
    assert sessions[0].cost_usd is not None
    assert 1 < sessions[0].cost_usd < 4
