"""The phases of the workflows beside classical-ml, through the real CLI: each has its own, in its
order, with the evidence that it asks for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, play, tool, write_scenario

from harness.contract.phases import phases_of
from harness.domain.statuses import DecisionKind, ExperimentStatus, SandboxKind
from harness.ledger.phases import due_phase, phase_views
from harness.ledger.project import Project
from harness.ledger.verify import verify
from harness.loop.steps import StopReason
from tests.scenarios.test_cut_loops import PACKAGE


def planned(root: Path, workflow: str) -> Project:
    text = PLAN.replace("workflow: classical-ml", f"workflow: {workflow}")
    text = text.replace("loop: {", "gates: {mode: auto, phases: true}\nloop: {")
    text = text.replace(
        "{entry: python train.py}", "{entry: python train.py, checkpoint_every: 1}"
    )
    assert text.count("phases: true") == text.count("checkpoint_every") == 1
    made = make_project(root)
    (made / "plan.md").write_text(text, "utf-8")
    return approved(made, os.environ)


def of_phase(role: str, phase: str, *, attempt: int = 1, **given: Any) -> dict[str, Any]:
    note = tool("note", "mcp__harness__record_phase", found=f"What {phase} shows.", **given)
    turns = [{"tools": [note], "expect": f"Phase {phase}"}, {"text": "Recorded."}]
    return {"role": role, "experiment": 0, "attempt": attempt, "turns": turns}


def decided(project: Project) -> list[tuple[str, str]]:
    """(phase, how) of each phase that was passed."""
    made = [one for one in project.ledger.decisions() if one.kind is DecisionKind.PHASE]
    return [(one.context.split()[1], one.by) for one in made]


@pytest.mark.parametrize("workflow", ["deep-learning", "post-training"])
def test_code_is_read_before_minutes_are_spent_on_it(
    sandbox: SandboxKind, tmp_path: Path, workflow: str
) -> None:
    with planned(tmp_path / workflow, workflow) as project:
        scenario = write_scenario(
            tmp_path / "s.yaml",
            of_phase("data-engineer", "data"),
            of_phase("code-reviewer", "design"),
            builder(1),
            oracle(1),
            of_phase("analyst", "analyse"),
            of_phase("software-engineer", "package"),
        )
        played = play(project, scenario, sandbox=sandbox)
        assert played.ended.reason == StopReason.TARGET, played.ended.detail
        names = [phase.name for phase in phases_of(workflow)]
        assert names == ["data", "design", "train", "analyse", "package"]
        assert decided(project) == [(name, "harness") for name in names]
        steps = [one.step for one in project.ledger.sessions()]
        order = ["data-0-1", "design-0-1", "build-1-1", "judge-1-1", "analyse-0-1", "package-0-1"]
        assert steps == order
        assert due_phase(project.ledger, project.plan()) is None
        assert verify(project.layout.ledger_db, project.layout.anchors) == []


@pytest.mark.timeout(600)
def test_research_names_its_sources_and_its_result_comes_again(
    sandbox: SandboxKind, tmp_path: Path
) -> None:
    with planned(tmp_path / "research", "research") as project:
        scenario = write_scenario(
            tmp_path / "s.yaml",
            of_phase("research-scout", "survey"),
            of_phase("research-scout", "survey", attempt=2, sources=["Fisher 1936, table 1"]),
            of_phase("data-engineer", "data"),
            of_phase("code-reviewer", "design"),
            builder(1),
            oracle(1),
            of_phase("analyst", "analyse"),
            of_phase("software-engineer", "package"),
        )
        played = play(project, scenario, sandbox=sandbox)
        ledger, plan = project.ledger, project.plan()
        # What a session says is no second training: a person is waited for.
        assert played.ended.reason == StopReason.PLAYED, played.told
        due = due_phase(ledger, plan)
        assert due is not None
        assert (due.name, due.missing) == ("package", ("reproduced",))
        surveys = [one.step for one in ledger.sessions() if one.step.startswith("survey")]
        assert surveys == ["survey-0-1", "survey-0-2"]
        done = subprocess.run(
            [sys.executable, "-m", "harness", "reproduce", "exp-0001", "--json"],
            cwd=project.layout.root,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["outcome"] == "exact"
        again = play(project, scenario, sandbox=sandbox)
        assert again.ended.reason == StopReason.TARGET, again.told
        names = [phase.name for phase in phases_of("research")]
        assert [name for name, _ in decided(project)] == names
        views = {view.name: dict(view.evidence) for view in phase_views(ledger, plan)}
        assert views["survey"]["sources"] == "Fisher 1936, table 1"
        assert views["package"]["reproduced"] == "exp-0001 by exp-0002: exact"
        statuses = [one.status for one in ledger.experiments()]
        assert statuses == [ExperimentStatus.KEPT, ExperimentStatus.DISCARDED]
        assert verify(project.layout.ledger_db, project.layout.anchors) == []
