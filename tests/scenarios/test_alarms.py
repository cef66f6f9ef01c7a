"""A run that breaks: stopped by the detectors, told to the builder at its next call, explained
by a checker that no roster names, answered by a scout, and the best candidate opens the next
experiment."""

import os
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, play, tool, write_scenario

from harness.artifacts.experiment_files import read_diagnosis
from harness.domain.statuses import DecisionKind, RunStatus, SandboxKind
from harness.ledger.facts import AlarmRaised
from harness.ledger.project import Project

BROKEN = """
import time
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=2000)
    for epoch in range(2000):
        log.epoch(epoch, {"train_loss": 1.0 if epoch < 3 else float("nan")}, learning_rate=5.0)
        time.sleep(0.03)
"""
CHANGE = "Centres without a gradient step cannot become NaN"
DIAGNOSIS = {
    "run": "run-01",
    "what_happened": "The loss was 1.0 for three epochs and NaN from row 5 on.",
    "mechanism": "A learning rate of 5.0 overflows; the data has no NaN.",
    "alarms": [{"code": "non_finite", "rows": [4, 5, 6]}],
    "candidates": [
        {
            "change": "A smaller learning rate stays finite",
            "alarm": "non_finite",
            "confidence": "low",
        },
        {"change": CHANGE, "alarm": "non_finite", "confidence": "high"},
    ],
}
METHODS = [
    {
        "name": "Nearest centroid",
        "track": "tabular",
        "source": "papers/centroids.md, section 1",
        "conditions": "two clouds",
        "hypothesis": "A nearest-centroid baseline separates the clouds",
        "alarm": "non_finite",
        "confidence": "medium",
    }
]


def breaking() -> dict[str, Any]:
    """Starts the run, then does something else: the alarm comes with the answer to that call."""
    first = builder(1, train=BROKEN, hypothesis="A rate of 5.0 is fine")
    opened, read, written, started, *_ = first["turns"]
    quiet = {"tools": [tool("wait", "Bash", command="sleep 4", description="Wait a little")]}
    said = {
        "expect": ["raised fatal non_finite", "exp-0001/run-01"],
        "text": "It broke; I leave it to the checker.",
    }
    return {**first, "turns": [opened, read, written, started, quiet, said]}


def session(role: str, call: dict[str, Any], *expect: str) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"tools": [call], "expect": list(expect)}, {"text": "Done."}]
    return {"role": role, "experiment": 1, "attempt": 1, "turns": turns}


def sessions() -> list[dict[str, Any]]:
    """A run that breaks, its diagnosis, methods that answer it, and the best candidate."""
    checker = session(
        "training-checker",
        tool("diagnose", "mcp__harness__record_diagnosis", **DIAGNOSIS),
        "training-centres-checker",
        "raised fatal non_finite",
    )
    scout = session(
        "research-scout",
        tool("methods", "mcp__harness__record_methods", methods=METHODS),
        "- papers",
    )
    empty = [
        tool(
            "record",
            "mcp__harness__record_result",
            claims={},
            summary="It broke.",
            shortfalls=["NaN"],
        )
    ]
    judge = {
        "role": "oracle",
        "experiment": 1,
        "attempt": 1,
        "turns": [{"tools": empty}, {"text": "Recorded."}],
    }
    second = builder(
        2, hypothesis=CHANGE, expect=f"1. {CHANGE} (answers non_finite, confidence high)"
    )
    return [breaking(), checker, scout, judge, second, oracle(2)]


@pytest.fixture
def project(tmp_path: Path) -> Any:
    root = make_project(tmp_path / "a project")
    (root / "papers").mkdir()
    (root / "papers" / "centroids.md").write_text("# 1 Nearest centroids\n", "utf-8")
    text = PLAN.replace("loop: {", "agents: {profile: default}\nreferences: [papers]\nloop: {", 1)
    (root / "plan.md").write_text(text, "utf-8")
    with approved(root, os.environ) as opened:
        yield opened


def test_a_broken_run_is_stopped_explained_and_fixed(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", *sessions())
    played = play(project, scenario, sandbox=sandbox)
    ledger, layout = project.ledger, project.layout
    assert played.ended.reason == "target", played.told
    (run,) = ledger.runs("exp-0001")
    assert run.status is RunStatus.KILLED
    names = [item.id for item in ledger.sessions() if item.role == "training-checker"]
    assert [name.rpartition("-")[0] for name in names] == ["training-centres-checker-1-run-01-1"]
    diagnosis = read_diagnosis(layout.experiment("exp-0001", "diagnosis"))
    assert "row 5, epoch 3: train_loss nan" in diagnosis.runs[0].evidence
    assert "section 1" in layout.experiment("exp-0001", "methods").read_text("utf-8")
    (decided,) = ledger.decisions("exp-0001")
    assert decided.kind is DecisionKind.DISCARD
    assert "stopped by the alarm non_finite" in decided.reason
    raised = [fact for fact in ledger.facts() if fact.kind == AlarmRaised.KIND]
    assert len(raised) == len({fact.data for fact in raised}) == 2
    assert "raised fatal non_finite" in played.told
